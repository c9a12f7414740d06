#include "attach_device.h"

#include "core/view.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK_DIRECTORY "/sys/block"
#define MARK "twinlog"
#define INDEX_MOST 1048575

int
device_parse (const char *name)
{
  unsigned long index;
  char *end;

  if (strncmp (name, "/dev/", 5) == 0)
    name += 5;
  if (strncmp (name, "nbd", 3) != 0 || name[3] < '0' || name[3] > '9')
    return DEVICE_NONE;
  errno = 0;
  index = strtoul (name + 3, &end, 10);
  return errno || *end || index > INDEX_MOST ? DEVICE_NONE : (int)index;
}

/* ---- sysfs ---- */

/* The first line of a file of the device; false: there is none. */
static bool
read_line (int index, const char *name, char *text, size_t size)
{
  char path[PATH_MAX];
  ssize_t n;
  int fd;

  snprintf (path, sizeof path, BLOCK_DIRECTORY "/nbd%d/%s", index, name);
  fd = open (path, O_RDONLY | O_CLOEXEC);
  if (fd == -1)
    return false;
  n = read (fd, text, size - 1);
  close (fd);
  if (n <= 0)
    return false;
  text[n] = '\0';
  text[strcspn (text, "\n")] = '\0';
  return true;
}

bool
device_set (int index, const char *file, const char *text)
{
  char path[PATH_MAX];
  int fd, error;
  bool ok;

  snprintf (path, sizeof path, BLOCK_DIRECTORY "/nbd%d/%s", index, file);
  fd = open (path, O_WRONLY | O_CLOEXEC);
  if (fd == -1)
    return false;
  ok = write (fd, text, strlen (text)) == (ssize_t)strlen (text);
  error = errno;
  close (fd);
  errno = error;
  return ok;
}

uint64_t
device_size (int index)
{
  char text[32];

  return read_line (index, "size", text, sizeof text)
             ? strtoull (text, NULL, 10) * 512
             : 0;
}

/* ---- Whose it is ---- */

void
device_identifier (const char *uuid, const char *volume, char *text)
{
  snprintf (text, DEVICE_IDENTIFIER_SIZE, MARK " %s %s", uuid, volume);
}

bool
device_has (int index, const char *identifier)
{
  char text[DEVICE_IDENTIFIER_SIZE];

  return read_line (index, "backend", text, sizeof text) &&
         strcmp (text, identifier) == 0;
}

bool
device_volume (int index, char *volume, size_t size)
{
  char text[DEVICE_IDENTIFIER_SIZE];
  const char *last;

  if (!read_line (index, "backend", text, sizeof text) ||
      strncmp (text, MARK " ", strlen (MARK " ")) != 0)
    return false;
  last = strrchr (text, ' ') + 1;
  snprintf (volume, size, "%s", last);
  return true;
}

int
device_find (const char *volume)
{
  DIR *directory = opendir (BLOCK_DIRECTORY);
  const struct dirent *entry;
  char name[TL_NAME_SIZE];
  int found = DEVICE_NONE;

  if (!directory)
    return DEVICE_NONE;
  while ((entry = readdir (directory))) {
    int index = device_parse (entry->d_name);

    if (index != DEVICE_NONE && device_volume (index, name, sizeof name) &&
        strcmp (name, volume) == 0)
      found = found == DEVICE_NONE ? index : DEVICE_SEVERAL;
  }
  closedir (directory);
  return found;
}

/* ---- Who uses it ---- */

/* Is the file behind PATH the device, or a partition of it? */
static bool
is_device (const char *path, int index)
{
  char link[PATH_MAX], name[32];
  ssize_t n = readlink (path, link, sizeof link - 1);
  size_t length;

  snprintf (name, sizeof name, "/dev/nbd%d", index);
  length = strlen (name);
  if (n <= 0)
    return false;
  link[n] = '\0';
  return strncmp (link, name, length) == 0 &&
         (link[length] < '0' || link[length] > '9');
}

static bool
process_has (const char *pid, int index)
{
  char path[PATH_MAX];
  const struct dirent *entry;
  DIR *directory;
  bool found = false;

  snprintf (path, sizeof path, "/proc/%s/fd", pid);
  directory = opendir (path);
  if (!directory)
    return false;
  while (!found && (entry = readdir (directory))) {
    snprintf (path, sizeof path, "/proc/%s/fd/%s", pid, entry->d_name);
    found = entry->d_name[0] != '.' && is_device (path, index);
  }
  closedir (directory);
  return found;
}

static bool
find_process (int index, char *who, size_t size)
{
  DIR *directory = opendir ("/proc");
  const struct dirent *entry;
  bool found = false;

  if (!directory)
    return false;
  while (!found && (entry = readdir (directory)))
    if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
        process_has (entry->d_name, index)) {
      snprintf (who, size, "process %s has it open", entry->d_name);
      found = true;
    }
  closedir (directory);
  return found;
}

/* Whoever mounts, imports, swaps to or stacks on a device, or on a partition
 * of it, claims the whole for itself.
 */
bool
device_in_use (int index, char *who, size_t size)
{
  char path[32];
  int fd;

  if (find_process (index, who, size))
    return true;
  snprintf (path, sizeof path, "/dev/nbd%d", index);
  fd = open (path, O_RDONLY | O_EXCL | O_CLOEXEC | O_NONBLOCK);
  if (fd == -1 && errno == EBUSY) {
    snprintf (who, size,
              "it is mounted, in a pool, swapped to, or below "
              "another device");
    return true;
  }
  if (fd != -1)
    close (fd);
  return false;
}
