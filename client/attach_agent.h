/* The agent: the process that stays with an attached device and gives it a new
 * connection where the old one ended.  One thread.
 */
#ifndef TWINLOG_CLIENT_ATTACH_AGENT_H
#define TWINLOG_CLIENT_ATTACH_AGENT_H

#include "attach_kernel.h"
#include "attach_lock.h"

struct agent {
  const char *volume;
  const char *control; /* path of the control socket */
  const char *socket;  /* path of the NBD socket */
  const char *identifier;
  unsigned handshake; /* milliseconds that one may take */
  unsigned reconnect; /* seconds that requests wait */
  bool foreground;    /* log to standard error */
  int fd;             /* of the connection, -1: not ours, its state unknown */
  struct lock lock;   /* held */
  struct lock_content content; /* what is known; the pid is filled in */
};

/* Stay until the device is detached or must not go on.  Closes what AGENT
 * holds and returns the exit status of the process.
 */
int agent_run (struct agent *agent);

#endif
