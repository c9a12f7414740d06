/* /run/twinlog/VOLUME.attach: one agent per volume holds it locked, and keeps
 * there what whoever comes after it has to know.
 */
#ifndef TWINLOG_CLIENT_ATTACH_LOCK_H
#define TWINLOG_CLIENT_ATTACH_LOCK_H

#include "attach_rules.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct lock {
  int fd;
  char path[256];
};

/* What the file says. */
struct lock_content {
  pid_t pid;      /* the agent */
  int index;      /* of the device */
  uint64_t flags; /* of the export, as the kernel was told */
  struct rules_known known;
};

/* Take the lock of VOLUME.  An exit status: TL_REFUSED where another process
 * has it.  Where not 0, one line is in ERROR.
 */
int lock_take (struct lock *lock, const char *volume, char *error,
               size_t error_size);

/* Let go of it; with REMOVE the file goes too. */
void lock_release (struct lock *lock, bool remove);

/* Write what the agent knows; false with errno set. */
bool lock_write (struct lock *lock, const struct lock_content *content);

/* Read the file of VOLUME, locked or not; false: there is none, or it was not
 * written yet.
 */
bool lock_read (const char *volume, struct lock_content *content);

#endif
