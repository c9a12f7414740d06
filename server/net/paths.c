#include "net/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As much as a state file may hold, and more. */
#define TRIAL_BYTES 32768

char *
tl_path_absolute (const char *path)
{
  char *directory, *absolute = NULL;

  if (path[0] == '/')
    return strdup (path);
  directory = getcwd (NULL, 0);
  if (directory && asprintf (&absolute, "%s/%s", directory, path) == -1)
    absolute = NULL;
  free (directory);
  return absolute;
}

/* The directory of an absolute PATH, to be freed. */
static char *
parent_of (const char *path)
{
  const char *slash = strrchr (path, '/');

  if (!slash || slash == path)
    return strdup ("/");
  return strndup (path, (size_t)(slash - path));
}

int
tl_path_make_parent (const char *key, const char *path, char *error,
                     size_t error_size)
{
  char *directory = parent_of (path);
  int r = -1;

  if (!directory) {
    snprintf (error, error_size, "%s=%s: no memory", key, path);
    return -1;
  }
  if (mkdir (directory, 0700) == 0)
    r = 1;
  else if (errno == EEXIST)
    r = 0;
  else
    snprintf (error, error_size, "%s=%s: cannot make the directory %s: %s", key,
              path, directory, strerror (errno));
  free (directory);
  return r;
}

void
tl_path_remove_parent (const char *path)
{
  char *directory = parent_of (path);

  if (directory)
    rmdir (directory);
  free (directory);
}

static int
write_trial (int fd)
{
  static const char zeroes[4096];

  for (size_t done = 0; done < TRIAL_BYTES;) {
    ssize_t n = write (fd, zeroes, sizeof zeroes);

    if (n == -1)
      return -1;
    done += (size_t)n;
  }
  return fsync (fd);
}

int
tl_path_check_writable (const char *key, const char *path, char *error,
                        size_t error_size)
{
  char *trial;
  int fd, failed = 0;

  if (asprintf (&trial, "%s.XXXXXX", path) == -1) {
    snprintf (error, error_size, "%s=%s: no memory", key, path);
    return -1;
  }
  fd = mkostemp (trial, O_CLOEXEC);
  if (fd == -1 || write_trial (fd) == -1)
    failed = errno;
  if (fd != -1) {
    close (fd);
    unlink (trial);
  }
  free (trial);
  if (!failed)
    return 0;
  snprintf (error, error_size,
            "%s=%s: cannot write files in that directory: %s", key, path,
            strerror (failed));
  return -1;
}
