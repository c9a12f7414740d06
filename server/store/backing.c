/* The memfd or file behind a store.
 *
 * The happy path: the file is created with O_EXCL, or opened; an flock keeps
 * every other process out for as long as the descriptor, or a copy of it that
 * a fork made, is open.  Failures: not a regular file, in use, of another
 * size; each leaves the file as it was.  A file that another process created
 * and took back between our open and our lock has no name any more: the whole
 * is tried again.
 */
#include "backing.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u /* Linux 6.3 */
#endif

#define OPEN_TRIES 10

int
tl_fallocate (int fd, int mode, uint64_t offset, uint64_t length)
{
  int r;

  do
    r = fallocate (fd, mode, (off_t)offset, (off_t)length);
  while (r == -1 && errno == EINTR);
  return r;
}

static int
open_memfd (struct tl_backing *backing, char *error, size_t error_size)
{
  /* Kernels that know the flag complain where it is missing, or refuse. */
  backing->fd = memfd_create ("twinlog", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
  if (backing->fd == -1 && errno == EINVAL)
    backing->fd = memfd_create ("twinlog", MFD_CLOEXEC);
  if (backing->fd == -1) {
    snprintf (error, error_size, "cannot make the store: memfd_create: %m");
    return -1;
  }
  backing->from_memory = true;
  return 0;
}

/* 1: opened and locked; 0: it has lost its name, try again; -1: refused. */
static int
open_file_once (struct tl_backing *backing, struct stat *st, char *error,
                size_t error_size)
{
  const char *path = backing->path;
  const int flags = O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

  backing->created = true;
  backing->fd = open (path, flags | O_CREAT | O_EXCL, 0600);
  if (backing->fd == -1 && errno == EEXIST) {
    backing->created = false;
    backing->fd = open (path, flags);
    if (backing->fd == -1 && errno == ENOENT)
      return 0;
  }
  if (backing->fd == -1) {
    snprintf (error, error_size, "%s: cannot open the store: %m%s", path,
              errno == ENOENT ? "; create its directory first" : "");
    return -1;
  }
  if (fstat (backing->fd, st) == -1) {
    snprintf (error, error_size, "%s: cannot open the store: %m", path);
    return -1;
  }
  if (!S_ISREG (st->st_mode)) {
    snprintf (error, error_size,
              "%s: cannot be the store: not a regular file; name one on "
              "tmpfs, or one that does not exist yet",
              path);
    return -1;
  }
  if (flock (backing->fd, LOCK_EX | LOCK_NB) == -1) {
    /* Whoever holds it uses the file now: it is not ours to take back. */
    backing->created = false;
    if (errno == EWOULDBLOCK)
      snprintf (error, error_size,
                "%s: the store is in use by another process; stop that, or "
                "give each node a file of its own",
                path);
    else
      snprintf (error, error_size, "%s: cannot lock the store: %m", path);
    return -1;
  }
  if (fstat (backing->fd, st) == 0 && st->st_nlink > 0)
    return 1;
  backing->created = false;
  return 0;
}

/* Where do the file's pages come from? */
static void
find_kind (struct tl_backing *backing)
{
  struct statfs fs;
  struct statx stx;

  backing->locks_memory = true;
  if (fstatfs (backing->fd, &fs) == 0) {
    backing->from_memory = fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC;
    if (fs.f_type == HUGETLBFS_MAGIC) /* out of its own pool */
      backing->locks_memory = false;
  }
#ifdef STATX_ATTR_DAX
  if (statx (backing->fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stx) == 0 &&
      (stx.stx_attributes & STATX_ATTR_DAX))
    backing->locks_memory = false;
#endif
}

int
tl_backing_open (struct tl_backing *backing, const char *path, uint64_t size,
                 char *error, size_t error_size)
{
  struct stat st;
  unsigned tries;
  int r = 0;

  *backing = (struct tl_backing){.fd = -1, .path = path, .size = size};
  if (path == NULL)
    return open_memfd (backing, error, error_size);
  for (tries = 0; tries < OPEN_TRIES && r == 0; tries++) {
    r = open_file_once (backing, &st, error, error_size);
    if (r == 0)
      tl_backing_close (backing, false);
  }
  if (r == 0)
    snprintf (error, error_size,
              "%s: cannot open the store: it comes and goes; is another node "
              "being started with it?",
              path);
  if (r == 1 && st.st_size != 0 && (uint64_t)st.st_size != size) {
    snprintf (error, error_size,
              "%s: cannot be the store: it has %" PRIu64 " bytes, the volume "
              "%" PRIu64 "; give that size=, or remove the file if its "
              "content is not needed",
              path, (uint64_t)st.st_size, size);
    r = -1;
  }
  if (r != 1) {
    tl_backing_close (backing, true);
    return -1;
  }
  backing->grown = !backing->created && st.st_size == 0;
  backing->present = (uint64_t)st.st_blocks * 512;
  find_kind (backing);
  return 0;
}

int
tl_backing_grow (struct tl_backing *backing, char *error, size_t error_size)
{
  int r;

  if (backing->path != NULL && !backing->created && !backing->grown)
    return 0;
  do
    r = ftruncate (backing->fd, (off_t)backing->size);
  while (r == -1 && errno == EINTR);
  if (r == 0)
    return 0;
  snprintf (error, error_size,
            "%s: cannot make the store %" PRIu64 " bytes large: %m",
            backing->path ? backing->path : "memfd", backing->size);
  return -1;
}

void
tl_backing_close (struct tl_backing *backing, bool undo)
{
  if (backing->fd == -1)
    return;
  /* Before the lock goes with the descriptor.  Best effort: the error that
   * brought us here is the one to report.
   */
  if (undo && backing->created)
    unlink (backing->path);
  else if (undo && backing->grown && ftruncate (backing->fd, 0) == -1)
    backing->grown = false;
  close (backing->fd);
  backing->fd = -1;
}
