/* What happens where a file system is full.  Runs in with-tmpfs.sh. */
#include "state/state.h"

#include "stores.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/* Fill what is left but for SPARE bytes, into the file NAME. */
static void
fill (const char *name, uint64_t spare)
{
  struct statvfs fs;
  int fd = open (unit_path (name), O_RDWR | O_CREAT, 0600);

  ck_assert_int_ge (fd, 0);
  ck_assert_int_eq (fstatvfs (fd, &fs), 0);
  ck_assert_int_eq (
      posix_fallocate (fd, 0, (off_t)(fs.f_bavail * fs.f_frsize - spare)), 0);
  close (fd);
}

/* Is the test where it belongs: on a small file system? */
static void
check_place (void)
{
  struct statvfs fs;

  ck_assert_msg (getenv ("TL_TMPFS") != NULL, "run it in with-tmpfs.sh");
  ck_assert_int_eq (statvfs (unit_scratch, &fs), 0);
  ck_assert_uint_lt (fs.f_blocks * fs.f_frsize, 64 * MIB);
}

START_TEST (store_larger_than_the_file_system)
{
  const char *path = unit_path ("large");
  struct tl_store_config config = {.size = 64 * MIB, .path = path};
  struct tl_store *store;

  check_place ();
  ck_assert_int_eq (tl_store_open (&store, &config, error, sizeof error), -1);
  assert_says (error, path);
  assert_says (error, "64 MiB are needed");
  assert_says (error, "KiB free");
  ck_assert_int_eq (access (path, F_OK), -1);
}
END_TEST

START_TEST (memory_given_back_may_be_gone)
{
  struct tl_store *store;
  unsigned char *bytes = malloc (2 * MIB), byte;

  check_place ();
  store = open_store (2 * MIB, unit_path ("store"), false);
  memset (bytes, 7, 2 * MIB);
  ck_assert_int_eq (tl_store_reserve (store, 0, 2 * MIB), 0);
  tl_store_write (store, 0, 2 * MIB, bytes);
  tl_store_zero (store, MIB, MIB);
  ck_assert_uint_eq (tl_store_resident (store), MIB);
  fill ("filler", 2 * TL_BLOCK);
  /* What has memory can be written, and a little more. */
  ck_assert_int_eq (tl_store_reserve (store, 0, MIB), 0);
  ck_assert_int_eq (tl_store_reserve (store, MIB - 1, 2), 0);
  ck_assert_int_eq (tl_store_reserve (store, MIB, MIB), ENOSPC);
  ck_assert_int_eq (tl_store_reserve (store, 0, 2 * MIB), ENOSPC);
  tl_store_write (store, MIB - 1, 2, "ab");
  /* Still the same to a reader, and a zero needs no memory. */
  tl_store_read (store, MIB + MIB / 2, 1, &byte);
  ck_assert_uint_eq (byte, 0);
  tl_store_zero (store, 5, 2 * MIB - 5);
  ck_assert_int_eq (unlink (unit_path ("filler")), 0);
  ck_assert_int_eq (tl_store_reserve (store, 0, 2 * MIB), 0);
  tl_store_write (store, 0, 2 * MIB, bytes);
  tl_store_close (store);
  ck_assert_int_eq (unlink (unit_path ("store")), 0);
  free (bytes);
}
END_TEST

/* A file with holes, found at start, gets its memory before it is served. */
START_TEST (file_with_holes)
{
  const char *path = unit_path ("holes");
  struct tl_store_config config = {.size = 2 * MIB, .path = path};
  struct tl_store *store;
  int fd = open (path, O_RDWR | O_CREAT, 0600);
  struct stat st;

  check_place ();
  ck_assert_int_ge (fd, 0);
  ck_assert_int_eq (ftruncate (fd, 2 * MIB), 0);
  ck_assert_int_eq (pwrite (fd, "x", 1, MIB), 1);
  fill ("filler", MIB);
  ck_assert_int_eq (tl_store_open (&store, &config, error, sizeof error), -1);
  assert_says (error, "are needed");
  ck_assert_int_eq (fstat (fd, &st), 0);
  ck_assert_int_eq (st.st_size, 2 * MIB); /* as it was */
  ck_assert_int_eq (unlink (unit_path ("filler")), 0);
  store = open_store (2 * MIB, path, false);
  ck_assert_uint_eq (tl_store_resident (store), 2 * MIB);
  tl_store_close (store);
  close (fd);
  ck_assert_int_eq (unlink (path), 0);
}
END_TEST

START_TEST (state_file)
{
  const char *path = unit_path ("state");
  struct tl_record first = {.volume = "v", .node = "a", .size = 4096};
  struct tl_record second = first, out;

  check_place ();
  second.size = 8192;
  ck_assert_int_eq (tl_state_save (path, &first, error, sizeof error), 0);
  fill ("filler", 0);
  ck_assert_int_eq (tl_state_save (path, &second, error, sizeof error), -1);
  assert_says (error, path);
  assert_says (error, "free space");
  ck_assert_int_eq (access (unit_path ("state.new"), F_OK), -1);
  ck_assert_int_eq (tl_state_load (path, &out, error, sizeof error), 0);
  ck_assert_uint_eq (out.size, 4096);
  ck_assert_int_eq (unlink (unit_path ("filler")), 0);
  ck_assert_int_eq (tl_state_save (path, &second, error, sizeof error), 0);
  ck_assert_int_eq (tl_state_load (path, &out, error, sizeof error), 0);
  ck_assert_uint_eq (out.size, 8192);
}
END_TEST

UNIT_MAIN ("full", store_larger_than_the_file_system,
           memory_given_back_may_be_gone, file_with_holes, state_file)
