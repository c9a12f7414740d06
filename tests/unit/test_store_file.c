/* The file of a store: taken, refused, created, left as it was. */
#include "stores.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>

START_TEST (file_size_limit)
{
  const char *path = unit_path ("fsize");
  struct rlimit limit;

  ck_assert_int_eq (getrlimit (RLIMIT_FSIZE, &limit), 0);
  limit.rlim_cur = MIB;
  ck_assert_int_eq (setrlimit (RLIMIT_FSIZE, &limit), 0);
  refuse (2 * MIB, NULL, false, "RLIMIT_FSIZE");
  ck_assert_int_eq (
      tl_store_open (&(struct tl_store *){NULL},
                     &(struct tl_store_config){.size = 2 * MIB, .path = path},
                     error, sizeof error),
      -1);
  assert_says (error, "RLIMIT_FSIZE");
  ck_assert_int_eq (access (path, F_OK), -1); /* not left behind */
}
END_TEST

START_TEST (file_is_created)
{
  const char *path = unit_path ("created");
  struct tl_store *store = open_store (MIB, path, false);
  struct stat st;

  ck_assert_int_eq (stat (path, &st), 0);
  ck_assert_int_eq (st.st_size, MIB);
  ck_assert_int_eq (st.st_mode & 07777, 0600);
  ck_assert_uint_eq (tl_store_allocated (store)->count, 0);
  tl_store_close (store);
  ck_assert_int_eq (access (path, F_OK), 0);
}
END_TEST

START_TEST (foreign_content_stays_until_it_is_cleared)
{
  const char *path = unit_path ("content");
  struct tl_store *store = open_store (MIB, path, false);
  unsigned char bytes[TL_BLOCK];

  tl_store_write (store, 5 * TL_BLOCK + 3, 5, "hello");
  tl_store_close (store);
  ck_assert_int_eq (unlink (unit_path ("content.header")), 0);
  store = open_store (MIB, path, false);
  ck_assert_uint_eq (tl_store_allocated (store)->count, MIB / TL_BLOCK);
  tl_store_read (store, 5 * TL_BLOCK, TL_BLOCK, bytes);
  ck_assert_mem_eq (bytes + 3, "hello", 5);
  tl_store_clear (store);
  ck_assert_uint_eq (tl_store_allocated (store)->count, 0);
  tl_store_read (store, 5 * TL_BLOCK, TL_BLOCK, bytes);
  ck_assert (all_zero (bytes, sizeof bytes));
  tl_store_close (store);
  store = open_store (MIB, path, false);
  tl_store_read (store, 5 * TL_BLOCK, TL_BLOCK, bytes);
  ck_assert (all_zero (bytes, sizeof bytes));
  tl_store_close (store);
}
END_TEST

START_TEST (empty_file_is_taken)
{
  const char *path = unit_path ("empty");
  struct tl_store *store;

  unit_file ("empty", "");
  store = open_store (MIB, path, false);
  ck_assert_uint_eq (tl_store_allocated (store)->count, 0);
  tl_store_close (store);
}
END_TEST

START_TEST (file_in_use)
{
  const char *path = unit_path ("used");
  struct tl_store *store = open_store (MIB, path, false);
  int fd;

  refuse (MIB, path, false, "in use by another process");
  ck_assert_int_eq (access (path, F_OK), 0);
  tl_store_close (store);
  tl_store_close (open_store (MIB, path, false));
  /* Whoever it is. */
  fd = open (path, O_RDONLY);
  ck_assert_int_ge (fd, 0);
  ck_assert_int_eq (flock (fd, LOCK_SH), 0);
  refuse (MIB, path, false, "in use by another process");
  close (fd);
}
END_TEST

START_TEST (file_of_another_size)
{
  const char *path = unit_path ("other");
  struct stat st;

  unit_file ("other", "precious");
  refuse (MIB, path, false, "it has 8 bytes, the volume 1048576");
  ck_assert_int_eq (stat (path, &st), 0);
  ck_assert_int_eq (st.st_size, 8);
}
END_TEST

START_TEST (not_a_file)
{
  ck_assert_int_eq (mkdir (unit_path ("dir"), 0700), 0);
  ck_assert_int_eq (mkfifo (unit_path ("fifo"), 0600), 0);
  unit_file ("plain", "");
  refuse (MIB, unit_path ("dir"), false, "Is a directory");
  refuse (MIB, unit_path ("fifo"), false, "not a regular file");
  refuse (MIB, "/dev/null", false, "not a regular file");
  refuse (MIB, unit_path ("none/none"), false, "create its directory");
  refuse (MIB, unit_path ("plain/none"), false, "Not a directory");
  ck_assert_int_eq (symlink ("nowhere", unit_path ("dangling")), 0);
  refuse (MIB, unit_path ("dangling"), false, "comes and goes");
}
END_TEST

START_TEST (failure_leaves_the_file_as_it_was)
{
  const char *path = unit_path ("undone");
  struct stat st;

  refuse (UINT64_C (1) << 60, path, false, "are needed");
  ck_assert_int_eq (access (path, F_OK), -1);
  unit_file ("undone", "");
  refuse (UINT64_C (1) << 60, path, false, "are needed");
  ck_assert_int_eq (stat (path, &st), 0);
  ck_assert_int_eq (st.st_size, 0);
}
END_TEST

UNIT_MAIN ("store_file", file_size_limit, file_is_created,
           foreign_content_stays_until_it_is_cleared, empty_file_is_taken,
           file_in_use, file_of_another_size, not_a_file,
           failure_leaves_the_file_as_it_was)
