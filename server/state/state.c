/* The state file on the disk.
 *
 * Saving: PATH.new is written, fsynced and renamed to PATH, then the directory
 * is fsynced.  A failure or a crash before the rename leaves the old file as
 * it was; the next save replaces a PATH.new that was left.  Where the last
 * fsync fails the new content is in place but perhaps not durable, and the
 * save counts as failed.  Everything goes through one descriptor of the
 * directory, so that one that is renamed meanwhile gets all steps or none.
 */
#include "state.h"

#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* A full history is about 10 KiB. */
#define FILE_MAX (256u << 10)

static const char *
what_helps (void)
{
  switch (errno) {
  case ENOENT:
    return "; create its directory, or give another state=";
  case EACCES:
  case EPERM:
  case EROFS:
    return "; the node's user must be able to write there, or give another "
           "state=";
  case ENOSPC:
  case EDQUOT:
    return "; free space there, the file needs 64 KiB at most";
  default:
    return "";
  }
}

/* Report errno; DOING says what failed.  Returns -1. */
static int
fail (const char *path, const char *doing, char *error, size_t error_size)
{
  snprintf (error, error_size, "%s: cannot %s: %m%s", path, doing,
            what_helps ());
  return -1;
}

/* ---- Load ---- */

/* Read all of FD into TEXT.  The length, or -1. */
static ssize_t
read_all (int fd, char *text, size_t space)
{
  size_t length = 0;
  ssize_t r;

  while (length < space) {
    r = read (fd, text + length, space - length);
    if (r == -1 && errno == EINTR)
      continue;
    if (r == -1)
      return -1;
    if (r == 0)
      break;
    length += (size_t)r;
  }
  return (ssize_t)length;
}

static int
load_from (int fd, const char *path, char *text, struct tl_record *record,
           char *error, size_t error_size)
{
  const char *why;
  struct stat st;
  ssize_t length;

  if (fstat (fd, &st) == -1)
    return fail (path, "read the state file", error, error_size);
  if (!S_ISREG (st.st_mode)) {
    snprintf (error, error_size,
              "%s: cannot read the state file: not a regular file; give "
              "another state=",
              path);
    return -1;
  }
  length = read_all (fd, text, FILE_MAX + 1);
  if (length == -1)
    return fail (path, "read the state file", error, error_size);
  if ((size_t)length > FILE_MAX)
    why = "it is too long";
  else if (tl_record_parse (text, (size_t)length, record, &why) == 0)
    return 0;
  snprintf (error, error_size,
            "%s: the state file cannot be used: %s; if the other node has the "
            "data, move the file away: this node then starts as a fresh "
            "partner and is filled",
            path, why);
  return -1;
}

int
tl_state_load (const char *path, struct tl_record *record, char *error,
               size_t error_size)
{
  char *text;
  int fd, r;

  fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd == -1 && errno == ENOENT)
    return 1;
  if (fd == -1)
    return fail (path, "read the state file", error, error_size);
  text = malloc (FILE_MAX + 1);
  if (text == NULL)
    r = fail (path, "read the state file", error, error_size);
  else
    r = load_from (fd, path, text, record, error, error_size);
  free (text);
  close (fd);
  return r;
}

/* ---- Save ---- */

static int
write_all (int fd, const char *text, size_t length)
{
  ssize_t r;

  while (length > 0) {
    r = write (fd, text, length);
    if (r == -1 && errno == EINTR)
      continue;
    if (r == -1)
      return -1;
    text += r;
    length -= (size_t)r;
  }
  return 0;
}

/* Write TEXT to the new file NAME, durably.  0, or -1 and errno. */
static int
write_new (int dir, const char *name, const char *text)
{
  int fd, number, r;

  /* Left by a crash; the lock says that nobody else is writing it. */
  if (unlinkat (dir, name, 0) == -1 && errno != ENOENT)
    return -1;
  fd = openat (dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd == -1)
    return -1;
  r = write_all (fd, text, strlen (text));
  if (r == 0)
    r = write_all (fd, "\n", 1);
  if (r == 0)
    r = fsync (fd);
  number = errno;
  if (close (fd) == -1 && r == 0) {
    number = errno;
    r = -1;
  }
  errno = number;
  return r;
}

static int
save_in (int dir, const char *path, const char *base, const char *text,
         char *error, size_t error_size)
{
  char new[NAME_MAX + 1];
  int number;

  if ((size_t)snprintf (new, sizeof new, "%s.new", base) >= sizeof new) {
    errno = ENAMETOOLONG;
    return fail (path, "write the state file", error, error_size);
  }
  if (write_new (dir, new, text) == -1 ||
      renameat (dir, new, dir, base) == -1) {
    number = errno;
    unlinkat (dir, new, 0);
    errno = number;
    return fail (path, "write the state file", error, error_size);
  }
  if (fsync (dir) == -1)
    return fail (path, "make the state file durable", error, error_size);
  return 0;
}

int
tl_state_save (const char *path, const struct tl_record *record, char *error,
               size_t error_size)
{
  char for_dir[PATH_MAX], for_base[PATH_MAX];
  const char *why;
  char *text;
  int dir, r;

  if (strlen (path) >= PATH_MAX) {
    errno = ENAMETOOLONG;
    return fail (path, "write the state file", error, error_size);
  }
  strcpy (for_dir, path);
  strcpy (for_base, path);
  text = tl_record_print (record, &why);
  if (text == NULL) {
    snprintf (error, error_size, "%s: cannot write the state file: %s", path,
              why);
    return -1;
  }
  dir = open (dirname (for_dir), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir == -1)
    r = fail (path, "write the state file", error, error_size);
  else {
    r = save_in (dir, path, basename (for_base), text, error, error_size);
    close (dir);
  }
  free (text);
  return r;
}

/* ---- Lock ---- */

int
tl_state_lock (const char *path, char *error, size_t error_size)
{
  char name[PATH_MAX];
  int fd;

  if ((size_t)snprintf (name, sizeof name, "%s.lock", path) >= sizeof name) {
    errno = ENAMETOOLONG;
    return fail (path, "lock the state file", error, error_size);
  }
  fd = open (name, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
  if (fd == -1)
    return fail (path, "lock the state file", error, error_size);
  if (flock (fd, LOCK_EX | LOCK_NB) == 0)
    return fd;
  if (errno == EWOULDBLOCK)
    snprintf (error, error_size,
              "%s: the state file is in use by another node; stop that, or "
              "give each node a state= of its own",
              path);
  else
    fail (path, "lock the state file", error, error_size);
  close (fd);
  return -1;
}
