/* Two cores in one process, for tests of single rules.  Everything that a core
 * asks for happens when the test says so: cluster_run carries frames, record
 * writes and answers of the arbiter back and forth until nothing moves.
 */
#ifndef TWINLOG_UNIT_CLUSTER_H
#define TWINLOG_UNIT_CLUSTER_H

#include "core/core.h"

#include <stdbool.h>

#define BLOCKS 16u
#define SIZE ((uint64_t)BLOCKS * TL_BLOCK)
#define DEADLINE 1000000u /* microseconds */
#define QUEUE 256u
#define REPLIES 16u

struct packet {
  struct tl_frame frame;
  unsigned char *payload;
};

/* One direction of one connection. */
struct pipe {
  struct packet packets[QUEUE];
  unsigned n;
};

struct node {
  const char *name;
  struct tl_core *core;
  struct tl_record record; /* the state file */
  bool has_record;
  unsigned char bytes[SIZE];
  struct tl_map allocated;
  uint64_t incarnation;
  struct tl_kept kept; /* with the cluster's `keep` */
  uint64_t kept_map[BLOCKS / 64 + 1];
  bool killed; /* its RAM is there still */
  struct tl_update update;
  uint64_t wake;
  bool store_wanted, ask_wanted, dial_wanted;
  struct tl_action ask;
  struct {
    int status;
    char text[256];
  } replies[REPLIES];
  unsigned n_replies;
  char log[8192];
};

struct cluster {
  struct node nodes[2];
  uint64_t now, random;
  bool arbiter;
  enum tl_policy policy;
  struct tl_core_config extra; /* reads_local, auto_promote, resync_rate */
  bool keep;            /* the RAM outlives the process, as with store= */
  bool link;            /* dials succeed, frames travel */
  bool hold_acks;       /* acknowledgements stay on the way */
  bool hold_frames;     /* all frames do */
  unsigned hold_stores; /* bit I: record writes of node I stay on the way */
  unsigned fail_stores; /* bit I: they fail */
  bool arbiter_up;
  bool arbiter_mute; /* it swaps, and its answer is lost */
  struct tl_uuid arbiter_uuid;
  struct tl_view arbiter_view;
  uint32_t conn;        /* of both, 0: none */
  struct pipe pipes[2]; /* by sender */
};

struct unit_request {
  struct tl_request core;
  unsigned char bytes[4 * TL_BLOCK];
  bool done;
};

void cluster_init (struct cluster *c, enum tl_policy policy);
void cluster_free (struct cluster *c);

/* Start node I, with its RAM lost if it ran before. */
void cluster_start (struct cluster *c, unsigned i);
void cluster_crash (struct cluster *c, unsigned i);

/* End node I and leave its RAM; for a cluster with `keep`. */
void cluster_kill (struct cluster *c, unsigned i);

/* Carry everything until nothing moves; time stands still. */
void cluster_run (struct cluster *c);

/* Give one event to node I, and carry nothing. */
void cluster_step (struct cluster *c, unsigned i, struct tl_event *event);

/* Let time pass in small steps, carrying everything. */
void cluster_pass (struct cluster *c, uint64_t microseconds);

/* End the connection; LINK says whether another may be made. */
void cluster_cut (struct cluster *c, bool link);

/* Give a command to node I, run, and return the status it was answered with;
 * -1: not answered yet.
 */
int cluster_command (struct cluster *c, unsigned i, enum tl_command command,
                     unsigned flags);
const char *cluster_reply (const struct cluster *c, unsigned i);

/* Hand a request to node I; the request ends when its `done` says so. */
void cluster_write (struct cluster *c, unsigned i, struct unit_request *r,
                    uint64_t offset, uint32_t length, unsigned char fill);
/* A later part of a write that BEGAN then. */
void cluster_part (struct cluster *c, unsigned i, struct unit_request *r,
                   uint64_t offset, uint32_t length, uint64_t began);
void cluster_zero (struct cluster *c, unsigned i, struct unit_request *r,
                   uint64_t offset, uint32_t length);
void cluster_read (struct cluster *c, unsigned i, struct unit_request *r,
                   uint64_t offset, uint32_t length);

/* Lose what node I has sent and is still on the way. */
void cluster_drop (struct cluster *c, unsigned i);

/* Put a frame of our own making to node I, as if the peer had sent it. */
void cluster_inject (struct cluster *c, unsigned i, struct tl_frame *frame,
                     const void *payload);

void cluster_status (const struct cluster *c, unsigned i, struct tl_status *s);

/* Both up, created on node 0, all carried. */
void cluster_pair (struct cluster *c, enum tl_policy policy);

/* The same, for a cluster that was initialised already. */
void cluster_create (struct cluster *c);

#endif
