/* The simulator: two nodes, each a core and a store of the very libraries that
 * the plugin links, a network, an arbiter, disks for the records, clients and
 * operators, in one deterministic program.
 *
 * One seed is one run.  A single queue, ordered by time and insertion, holds
 * what is going to happen; all chance comes from one generator.  After each
 * step of a core the oracle checks the guarantees of the design.  Times are
 * microseconds of simulated time.  There is one thread.
 */
#ifndef TWINLOG_SIM_SIM_H
#define TWINLOG_SIM_SIM_H

#include "rng.h"

#include "core/core.h"
#include "store/store.h"

#define NODES 2
#define CLIENTS 4
#define SECTOR 512u
#define OP_BLOCKS 4u /* most of a read or write */
#define OP_BYTES (OP_BLOCKS * TL_BLOCK)
#define OP_SECTORS (OP_BYTES / SECTOR)
#define OPS 64 /* requests outstanding at most */
#define BLOCKS_MAX 64u
#define SECTORS_MAX (BLOCKS_MAX * TL_BLOCK / SECTOR)
#define SECTORS_PER_BLOCK (TL_BLOCK / SECTOR)
#define MS UINT64_C (1000)

/* What is counted over all seeds; names in totals.c. */
enum total {
  T_SEEDS,
  T_EVENTS,
  T_STEPS,
  T_CUTS,
  T_HALF_OPEN,
  T_LINK_DOWN,
  T_ONE_WAY,
  T_CORRUPTED,
  T_DIALS_FAILED,
  T_CRASHES,
  T_STOPS,
  T_FENCED,
  T_RESTARTS,
  T_FREEZES,
  T_RECORDS,
  T_RECORDS_FAILED,
  T_RECORDS_TORN,
  T_SWAPS,
  T_SWAPS_LOST,
  T_UNKNOWN_SWAPPED,
  T_UNKNOWN_NOT_SWAPPED,
  T_SWAPS_LATE,
  T_ARBITER_DOWN,
  T_COMMANDS,
  T_REFUSED,
  T_TAKEOVERS,
  T_PROMOTIONS,
  T_RESYNCS_FULL,
  T_RESYNCS_PARTIAL,
  T_WRITES,
  T_ZEROES,
  T_READS,
  T_FLUSHES,
  T_FAILED,
  T_SECTORS,
  T_COPIES_CHECKED,
  T_STORES_SCANNED,
  T_EQUAL,
  T_LOST,
  T_NOT_CREATED,
  T_WITH_ARBITER,
  T_WITH_PROMOTION,
  T_WITH_RESYNC,
  T_WITH_BOTH,
  TOTALS
};

/* What the queue holds. */
enum kind {
  K_WAKE,      /* node; a: generation */
  K_CONNECTED, /* node; a: connection, b: end */
  K_DIAL,      /* a: the node that dials, b: its life */
  K_DIAL_FAILED,
  K_ARRIVE,    /* node; a: connection, b: end it comes from, c: bytes */
  K_FIN,       /* node; a: connection, b: end that is told */
  K_BATCH_END, /* node */
  K_STORED,    /* node; a: 1 if it went well */
  K_QUESTION,  /* a: question; it reaches the arbiter */
  K_ANSWER,    /* node; a: question, b: 1 if nothing comes back */
  K_CLIENT,    /* a: client */
  K_THAW,      /* a: node, b: its life */
  K_COMMAND,   /* node; a: command, b: flags */
  K_RESTART,   /* a: node */
  K_SCHEDULE,
  K_TAKEOVER, /* node */
  K_HEAL
};

struct entry {
  uint64_t time;
  uint64_t order;
  uint64_t a, b, c;
  enum kind kind;
  int node;      /* that it happens to, or -1 */
  uint32_t life; /* of that node: a dead process gets nothing */
};

struct queue {
  struct entry *heap;
  size_t n, room;
  uint64_t order;
};

/* One request of a client. */
struct op {
  struct tl_request request; /* first: the core hands it back */
  bool used;
  int client;
  int node;
  uint64_t invoked;
  uint32_t version;            /* of a write or zero; 0: none */
  uint64_t floors[OP_SECTORS]; /* of a read: what it may not fall behind */
  struct op *next, *prev;      /* of the node's, oldest first */
  unsigned char bytes[OP_BYTES];
};

struct node {
  int index;
  const char *name;
  bool alive;
  uint32_t life; /* counts starts */
  uint64_t incarnation;
  uint64_t born; /* time of the last start */
  uint64_t died; /* time of the last death */
  bool died_member;
  uint64_t clock; /* what this life's monotonic clock is ahead of ours */
  uint64_t frozen_until;
  struct tl_core *core;
  struct tl_store *store;

  /* The disk, which outlives the node. */
  bool has_record;
  struct tl_record record;
  uint64_t disk_bad_until;

  /* Of this life: */
  bool storing; /* a TL_DO_STORE is under way ... */
  struct tl_record writing;
  bool asking; /* a TL_DO_ASK */
  bool dialling;
  uint64_t wake; /* time, UINT64_MAX: none */
  uint64_t wake_generation;
  uint64_t last_wake;
  unsigned spins; /* wakes in a row without time going by */
  uint32_t next_conn;
  uint64_t epoch;
  uint64_t era; /* the oracle's, of its last promotion */
  struct op *first, *last;
  bool status_valid;
  struct tl_status status;
};

/* Network: network.c */
struct pipe { /* one direction of a connection */
  unsigned char *bytes;
  size_t start, end, room;
  size_t arrived;      /* bytes from start on that the receiver has */
  uint64_t last;       /* time of the last arrival under way */
  uint64_t last_order; /* its insertion, 0: none */
  size_t extra;        /* bytes that joined it */
  bool deaf;           /* what is sent vanishes */
  bool cut;            /* what is under way vanishes */
};

enum end_state { END_WAITING, END_OPEN, END_GONE };

struct end {
  int node;
  uint32_t life;
  uint32_t id; /* by which the core knows it */
  enum end_state state;
  bool fin; /* it is going to be told that the connection is gone */
};

struct conn {
  struct end ends[2];   /* dialler, acceptor */
  struct pipe pipes[2]; /* pipes[i] leads away from ends[i] */
};

struct network {
  struct conn **conns;
  size_t n, room, live;       /* conns below live are all gone */
  uint64_t down_until[NODES]; /* what that node sends stays under way */
  uint64_t delay_min, delay_max;
  unsigned corrupt; /* of 10,000 frames */
  bool corrupted;   /* it has happened */
};

/* Arbiter: arbiter.c */
struct question {
  bool create;
  struct tl_uuid uuid;
  struct tl_view before, after;
  int node;
  uint32_t life;
  bool silent; /* its asker hears nothing */
  bool landed;
  bool answered;
  enum tl_answer result;
  bool known;
  struct tl_uuid uuid_stands;
  struct tl_view stands;
};

struct arbiter {
  bool exists; /* the record */
  struct tl_uuid uuid;
  struct tl_view view;
  uint64_t down_until;
  struct question *questions;
  size_t n, room;
  unsigned unknown; /* of 100 answers */
};

/* Oracle: oracle.c */
struct version {  /* what one write or zero leaves in the sectors it covers */
  uint64_t index; /* in the order of the one history */
  uint64_t invoked;
  uint32_t first, count; /* sectors */
  bool zero;
};

#define ZEROES 32

struct sector {
  uint64_t floor; /* index of the newest acknowledged, or read, version */
  uint64_t base;  /* index that the last promoted node held */
  unsigned n_zeroes;
  uint64_t zeroes[ZEROES]; /* indexes of zeroes, no particular order */
  uint64_t forgotten;      /* the highest that had to make room */
};

#define VIEWS 512

struct oracle {
  struct version *versions;
  uint32_t n, room;
  uint64_t era; /* counts promotions */
  uint64_t sequence;
  unsigned promotions;
  uint64_t ids[VIEWS]; /* of the views that acknowledged, by number */
  struct sector sectors[SECTORS_MAX];
  unsigned n_sectors;
};

/* Clients: clients.c */
struct client {
  int node; /* attached to, or -1 */
  uint64_t epoch;
  unsigned outstanding;
  unsigned depth;
  bool reader; /* it only reads */
};

struct clients {
  struct client client[CLIENTS];
  struct op ops[OPS];
  uint64_t paused_until; /* they finish and leave */
  int avoided;           /* those who write keep away from this node ... */
  uint64_t avoided_until;
  uint64_t think; /* mean time between requests */
  unsigned outstanding;
  unsigned reads; /* percent of requests */
};

/* Faults and operators: schedule.c, operators.c, heal.c */
struct command {
  bool used;
  enum tl_command command;
  unsigned flags;
  int node;
  uint32_t life;
  uint64_t sent;
};

#define COMMANDS 16

enum heal_stage { HEAL_NO, HEAL_RESTORE, HEAL_READ, HEAL_DONE };

struct schedule {
  uint64_t events_wanted;
  uint64_t pace; /* mean time between faults */
  int creator;   /* the node that create is sent to */
  bool alone;    /* create --alone */
  bool early;    /* faults before the volume exists */
  bool reckless; /* the last copy may be taken */
  bool created;
  uint64_t created_at;
  unsigned weights[16];
  struct command commands[COMMANDS];
  int demote_next; /* node to be promoted after a demotion, or -1 */
  enum heal_stage stage;
  uint64_t heal_since, heal_until;
  unsigned heal_tries;
  unsigned final_next;  /* block to be read next */
  unsigned final_reads; /* not yet answered */
  unsigned final_failed;
};

struct sim {
  uint64_t seed;
  struct rng rng;
  uint64_t now;
  uint64_t events;
  uint64_t steps;
  struct queue queue;
  struct node nodes[NODES];
  struct network network;
  struct arbiter arbiter;
  struct oracle oracle;
  struct clients clients;
  struct schedule schedule;

  /* The pair, as configured in this seed. */
  unsigned blocks;
  uint64_t size;
  bool with_arbiter;
  enum tl_policy policy;
  uint64_t deadline;
  uint64_t disk_delay; /* most */
  unsigned disk_failing;

  uint64_t resyncs, resyncs_full; /* of lives that ended */
  struct tl_update update;
  unsigned char scratch[2][BLOCKS_MAX * TL_BLOCK];
  uint64_t *totals;
  bool tracing;
  bool violated;
  char violation[640];
};

/* sim.c */
void sim_run (struct sim *sim, uint64_t seed);
void sim_violate (struct sim *sim, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));

static inline void
sim_count (struct sim *sim, enum total total)
{
  sim->totals[total]++;
}

/* trace.c: lines are built only where somebody reads them. */
#define TRACE(sim, ...)                                                        \
  do {                                                                         \
    if ((sim)->tracing)                                                        \
      sim_trace (sim, __VA_ARGS__);                                            \
  } while (0)

#define TRACE_LINES 200
#define TRACE_WIDTH 320

struct trace_ring {
  uint64_t n; /* lines so far */
  char lines[TRACE_LINES][TRACE_WIDTH];
};

void sim_trace (struct sim *sim, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));
void sim_trace_to (struct trace_ring *ring); /* NULL: standard output */
void sim_trace_print (const struct trace_ring *ring);
const char *sim_view_text (const struct tl_view *view);
const char *sim_op_text (const struct op *op);
const char *sim_command_text (enum tl_command command, unsigned flags);

/* queue.c */
void queue_reset (struct queue *queue);
uint64_t queue_push (struct queue *queue, const struct entry *entry);
bool queue_pop (struct queue *queue, struct entry *entry);

/* Let something happen to a node's present life, or (NODE NULL) at large. */
void sim_at (struct sim *sim, uint64_t time, enum kind kind, struct node *node,
             uint64_t a, uint64_t b);

/* network.c */
void network_reset (struct sim *sim);
void network_dial (struct sim *sim, struct node *node);
void network_dial_arrives (struct sim *sim, int from, uint32_t life);
void network_dial_failed (struct sim *sim, struct node *node,
                          const char *reason);
void network_connected (struct sim *sim, uint64_t conn, uint64_t end);
bool network_held (struct sim *sim, const struct entry *entry);
void network_arrive (struct sim *sim, uint64_t conn, uint64_t from,
                     uint64_t bytes);
void network_fin (struct sim *sim, uint64_t conn, uint64_t end);
void network_send (struct sim *sim, struct node *node, uint32_t id,
                   const struct tl_frame *frame, const void *payload);
void network_close (struct sim *sim, struct node *node, uint32_t id);
void network_node_died (struct sim *sim, struct node *node, bool orderly);
bool network_cut (struct sim *sim, int deaf_node);
void network_down (struct sim *sim, unsigned directions, uint64_t until);

/* arbiter.c */
void arbiter_reset (struct sim *sim);
void arbiter_ask (struct sim *sim, struct node *node,
                  const struct tl_action *action);
void arbiter_question (struct sim *sim, uint64_t question);
void arbiter_answer (struct sim *sim, uint64_t question, bool silence);

/* node.c */
void node_init (struct sim *sim, int index);
void node_start (struct sim *sim, struct node *node);
void node_kill (struct sim *sim, struct node *node, const char *how);
void node_stop (struct sim *sim, struct node *node);
void node_step (struct sim *sim, struct node *node, struct tl_event *event);
void node_wake (struct sim *sim, struct node *node, uint64_t generation);
void node_stored (struct sim *sim, struct node *node, bool ok);
const struct tl_status *node_status (struct sim *sim, struct node *node);
bool node_member (const struct node *node);
bool node_primary (struct sim *sim, struct node *node);
bool node_connected (struct sim *sim, struct node *node);

static inline struct node *
node_other (struct sim *sim, const struct node *node)
{
  return &sim->nodes[!node->index];
}

/* executor.c: carry out sim->update in its order, as core.h demands. */
void executor_run (struct sim *sim, struct node *node,
                   const struct tl_event *event);

/* oracle.c */
void oracle_reset (struct sim *sim);
void oracle_invoke (struct sim *sim, struct op *op);
void oracle_done (struct sim *sim, struct op *op);
void oracle_check_claims (struct sim *sim);
void oracle_after_step (struct sim *sim, struct node *node);

/* content.c: what the bytes of a store or a read are, in versions. */
struct seen {
  uint32_t version; /* 0: zeroes */
  uint64_t most;    /* index; of zeroes: the newest that it can be */
  uint64_t least;   /* of zeroes: the oldest that it can be */
};
void content_fill (unsigned char *bytes, uint32_t version, uint32_t first,
                   uint32_t count);
bool content_see (struct sim *sim, const unsigned char *bytes, uint32_t first,
                  uint32_t count, const uint64_t *floors, struct seen *seen,
                  const char *where);
void content_zero (struct sector *sector, uint64_t index);
void content_raise (struct sector *sector, uint64_t index);

/* clients.c */
void clients_reset (struct sim *sim);
void clients_tick (struct sim *sim, uint64_t client);
void clients_turn (struct sim *sim, const struct node *primary);
void clients_thaw (struct sim *sim, struct node *node);
void clients_avoid (struct sim *sim, const struct node *node, uint64_t until);
void clients_done (struct sim *sim, struct op *op);
void clients_node_died (struct sim *sim, struct node *node);
unsigned clients_attached (struct sim *sim, const struct node *node);
bool clients_final_read (struct sim *sim, struct node *node, unsigned block);

/* schedule.c */
void schedule_reset (struct sim *sim);
void schedule_tick (struct sim *sim);
void schedule_takeover (struct sim *sim, struct node *primary);
void schedule_crash (struct sim *sim, struct node *node, const char *how);
bool schedule_entitled (struct sim *sim, struct node *node);
const struct tl_view *schedule_newest (struct sim *sim);

/* operators.c */
void operators_send (struct sim *sim, struct node *node, enum tl_command cmd,
                     unsigned flags, uint64_t delay);
void operators_command (struct sim *sim, struct node *node,
                        enum tl_command command, unsigned flags);
void operators_reply (struct sim *sim, struct node *node, uint64_t token,
                      int status, const char *text);
void operators_check (struct sim *sim);
void operators_node_died (struct sim *sim, struct node *node);
void operators_manage (struct sim *sim);
void operators_meddle (struct sim *sim);

/* heal.c */
void heal_begin (struct sim *sim);
void heal_tick (struct sim *sim);

/* totals.c */
void totals_print (const uint64_t totals[TOTALS]);

#endif
