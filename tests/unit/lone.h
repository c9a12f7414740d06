/* One core by itself, «a», and what a peer «b» would say to it: for what two
 * cores never come to say to each other.
 */
#ifndef TWINLOG_UNIT_LONE_H
#define TWINLOG_UNIT_LONE_H

#include "core/core.h"

#define LONE_BLOCKS 8192u

struct lone {
  struct tl_core *core;
  struct tl_core_config config;
  struct tl_record record; /* what it starts with */
  struct tl_hello hello;   /* what the peer says */
  struct tl_kept kept;
  uint64_t kept_map[LONE_BLOCKS / 64 + 1];
  struct tl_map allocated;
  struct tl_update update; /* of the last step */
};

/* A node with RAM that was kept, which counts as a complete member of view 1 of
 * a and b, primary b; and a peer that is primary in it.  Change what the test
 * needs to be otherwise before lone_start.
 */
void lone_init (struct lone *l);
void lone_start (struct lone *l);
void lone_free (struct lone *l);

/* Give it one event, at the one moment that there is. */
void lone_step (struct lone *l, struct tl_event *event);

/* Give it a frame of its connection; the rest of the event is filled in. */
void lone_give (struct lone *l, struct tl_frame frame, const void *payload);

/* The peer connects and says hello; then it welcomes: the id of the session. */
void lone_hello (struct lone *l);
uint64_t lone_welcome (struct lone *l);

/* What the last step sends of that type; fails the test where it does not. */
const struct tl_action *lone_sent (const struct lone *l, uint8_t type);

#endif
