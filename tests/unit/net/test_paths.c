#include "net/paths.h"

#include "unit.h"

#include <dirent.h>
#include <sys/stat.h>

START_TEST (relative_ones_become_absolute)
{
  char expected[PATH_MAX + 8], *path;

  ck_assert_int_eq (chdir (unit_scratch), 0);
  path = tl_path_absolute ("a.state");
  snprintf (expected, sizeof expected, "%s/a.state", unit_scratch);
  ck_assert_str_eq (path, expected);
  free (path);
  path = tl_path_absolute ("/x/y");
  ck_assert_str_eq (path, "/x/y");
  free (path);
}
END_TEST

START_TEST (directory_is_made_once)
{
  char error[512];
  struct stat st;

  ck_assert_int_eq (tl_path_make_parent ("state", unit_path ("made/a.state"),
                                         error, sizeof error),
                    1);
  ck_assert_int_eq (stat (unit_path ("made"), &st), 0);
  ck_assert_uint_eq (st.st_mode & 07777, 0700);
  ck_assert_int_eq (tl_path_make_parent ("state", unit_path ("made/a.state"),
                                         error, sizeof error),
                    0);
  tl_path_remove_parent (unit_path ("made/a.state"));
  ck_assert_int_eq (stat (unit_path ("made"), &st), -1);
}
END_TEST

START_TEST (missing_parents_are_named)
{
  char error[512];

  ck_assert_int_eq (tl_path_make_parent ("state", "/proc/self/none/a.state",
                                         error, sizeof error),
                    -1);
  assert_says (error, "state=/proc/self/none/a.state");
}
END_TEST

START_TEST (writable_leaves_nothing_behind)
{
  char error[512];
  struct dirent *entry;
  DIR *directory;

  ck_assert_int_eq (mkdir (unit_path ("d"), 0700), 0);
  ck_assert_int_eq (tl_path_check_writable ("state", unit_path ("d/a.state"),
                                            error, sizeof error),
                    0);
  directory = opendir (unit_path ("d"));
  ck_assert_ptr_nonnull (directory);
  while ((entry = readdir (directory)))
    ck_assert_int_eq (entry->d_name[0], '.');
  closedir (directory);
}
END_TEST

START_TEST (not_writable_is_named)
{
  char error[512];

  ck_assert_int_eq (tl_path_check_writable ("state", "/proc/self/a.state",
                                            error, sizeof error),
                    -1);
  assert_says (error, "state=/proc/self/a.state");
}
END_TEST

UNIT_MAIN ("paths", relative_ones_become_absolute, directory_is_made_once,
           missing_parents_are_named, writable_leaves_nothing_behind,
           not_writable_is_named)
