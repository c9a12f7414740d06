/* Making a device of a volume. */
#ifndef TWINLOG_CLIENT_ATTACH_CONNECT_H
#define TWINLOG_CLIENT_ATTACH_CONNECT_H

#include "attach_agent.h"
#include "attach_device.h"
#include "control.h"

#include <jansson.h>

struct arguments;

/* One attachment under way. */
struct attaching {
  const struct arguments *arguments;
  const char *volume;
  char control[CONTROL_PATH_SIZE];
  char socket[CONTROL_PATH_SIZE];
  char identifier[DEVICE_IDENTIFIER_SIZE];
  json_t *node;     /* its status */
  unsigned timeout; /* of requests in the kernel, seconds, 0: none */
  struct agent agent;
};

/* Connect the volume to the kernel, if the node is primary and nobody else is
 * attached to it; fills the agent's descriptor and what is known.  An exit
 * status; where not 0 it was said why.
 */
int attach_connect (struct attaching *a);

#endif
