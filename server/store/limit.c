/* Limits of memory locks, files and file systems; those of memory itself are
 * in memory.c.
 */
#include "limit.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *
tl_amount (uint64_t bytes, char text[TL_AMOUNT_TEXT])
{
  if (bytes >= UINT64_C (10) << 20)
    snprintf (text, TL_AMOUNT_TEXT, "%" PRIu64 " MiB", bytes >> 20);
  else
    snprintf (text, TL_AMOUNT_TEXT, "%" PRIu64 " KiB", bytes >> 10);
  return text;
}

/* Ask the kernel for the effective set: libcap would be one more dependency
 * for one bit.
 */
static bool
may_lock_beyond_limit (void)
{
  struct __user_cap_header_struct header = {.version =
                                                _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

  memset (data, 0, sizeof data);
  if (syscall (SYS_capget, &header, data) == -1)
    return false;
  return data[CAP_TO_INDEX (CAP_IPC_LOCK)].effective &
         CAP_TO_MASK (CAP_IPC_LOCK);
}

/* What this process has locked already, in bytes. */
static uint64_t
locked_now (void)
{
  FILE *file = fopen ("/proc/self/status", "re");
  char line[256];
  uint64_t kib = 0;

  if (file == NULL)
    return 0;
  while (fgets (line, sizeof line, file))
    if (sscanf (line, "VmLck: %" SCNu64, &kib) == 1)
      break;
  fclose (file);
  return kib << 10;
}

int
tl_limit_lock (uint64_t needed, char *error, size_t error_size)
{
  struct rlimit limit;
  char a[TL_AMOUNT_TEXT], b[TL_AMOUNT_TEXT];

  if (may_lock_beyond_limit () || getrlimit (RLIMIT_MEMLOCK, &limit) == -1)
    return 0;
  needed += locked_now ();
  if (limit.rlim_cur == RLIM_INFINITY || needed <= limit.rlim_cur)
    return 0;
  if (limit.rlim_max == RLIM_INFINITY || needed <= limit.rlim_max) {
    limit.rlim_cur = needed;
    if (setrlimit (RLIMIT_MEMLOCK, &limit) == 0)
      return 0;
  }
  snprintf (error, error_size,
            "cannot lock memory: %s are needed, the limit RLIMIT_MEMLOCK is "
            "%s; raise it (LimitMEMLOCK=, ulimit -l) or give lock=off",
            tl_amount (needed, a), tl_amount (limit.rlim_max, b));
  return -1;
}

int
tl_limit_file (uint64_t size, char *error, size_t error_size)
{
  struct rlimit limit;
  char a[TL_AMOUNT_TEXT], b[TL_AMOUNT_TEXT];

  if (getrlimit (RLIMIT_FSIZE, &limit) == -1 ||
      limit.rlim_cur == RLIM_INFINITY || size <= limit.rlim_cur)
    return 0;
  snprintf (error, error_size,
            "the store needs a file of %s, the limit RLIMIT_FSIZE is %s; "
            "raise it (LimitFSIZE=, ulimit -f)",
            tl_amount (size, a), tl_amount (limit.rlim_cur, b));
  return -1;
}

int
tl_limit_space (int fd, const char *path, uint64_t needed, char *error,
                size_t error_size)
{
  struct statvfs fs;
  char a[TL_AMOUNT_TEXT], b[TL_AMOUNT_TEXT];
  uint64_t free_bytes;

  /* A file system without blocks is one without a limit (tmpfs size=0). */
  if (fstatvfs (fd, &fs) == -1 || fs.f_blocks == 0)
    return 0;
  free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
  if (needed <= free_bytes)
    return 0;
  snprintf (error, error_size,
            "%s: %s are needed, its file system has %s free; enlarge it or "
            "choose a smaller size=",
            path, tl_amount (needed, a), tl_amount (free_bytes, b));
  return -1;
}
