#include "arguments.h"
#include "attach.h"
#include "attach_device.h"
#include "attach_kernel.h"
#include "attach_lock.h"
#include "attach_name.h"
#include "commands.h"

#include "core/core.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WAIT 10000  /* milliseconds for the agent, and for the device, to go */
#define INTERVAL 20 /* milliseconds between looks */

static int
report (const char *volume, const char *what)
{
  printf ("%s is %s\n", volume, what);
  return fflush (stdout) == 0
             ? TL_DONE
             : command_complain (TL_FAILED, "cannot write: %m");
}

/* Which device and volume are meant? */
static int
find (const struct arguments *arguments, int *index, char *volume, size_t size)
{
  const char *device = arguments->value[OPTION_DEVICE];

  if (arguments->volume)
    snprintf (volume, size, "%s", arguments->volume);
  if (!device) {
    *index = device_find (volume);
    if (*index == DEVICE_SEVERAL)
      return command_complain (
          TL_USAGE,
          "several devices are attached to volumes of the name "
          "%s: name one with --device",
          volume);
    return TL_DONE;
  }
  *index = device_parse (device);
  if (!device_volume (*index, volume, size)) {
    if (arguments->volume && !device_size (*index)) {
      *index = DEVICE_NONE;
      return TL_DONE;
    }
    return command_complain (
        TL_REFUSED, "%s is not a device that twinlog attached", device);
  }
  if (arguments->volume && strcmp (volume, arguments->volume) != 0)
    return command_complain (TL_REFUSED, "%s has the volume %s, not %s", device,
                             volume, arguments->volume);
  return TL_DONE;
}

/* End the agent, which would connect the device again, and take its lock. */
static int
end_agent (const char *volume, struct lock *lock)
{
  struct lock_content content;
  char error[512];
  int status;

  for (int waited = 0;; waited += INTERVAL) {
    status = lock_take (lock, volume, error, sizeof error);
    if (status == TL_DONE)
      return TL_DONE;
    if (status != TL_REFUSED)
      return command_complain (status, "%s", error);
    if (waited >= WAIT)
      return command_complain (TL_TIMED_OUT, "%s, which does not end", error);
    if (lock_read (volume, &content))
      kill (content.pid, SIGTERM);
    poll (NULL, 0, INTERVAL);
  }
}

static int
disconnect (const char *volume, int index)
{
  struct kernel kernel;
  char error[512];
  int status;

  status = kernel_open (&kernel, false, error, sizeof error);
  if (status == TL_DONE) {
    status = kernel_disconnect (&kernel, index, error, sizeof error);
    kernel_close (&kernel);
  }
  if (status != TL_DONE)
    return command_complain (status, "%s", error);
  for (int waited = 0; device_size (index); waited += INTERVAL) {
    if (waited >= WAIT)
      return command_complain (
          TL_TIMED_OUT,
          "/dev/nbd%d is disconnected and fails every request, "
          "but stays until its last user has closed it",
          index);
    poll (NULL, 0, INTERVAL);
  }
  name_remove (volume, index);
  return TL_DONE;
}

int
command_detach (const struct arguments *arguments)
{
  char volume[TL_NAME_SIZE] = "", who[128];
  struct lock lock;
  int index, status;

  if (!arguments->volume && !arguments->given[OPTION_DEVICE])
    return command_complain (TL_USAGE,
                             "detach needs the name of a volume or --device");
  status = find (arguments, &index, volume, sizeof volume);
  if (status != TL_DONE)
    return status;
  if (index == DEVICE_NONE)
    return report (volume, "not attached");
  if (!arguments->given[OPTION_DISCONNECT] &&
      device_in_use (index, who, sizeof who))
    return command_complain (
        TL_REFUSED,
        "/dev/nbd%d is in use: %s. End that first: umount, zpool "
        "export or zpool remove; or use --disconnect, which fails "
        "its requests",
        index, who);
  status = end_agent (volume, &lock);
  if (status != TL_DONE)
    return status;
  status = disconnect (volume, index);
  lock_release (&lock, status == TL_DONE);
  return status == TL_DONE ? report (volume, "detached") : status;
}
