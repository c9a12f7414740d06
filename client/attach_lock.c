#include "attach_lock.h"
#include "attach_device.h"
#include "control.h"

#include "core/core.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static void
path_of (const char *volume, char *path, size_t size)
{
  snprintf (path, size, CONTROL_DIRECTORY "/%s.attach", volume);
}

/* A file that its owner removes between our open and our lock is no lock. */
int
lock_take (struct lock *lock, const char *volume, char *error,
           size_t error_size)
{
  struct stat st;

  mkdir (CONTROL_DIRECTORY, 0755);
  path_of (volume, lock->path, sizeof lock->path);
  for (;;) {
    lock->fd = open (lock->path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (lock->fd == -1) {
      snprintf (error, error_size, "cannot open %s: %m", lock->path);
      return TL_FAILED;
    }
    if (flock (lock->fd, LOCK_EX | LOCK_NB) == -1) {
      bool held = errno == EWOULDBLOCK;

      snprintf (error, error_size,
                held ? "%s is locked by another process" : "cannot lock %s: %m",
                lock->path);
      close (lock->fd);
      return held ? TL_REFUSED : TL_FAILED;
    }
    if (fstat (lock->fd, &st) == 0 && st.st_nlink > 0)
      return TL_DONE;
    close (lock->fd);
  }
}

void
lock_release (struct lock *lock, bool remove)
{
  if (remove)
    unlink (lock->path);
  close (lock->fd);
}

/* The process id stands alone on the first line, as service managers read
 * it.
 */
bool
lock_write (struct lock *lock, const struct lock_content *content)
{
  const struct rules_known *known = &content->known;
  char text[512];
  int length;

  length = snprintf (
      text, sizeof text, "%d\nnbd%d\n%" PRIu64 "\n%s %s %lld\n%lld %s %lld\n",
      (int)content->pid, content->index, content->flags, known->uuid,
      known->node, (long long)known->size, (long long)known->view, known->id,
      (long long)known->promotions);
  return pwrite (lock->fd, text, (size_t)length, 0) == length &&
         ftruncate (lock->fd, length) == 0;
}

bool
lock_read (const char *volume, struct lock_content *content)
{
  struct rules_known *known = &content->known;
  long long size, view, promotions;
  char path[256];
  FILE *file;
  int pid, n;

  path_of (volume, path, sizeof path);
  file = fopen (path, "re");
  if (!file)
    return false;
  n = fscanf (file, "%d nbd%d %" SCNu64 " %36s %63s %lld %lld %16s %lld", &pid,
              &content->index, &content->flags, known->uuid, known->node, &size,
              &view, known->id, &promotions);
  fclose (file);
  if (n != 9 || pid <= 0 || content->index < 0)
    return false;
  content->pid = pid;
  known->size = size;
  known->view = view;
  known->promotions = promotions;
  return true;
}
