/* What the files of the core share.  See core.h for the whole. */
#ifndef TWINLOG_CORE_INTERNAL_H
#define TWINLOG_CORE_INTERNAL_H

#include "core.h"

#include <string.h>

#define SECOND 1000000u /* all times are microseconds */
#define HANDSHAKE (2 * SECOND)
#define BACKOFF_MIN (SECOND / 50)
#define BACKOFF_MAX SECOND
/* An answer of the arbiter may take this much longer than the deadline: the
 * partner is left behind only when its own deadline is over.  The client hears
 * within the deadline and a second: the rest is for the answer's way.
 */
#define ARBITER_GRACE (SECOND * 9 / 10)
/* The later part of a request, whose time is nearly over as it is sent, leaves
 * a healthy partner this much to acknowledge it.
 */
#define PART_GRACE (SECOND / 20)
#define NEVER UINT64_MAX
#define REASONS 8u

#define CHUNK_BLOCKS 32u /* 128 KiB: what one sync-chunk carries at most */
#define CHUNKS 4u        /* sent and not yet acknowledged, at most */
/* The same while clients write: a write waits behind a whole chunk, and 16 KiB
 * take 0.13 ms at 1 Gbit/s.
 */
#define SMALL_CHUNK_BLOCKS 4u
#define SMALL_CHUNKS 1u
/* So long a client's write counts as recent. */
#define FOREGROUND (SECOND / 50)

/* States of a request. */
enum { REQ_NEW, REQ_IN_FLIGHT, REQ_HELD };

struct list {
  struct tl_request *first, *last;
  unsigned count;
};

/* Why a view is being agreed: what happens once it is stored. */
enum kind {
  KIND_CREATE,
  KIND_ALONE,    /* the primary goes on without its partner */
  KIND_PROMOTE,  /* this node becomes primary, alone */
  KIND_JOIN,     /* the resynced target becomes a member */
  KIND_REMOVE,   /* the partner is connected, but no member any more */
  KIND_HANDOVER, /* this node gives the primary role to its partner */
  KIND_ADOPT,    /* somebody else's view, told by the peer or the arbiter */
  KIND_FORGET,   /* no view: the record without the peer */
  KIND_DISCARD,  /* no view: a record as of a fresh node */
  KIND_UNDO      /* no view: the record as it is, after another failed */
};

enum stage {
  STAGE_IDLE,
  STAGE_STORE_PROPOSAL,
  STAGE_ASK,      /* the arbiter */
  STAGE_ASK_PEER, /* the connected peer, to store it first */
  STAGE_STORE_VIEW
};

enum phase {
  PHASE_NONE,        /* no session */
  PHASE_IDLE,        /* nobody is primary */
  PHASE_SOURCE_WAIT, /* this node is primary; the peer is not ready yet */
  PHASE_SOURCE,      /* every write is mirrored */
  PHASE_TARGET_WAIT, /* this node stores the peer's view first */
  PHASE_TARGET
};

struct chunk {
  uint64_t sequence;
  uint64_t first;
  uint64_t count;
};

struct tl_core {
  struct tl_core_config config;
  char volume[TL_NAME_SIZE];
  char node[TL_NAME_SIZE];

  /* The event under way. */
  uint64_t now;
  uint64_t random;
  struct tl_update *out;

  /* What this node is. */
  struct tl_record record;  /* durable */
  struct tl_record pending; /* being made durable */
  enum tl_role role;
  struct tl_kept *kept; /* the data's state, kept with the RAM */
  struct tl_kept own;   /* where nothing outlives the process */
  uint64_t epoch;
  uint64_t changed;
  bool started, stopped;
  bool standalone;         /* split brain: an operator decides */
  bool demoted;            /* by an operator: it does not resume by itself */
  uint64_t connected_view; /* id of the last view that the peer confirmed to
                            * this incarnation */
  char trouble[256];

  /* The view that is being agreed. */
  struct {
    enum stage stage;
    enum kind kind;
    struct tl_view before; /* what the arbiter is to replace */
    struct tl_view view;
    struct tl_uuid uuid;
    bool member;       /* adopt: this node is a member of it */
    bool forced;       /* promote */
    bool acknowledge;  /* adopt: the peer waits for view-ack */
    bool create;       /* adopt: the store is born with it */
    bool doubtful;     /* an answer of the arbiter was lost */
    bool propose;      /* adopt: it will make the peer primary */
    uint64_t token;    /* of the command to answer; 0: none */
    uint64_t give_up;  /* when to answer it at the latest */
    uint64_t retry_at; /* NEVER: an answer is outstanding */
  } agree;

  uint64_t promote_at; /* secondary: when to ask for the role, NEVER: not */
  uint64_t propose_at; /* nothing is proposed before */

  /* A view that the peer told while another was being stored. */
  struct {
    bool waiting;
    bool handover;
    uint8_t flags;
    struct tl_uuid uuid;
    struct tl_view view;
  } told;

  /* Connections: being dialled, ours and theirs in the handshake. */
  bool dialling;
  uint32_t dial, accept;
  uint64_t dial_by, accept_by;
  uint64_t dial_at; /* next try */
  uint64_t backoff;
  bool candidate;         /* accept: a hello came and was answered */
  struct tl_hello caller; /* it */
  uint64_t caller_session;

  /* The session. */
  enum phase phase;
  uint32_t session;
  uint64_t session_id;
  uint64_t session_view; /* target: number that data frames must carry */
  struct tl_hello peer;  /* its hello, kept up to date */
  bool peer_member;      /* member of record.view and complete */
  bool peer_stored;      /* ... and has stored it */
  bool creating;         /* the peer has still to store view 1 */
  bool resynced;         /* target: sync-done came in this session */
  uint64_t yielded;      /* until then the peer may create the volume */
  bool diverged;         /* the views do not descend from each other */
  uint64_t tx_sequence, tx_acked, rx_sequence, rx_acked;
  uint64_t progress; /* the last acknowledgement, or the first frame since */
  uint64_t heard, spoke;
  uint64_t begun;   /* when the session began */
  bool proved;      /* it came to equal copies, or stood for a while */
  uint64_t unready; /* source-wait: since when */
  uint64_t lost_at; /* primary: since when a member is away; 0: it is not */
  char disconnect_reason[256];
  bool dial_reason;       /* it is of a connection that was never made */
  uint64_t said[REASONS]; /* hashes of the reasons logged since the last
                           * session began */

  /* A switchover from this primary: new requests fail, those in flight end,
   * then the peer is given the role.
   */
  bool leaving;
  uint64_t switchover_token;
  uint64_t leaving_since;

  uint64_t handover_token; /* a promote that waits for the peer's handover */
  uint64_t handover_by;
  /* A command that came while a view was being agreed. */
  struct tl_operation waiting; /* token 0: none */
  uint64_t waiting_by;

  uint64_t create_token; /* a create that waits for the peer */
  uint64_t create_by;

  /* Blocks in which the peer's store may differ. */
  struct tl_map dirty;
  struct {
    bool active; /* source: begun and not yet acknowledged as done */
    bool done;   /* source: the peer has it all */
    bool full;
    bool more;  /* the window has room, the update had none */
    bool paced; /* the rest waits for the time of `next` */
    uint64_t begin_sequence, done_sequence;
    uint64_t cursor;
    struct chunk chunks[CHUNKS];
    unsigned n_chunks;
    uint64_t next;  /* time, before which no chunk is sent */
    uint64_t total; /* blocks at its start */
    uint64_t started;
  } resync;

  struct {
    bool active, interrupted;
    bool more;                   /* the window has room, the update had none */
    uint64_t cursor;             /* block */
    unsigned on_the_way;         /* frames */
    uint64_t checked, different; /* blocks */
    uint64_t ended;              /* time; 0: never, or not yet */
  } verify;

  struct list in_flight; /* by sequence */
  uint32_t *slots;       /* free ones of kept->writes, NULL: not kept */
  uint32_t n_slots;
  struct list held;
  uint64_t foreground; /* when a client's write was last sent */
  bool recheck;        /* held requests may be ready */
  unsigned late;       /* in flight, that entered before they were sent */

  struct tl_status counters; /* only its counters are used */
};

static inline uint64_t
earlier (uint64_t a, uint64_t b)
{
  return a < b ? a : b;
}

/* core.c: building the update */
uint64_t random_id (struct tl_core *c);
struct tl_action *act (struct tl_core *c, enum tl_action_type type);
bool room (const struct tl_core *c, unsigned actions);
const char *text (struct tl_core *c, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));
void say (struct tl_core *c, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));
void *small (struct tl_core *c);
void reply (struct tl_core *c, uint64_t *token, int status, const char *format,
            ...) __attribute__ ((format (printf, 4, 5)));
void changed (struct tl_core *c);

/* status.c */
bool alone (const struct tl_core *c);
bool is_member (const struct tl_core *c);
enum tl_data known_data (const struct tl_core *c);
bool mirroring (const struct tl_core *c);

/* request.c */
void request (struct tl_core *c, struct tl_request *r);
void requests_acked (struct tl_core *c);
void requests_unsent (struct tl_core *c);
void requests_recheck (struct tl_core *c);
void requests_fail (struct tl_core *c, int error);
uint64_t requests_acknowledge_by (const struct tl_core *c);
uint64_t requests_wake (const struct tl_core *c);
uint64_t request_limit (const struct tl_core *c);

/* session.c */
void conn_up (struct tl_core *c, uint32_t id, bool dialled);
void conn_down (struct tl_core *c, uint32_t id, const char *reason);
void conn_hello (struct tl_core *c, uint32_t id, const struct tl_frame *frame,
                 const void *payload);
void conn_welcome (struct tl_core *c, uint32_t id,
                   const struct tl_frame *frame);
void handshake_abort (struct tl_core *c);
void session_end (struct tl_core *c, bool bye, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));
void session_timers (struct tl_core *c);
uint64_t session_wake (const struct tl_core *c);
void close_conn (struct tl_core *c, uint32_t id, const char *reason);
struct tl_action *send_frame (struct tl_core *c, uint8_t type, uint8_t flags);
struct tl_action *send_sequenced (struct tl_core *c, uint8_t type,
                                  uint8_t flags);
void send_view (struct tl_core *c, uint8_t type, uint8_t flags,
                const struct tl_uuid *uuid, const struct tl_view *view);

/* meet.c */
const char *meet_refuse (struct tl_core *c, const struct tl_hello *hello);
bool meet_split (const struct tl_core *c, const struct tl_hello *hello);
void meet (struct tl_core *c);
void become_primary (struct tl_core *c);
void step_down (struct tl_core *c, const char *why);
void view_told (struct tl_core *c, uint8_t flags, bool handover,
                const struct tl_uuid *uuid, const struct tl_view *view);
void target_ready (struct tl_core *c);

/* agree.c */
void agree (struct tl_core *c, enum kind kind, const struct tl_view *view,
            const struct tl_uuid *uuid);
void agree_next (struct tl_core *c, enum kind kind, const char *primary,
                 const char *member);
void agree_resume (struct tl_core *c);
void agree_record (struct tl_core *c, enum kind kind);
void agree_adopt (struct tl_core *c, const struct tl_uuid *uuid,
                  const struct tl_view *view, bool member);
void agree_abort (struct tl_core *c, int status, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));
void agree_stored (struct tl_core *c, bool ok, const char *reason);
void agree_answer (struct tl_core *c, const struct tl_event *event);
void agree_peer (struct tl_core *c, const struct tl_view *view);
void agree_session_lost (struct tl_core *c);
void agree_timers (struct tl_core *c);
uint64_t agree_wake (const struct tl_core *c);

/* acted.c */
void make_blank (struct tl_core *c, enum tl_data data);
void acted (struct tl_core *c);

/* source.c */
void source_wait (struct tl_core *c);
void source_bitmap (struct tl_core *c, const void *payload, size_t length);
void source_ack (struct tl_core *c, uint64_t sequence);
void source_pump (struct tl_core *c);

void resync_begin (struct tl_core *c, bool full);

/* verify.c */
void verify_start (struct tl_core *c);
void verify_pump (struct tl_core *c);
void verify_interrupted (struct tl_core *c);
void verify_compare (struct tl_core *c, const struct tl_frame *f,
                     const unsigned char *sums);
void verify_result (struct tl_core *c, const struct tl_frame *f,
                    const void *payload);

/* target.c */
void target_frame (struct tl_core *c, const struct tl_frame *frame,
                   const void *payload);
void target_ack (struct tl_core *c);

/* promote.c */
int promote_check (const struct tl_core *c, unsigned flags, char *why,
                   size_t why_size);
void command_promote (struct tl_core *c, const struct tl_event *event,
                      uint64_t *token);
void command_auto_promote (struct tl_core *c);
void command_handover (struct tl_core *c);
void command_switchover (struct tl_core *c, const struct tl_event *event,
                         uint64_t *token);
void switchover_drained (struct tl_core *c);
void switchover_over (struct tl_core *c, int status, const char *why);

/* command.c */
uint64_t command_limit (const struct tl_core *c);
bool command_blocked (struct tl_core *c, const struct tl_event *event,
                      const char *command, uint64_t *token);
void command (struct tl_core *c, const struct tl_event *event);
void command_waiting (struct tl_core *c);
void command_timers (struct tl_core *c);

#endif
