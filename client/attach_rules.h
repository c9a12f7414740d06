/* When an attached device may be given a new connection: the device's users
 * took what they read and wrote for the volume's one history, so that it must
 * not go on where another node has served in between, or where the RAM was
 * lost.  Pure: what a node's status says, compared with what was known.
 */
#ifndef TWINLOG_CLIENT_ATTACH_RULES_H
#define TWINLOG_CLIENT_ATTACH_RULES_H

#include "core/view.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* What was true of the node while the device was last known to be served. */
struct rules_known {
  char uuid[37];
  char node[TL_NAME_SIZE];
  json_int_t size;
  json_int_t view; /* its number */
  char id[17];     /* the view's */
  json_int_t promotions;
};

enum rules_verdict {
  RULES_GO,   /* it may be connected, or is rightly so */
  RULES_WAIT, /* not now */
  RULES_LOST  /* never again */
};

/* Take what is known from a node's status; false: that lacks something. */
bool rules_learn (struct rules_known *known, const json_t *node);

/* Judge the status of the node that the device is connected to now: does it
 * still serve as it did?
 */
enum rules_verdict rules_connected (const struct rules_known *known,
                                    const json_t *node, char *why, size_t size);

/* Judge the status of a node to which the device has no connection: may it
 * have one?  See rules_alone for OWN.
 */
enum rules_verdict rules_disconnected (const struct rules_known *known,
                                       const json_t *node, unsigned own,
                                       char *why, size_t size);

/* Are OWN connections, which are ours, all that the node counts?  More: what
 * was sent on an earlier one may still be on its way into the RAM, where it
 * would land on what is written over the new one.  Less: it is another node
 * that ours lead to.
 */
enum rules_verdict rules_alone (const json_t *node, unsigned own, char *why,
                                size_t size);

#endif
