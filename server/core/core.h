/* The core of a node: every rule of who may acknowledge, who may serve and what
 * is copied where.  It is a pure state machine.  tl_core_step is told what
 * happened and answers what to do; it uses no clock, socket, thread, file or
 * source of randomness, and allocates nothing after tl_core_new.  The plugin's
 * node (server/net) and the simulator (tests/sim) run this same code.
 *
 * Threads: a core is guarded by one lock of its owner, the volume's lock.  All
 * functions here are called with it held, and the actions of an update are
 * carried out, in their order, before it is released: that critical section is
 * what gives overlapping writes the same order on both nodes.
 */
#ifndef TWINLOG_CORE_CORE_H
#define TWINLOG_CORE_CORE_H

#include "frame.h"
#include "kept.h"
#include "map.h"
#include "view.h"

struct tl_core;

enum tl_role { TL_SECONDARY, TL_PRIMARY };

/* What the store holds. */
enum tl_data { TL_EMPTY, TL_INCONSISTENT, TL_COMPLETE };

/* The same as shown: data state of design and manual. */
enum tl_disk {
  TL_DISK_UNKNOWN, /* of a peer that is not connected */
  TL_DISK_EMPTY,
  TL_DISK_INCONSISTENT,
  TL_DISK_OUTDATED,
  TL_DISK_CONSISTENT,
  TL_DISK_UPTODATE
};

enum tl_link {
  TL_LINK_STANDALONE,
  TL_LINK_CONNECTING,
  TL_LINK_CONNECTED,
  TL_LINK_SYNCSOURCE,
  TL_LINK_SYNCTARGET
};

enum tl_policy {
  TL_POLICY_ERROR,
  TL_POLICY_ARBITER,
  TL_POLICY_FREEZE,
  TL_POLICY_CONTINUE
};

/* Exit status of a command, as the manual has them. */
enum tl_status_code {
  TL_DONE = 0,
  TL_FAILED = 1,
  TL_USAGE = 2,
  TL_REFUSED = 3, /* to protect data */
  TL_UNREACHABLE = 4,
  TL_TIMED_OUT = 5
};

struct tl_core_config {
  const char *volume; /* copied */
  const char *node;   /* copied */
  uint64_t size;      /* bytes, a multiple of TL_BLOCK */
  bool arbiter;       /* there is one */
  enum tl_policy policy;
  bool reads_local;     /* reads need no confirmation (V6) */
  bool auto_promote;    /* a secondary that lost its primary asks the arbiter */
  uint64_t resync_rate; /* bytes a second at most, 0: no limit */
  uint64_t deadline;    /* microseconds */
  uint64_t incarnation; /* of the RAM, random, not 0; unused with `kept` */
  /* Where the RAM outlives the process: what is kept with it, and the words of
   * the dirty map, tl_map_words (size / TL_BLOCK) of them.  NULL where not.
   */
  struct tl_kept *kept;
  uint64_t *kept_map;
  /* What the store holds of real content; the core only reads it, to copy
   * nothing that does not exist.  Owned by the store, outlives the core.
   */
  const struct tl_map *allocated;
  /* The checksum of a block as the store has it now: tl_payload_checksum of
   * its TL_BLOCK bytes.  Called within a step.
   */
  uint64_t (*sum) (void *opaque, uint64_t block);
  void *sum_opaque;
};

/* ---- Requests of NBD clients ---- */

enum tl_op { TL_OP_READ, TL_OP_WRITE, TL_OP_ZERO, TL_OP_FLUSH };

/* The caller owns it and fills the first part; the core links it until it
 * appears in tl_update.done.  Offsets and lengths are bytes within the volume;
 * length is 1 to TL_PAYLOAD_MAX for read and write, to TL_ZERO_MAX for zero.
 */
struct tl_request {
  enum tl_op op;
  uint64_t offset;
  uint32_t length;
  uint64_t checksum; /* of a write's payload */
  uint64_t epoch;    /* tl_core_epoch when the client was let in */
  uint64_t began;    /* time of the whole that this is a later part of, or 0 */

  /* The core's: */
  int error; /* once done: 0 or an errno value (EIO, ESHUTDOWN) */
  int state;
  uint64_t sequence; /* that completes it */
  uint64_t entered;  /* time, of the whole */
  uint64_t sent;     /* time */
  uint32_t slot;     /* in tl_kept.writes, TL_KEPT_WRITES: none */
  struct tl_request *next, *prev;
};

/* ---- Events ---- */

enum tl_event_type {
  TL_EV_START,     /* once, first */
  TL_EV_REQUEST,   /* request */
  TL_EV_CONNECTED, /* conn: a connection is up (dialled or accepted) */
  TL_EV_CLOSED,    /* conn: it is gone, or what it said was not well formed */
  TL_EV_FRAME,     /* conn: a frame whose checksums hold */
  TL_EV_BATCH_END, /* no more frames for the moment: acknowledge */
  TL_EV_STORED,    /* the record of TL_DO_STORE is durable, or failed */
  TL_EV_ANSWER,    /* of the arbiter */
  TL_EV_COMMAND,   /* of an operator */
  TL_EV_TIME,      /* the time of tl_update.wake has come */
  TL_EV_STOP       /* the process ends: fail what waits, say bye */
};

enum tl_answer {
  TL_ANSWER_DONE,   /* the swap was made */
  TL_ANSWER_LOST,   /* it was not: view and uuid are the record that stands */
  TL_ANSWER_UNKNOWN /* anything else, no answer included */
};

enum tl_command {
  TL_CMD_CREATE,
  TL_CMD_PROMOTE,
  TL_CMD_DEMOTE,
  TL_CMD_DEGRADE,
  TL_CMD_SWITCHOVER,
  TL_CMD_DISCARD,
  TL_CMD_FORGET_PEER,
  TL_CMD_VERIFY
};

#define TL_ALONE 1u      /* create */
#define TL_FENCED 2u     /* promote, degrade */
#define TL_FORCE 4u      /* promote */
#define TL_DISCONNECT 8u /* demote, switchover */

struct tl_operation {
  enum tl_command command;
  unsigned flags;
  unsigned clients;    /* NBD clients that are attached now */
  uint64_t token;      /* comes back with TL_DO_REPLY, not 0 */
  struct tl_uuid uuid; /* create: fresh and random */
};

struct tl_event {
  enum tl_event_type type;
  uint64_t now;    /* monotonic microseconds; only waits depend on it */
  uint64_t random; /* fresh and unpredictable with every event */
  union {
    struct tl_request *request;
    struct {
      uint32_t id; /* chosen by the shell, not 0, not used before */
      bool dialled;
    } connected;
    struct {
      uint32_t id;
      const char *reason; /* a few words */
    } closed;
    struct {
      uint32_t id;
      const struct tl_frame *frame;
      const void *payload; /* of frame->payload bytes */
    } frame;
    struct {
      bool ok;
      const char *reason; /* where not ok */
    } stored;
    struct {
      enum tl_answer result;
      bool known; /* TL_ANSWER_LOST: there is a record */
      struct tl_uuid uuid;
      struct tl_view view;
      const char *reason; /* TL_ANSWER_UNKNOWN */
    } answer;
    struct tl_operation command;
  };
};

/* ---- Updates: what to do ---- */

enum tl_action_type {
  /* On the store, at once. */
  TL_DO_WRITE, /* request: its payload into the store */
  TL_DO_READ,  /* request: from the store into its buffer */
  TL_DO_ZERO,  /* range */
  TL_DO_APPLY, /* the payload of this event's frame, to its offset */
  TL_DO_CLEAR, /* the whole store: zeroes, nothing allocated */

  /* On connections.  TL_DO_SEND enqueues in order; what cannot leave at once
   * is sent later; what a closed connection had not sent is dropped.
   */
  TL_DO_SEND,
  TL_DO_CLOSE, /* conn; what was enqueued before is sent first if it can be
                * without waiting.  No TL_EV_CLOSED follows. */
  TL_DO_DIAL,  /* try to connect once; answered by TL_EV_CONNECTED with
                * dialled set, or TL_EV_CLOSED with id 0 */

  /* Elsewhere; each is answered by an event. */
  TL_DO_STORE, /* tl_core_pending: make that record durable (TL_EV_STORED) */
  TL_DO_ASK,   /* compare-and-swap at the arbiter (TL_EV_ANSWER) */

  TL_DO_REPLY, /* to a command */
  TL_DO_LOG    /* text for the operator; also: something has changed that
                * status shows */
};

enum tl_payload {
  TL_PAYLOAD_NONE,
  TL_PAYLOAD_REQUEST, /* the write's own buffer; its worker waits */
  TL_PAYLOAD_STORE,   /* read frame.offset, frame.length from the store now;
                       * the shell fills in frame.checksum */
  TL_PAYLOAD_SMALL    /* `small`, valid until the next step: copy it */
};

struct tl_action {
  enum tl_action_type type;
  uint32_t conn;              /* send, close */
  struct tl_request *request; /* write, read, send with its payload */
  uint64_t offset;            /* zero, apply */
  uint32_t length;
  struct tl_frame frame; /* send */
  enum tl_payload payload;
  const void *small;
  uint64_t token;        /* reply */
  int status;            /* reply: enum tl_status_code */
  const char *text;      /* reply, log, close (the reason), valid until the next
                          * step */
  bool create;           /* ask: the old record is «none» */
  struct tl_uuid uuid;   /* ask */
  struct tl_view before; /* ask: swap this ... */
  struct tl_view after;  /* ... for this */
};

#define TL_ACTIONS 48
#define TL_SMALL_SPACE 65536

struct tl_update {
  unsigned n;
  struct tl_action actions[TL_ACTIONS];
  struct tl_request *done; /* linked by `next`; no longer the core's once the
                            * actions have been carried out */
  uint64_t wake;           /* send TL_EV_TIME then; UINT64_MAX: never; a time
                            * not later than `now`: at once, before waiting */
  unsigned char small[TL_SMALL_SPACE];
  size_t small_used;
  char text[4096];
  size_t text_used;
};

/* Make a core.  LOADED is what the state file held and tl_record_check let
 * pass, or NULL for a node without one.  NULL where memory is short.
 */
struct tl_core *tl_core_new (const struct tl_core_config *config,
                             const struct tl_record *loaded);
void tl_core_free (struct tl_core *core);

/* The one entry.  UPDATE need not be initialised; it is overwritten. */
void tl_core_step (struct tl_core *core, const struct tl_event *event,
                   struct tl_update *update);

/* The record that TL_DO_STORE asks to make durable. */
const struct tl_record *tl_core_pending (const struct tl_core *core);

/* May an NBD client be let in?  0, or EIO-like refusal: -1 with one line in
 * WHY (size at least 256).
 */
int tl_core_admit (const struct tl_core *core, char *why, size_t why_size);

/* Changes whenever the node becomes primary: requests of clients that were let
 * in before are failed.
 */
uint64_t tl_core_epoch (const struct tl_core *core);

/* ---- What status shows ---- */

struct tl_status {
  enum tl_role role;
  enum tl_disk disk;
  enum tl_link link;
  char peer[TL_NAME_SIZE]; /* empty: not met yet */
  bool peer_known;         /* connected: the two below are valid */
  enum tl_role peer_role;
  enum tl_disk peer_disk;
  struct tl_uuid uuid;
  struct tl_view view;
  unsigned copies; /* RAMs that hold every acknowledged write, as far as this
                    * node knows */
  bool suspended;  /* requests wait or fail */
  char suspended_reason[256];
  bool may_promote;
  char may_promote_reason[256];
  uint64_t out_of_sync;               /* bytes */
  uint64_t resync_done, resync_total; /* bytes of the resync under way */
  uint64_t resync_started;            /* time; 0: none under way */
  unsigned in_flight;                 /* requests that wait */
  uint64_t changed; /* time of the last change of role, data or link state */
  uint64_t heard;   /* time of the last word from the peer; 0: never */
  char disconnect_reason[256]; /* of the last one; empty: none */
  char trouble[256]; /* how state file or arbiter failed last; empty: the
                      * last time they did not */
  uint64_t reads, writes, zeroes, flushes, failed; /* requests ended */
  uint64_t bytes_read, bytes_written;
  uint64_t resyncs, resyncs_full; /* begun with this node as source */
  uint64_t promotions;
  uint64_t sent_bytes_resync;
  bool verify_active;
  bool verify_interrupted;   /* the last one did not come to its end */
  uint64_t verify_checked;   /* bytes that the last verify compared */
  uint64_t verify_different; /* bytes of them that differed */
  uint64_t verify_ended;     /* time; 0: never, or not yet */
};

void tl_core_status (const struct tl_core *core, uint64_t now,
                     struct tl_status *status);

/* When status last changed in a way that an operator cares about. */
uint64_t tl_core_changed (const struct tl_core *core);

const char *tl_role_name (enum tl_role role);
const char *tl_disk_name (enum tl_disk disk);
const char *tl_link_name (enum tl_link link);
const char *tl_policy_name (enum tl_policy policy);

#endif
