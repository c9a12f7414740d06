#include "attach_name.h"
#include "attach_device.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORY "/dev/disk/by-id"
#define UDEV "/run/udev/control" /* is there while udev runs */
#define UDEV_TIME 5000           /* milliseconds that it has */
#define INTERVAL 50              /* milliseconds between looks */

void
name_path (const char *volume, char *path)
{
  snprintf (path, NAME_PATH_SIZE, DIRECTORY "/twinlog-%s", volume);
}

static bool
leads_to (const char *path, int index)
{
  char target[PATH_MAX], device[32];
  ssize_t n = readlink (path, target, sizeof target - 1);
  const char *base;

  if (n <= 0)
    return false;
  target[n] = '\0';
  base = strrchr (target, '/');
  snprintf (device, sizeof device, "nbd%d", index);
  return strcmp (base ? base + 1 : target, device) == 0;
}

static bool
udev_makes (const char *path, int index)
{
  if (access (UDEV, F_OK) == -1)
    return false;
  for (int waited = 0; waited < UDEV_TIME; waited += INTERVAL) {
    if (leads_to (path, index))
      return true;
    poll (NULL, 0, INTERVAL);
  }
  return false;
}

/* The event of the connection came before the kernel had the identifier that
 * the rule looks at: hence another one.
 */
bool
name_make (const char *volume, int index)
{
  char path[NAME_PATH_SIZE], fresh[NAME_PATH_SIZE + 32], target[32];

  name_path (volume, path);
  device_set (index, "uevent", "change");
  if (udev_makes (path, index))
    return true;
  mkdir ("/dev/disk", 0755);
  mkdir (DIRECTORY, 0755);
  snprintf (target, sizeof target, "../../nbd%d", index);
  snprintf (fresh, sizeof fresh, "%s.%d", path, (int)getpid ());
  unlink (fresh);
  if (symlink (target, fresh) == -1)
    return false;
  if (rename (fresh, path) == 0)
    return true;
  unlink (fresh);
  return false;
}

void
name_remove (const char *volume, int index)
{
  char path[NAME_PATH_SIZE];

  name_path (volume, path);
  device_set (index, "uevent", "change");
  if (leads_to (path, index))
    unlink (path);
}
