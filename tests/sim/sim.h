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

#include "parts.h"
#include "rng.h"
#include "totals.h"

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
  uint64_t resync_rate;
  bool auto_promote;
  bool reads_local;
  bool forceful;         /* operators use --force */
  bool forks;            /* histories may fork: see history.c */
  unsigned loop_late;    /* percent of the wakes */
  uint64_t loop_late_by; /* most */
  uint64_t disk_delay;   /* most */
  unsigned disk_failing;
  bool ram_kept;      /* RAM outlives the process */
  unsigned forgetful; /* percent of the deaths that take the record too */

  uint64_t resyncs, resyncs_full; /* of lives that ended */
  struct tl_update update;
  unsigned char scratch[2][BLOCKS_MAX * TL_BLOCK];
  uint64_t *totals;
  bool tracing;
  bool violated;
  char violation[640];
};

/* sim.c */
/* Run one seed; see sim.c. */
void sim_run (struct sim *sim, uint64_t seed);
/* A guarantee is broken, in words.  The first one ends the run. */
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
/* Where lines go: into RING, or (NULL) to standard output. */
void sim_trace_to (struct trace_ring *ring); /* NULL: standard output */
/* Print what is left in the ring. */
void sim_trace_print (const struct trace_ring *ring);
/* Things in words; valid for the next few calls. */
const char *sim_view_text (const struct tl_view *view);
const char *sim_op_text (const struct op *op);
const char *sim_command_text (enum tl_command command, unsigned flags);

/* queue.c */
/* Forget everything.  Push returns the order of insertion; pop is false where
 * nothing is left. */
void queue_reset (struct queue *queue);
uint64_t queue_push (struct queue *queue, const struct entry *entry);
bool queue_pop (struct queue *queue, struct entry *entry);

/* Let something happen to a node's present life, or (NODE NULL) at large. */
void sim_at (struct sim *sim, uint64_t time, enum kind kind, struct node *node,
             uint64_t a, uint64_t b);

/* network.c */
void network_reset (struct sim *sim);
/* A node dials; the call reaches the other machine; it came to nothing; the
 * connection is up for one end. */
void network_dial (struct sim *sim, struct node *node);
void network_dial_arrives (struct sim *sim, int from, uint32_t life);
void network_dial_failed (struct sim *sim, struct node *node,
                          const char *reason);
void network_connected (struct sim *sim, uint64_t conn, uint64_t end);
/* Is ENTRY held up by a link that is down?  Then it was put back. */
bool network_held (struct sim *sim, const struct entry *entry);
/* An end learns that the connection is gone; a node closes its end; a node is
 * no more (ORDERLY: it was told to stop). */
void network_fin (struct sim *sim, uint64_t conn, uint64_t end);
void network_close (struct sim *sim, struct node *node, uint32_t id);
void network_node_died (struct sim *sim, struct node *node, bool orderly);
/* Faults: see network.c. */
bool network_cut (struct sim *sim, int deaf_node);
void network_down (struct sim *sim, unsigned directions, uint64_t until);
void network_lose (struct sim *sim, int from);

/* For wire.c: a random delay; an end that is no more; let an end know; a
 * connection's number; the connection that a node calls ID. */
uint64_t network_delay (struct sim *sim);
void network_end_gone (struct conn *conn, unsigned e);
void network_tell (struct sim *sim, struct conn *conn, uint64_t id, unsigned e,
                   uint64_t when);
uint64_t network_number (const struct network *net, const struct conn *conn);
struct conn *network_find (struct sim *sim, const struct node *node,
                           uint32_t id, unsigned *e);

/* wire.c */
/* BYTES have arrived from end FROM (and the arrival's order, see wire.c). */
void wire_arrive (struct sim *sim, uint64_t conn, uint64_t from,
                  uint64_t bytes);
/* Send one frame on the connection that the node calls ID. */
void wire_send (struct sim *sim, struct node *node, uint32_t id,
                const struct tl_frame *frame, const void *payload);
/* Give the receiver of pipe FROM the frames that are whole. */
void wire_take (struct sim *sim, struct conn *conn, unsigned from);

/* stranger.c */
bool stranger_change (struct sim *sim, struct node *to, struct strange *given);

/* arbiter.c */
void arbiter_reset (struct sim *sim);
/* A question leaves; it reaches the arbiter; its answer, or SILENCE, reaches
 * the node. */
void arbiter_ask (struct sim *sim, struct node *node,
                  const struct tl_action *action);
void arbiter_question (struct sim *sim, uint64_t question);
void arbiter_answer (struct sim *sim, uint64_t question, bool silence);

/* node.c */
/* Make a node that was never started; start it; kill it; stop it in order. */
void node_init (struct sim *sim, int index);
void node_start (struct sim *sim, struct node *node);
void node_kill (struct sim *sim, struct node *node, const char *how,
                bool ram_lost);
void node_stop (struct sim *sim, struct node *node);
void node_gone (struct sim *sim, struct node *node);
/* Tell the core what happened, do what it says, check; a timer is due. */
void node_step (struct sim *sim, struct node *node, struct tl_event *event);
void node_wake (struct sim *sim, struct node *node, uint64_t generation);
/* The step in which it was halted goes on. */
void node_resume (struct sim *sim, struct node *node);
/* What status shows, and what follows from it; of a live node. */
const struct tl_status *node_status (struct sim *sim, struct node *node);
bool node_member (const struct node *node);
bool node_primary (struct sim *sim, struct node *node);
bool node_connected (struct sim *sim, struct node *node);

static inline struct node *
node_other (struct sim *sim, const struct node *node)
{
  return &sim->nodes[!node->index];
}

/* disk.c: see there */
void disk_store (struct sim *sim, struct node *node);
void disk_stored (struct sim *sim, struct node *node, bool ok);
void disk_crash (struct sim *sim, struct node *node, bool power);
bool disk_load (struct sim *sim, struct node *node);
void disk_power_cut (struct sim *sim, struct node *node);

/* ram.c */
void ram_open (struct sim *sim, struct node *node);
void ram_lose (struct sim *sim, struct node *node);

/* executor.c: carry out sim->update in its order, as core.h demands. */
void executor_run (struct sim *sim, struct node *node,
                   const struct tl_event *event);
/* The same in parts: actions from one on and up to another; the answers. */
void executor_act (struct sim *sim, struct node *node,
                   const struct tl_event *event, unsigned from, unsigned to);
void executor_answer (struct sim *sim, struct node *node);
/* Let it be woken when it wants to be, by its clock as it is now. */
void executor_arm (struct sim *sim, struct node *node);

/* oracle.c */
void oracle_reset (struct sim *sim);
/* A request enters its node; it was answered with success; does a primary's
 * claim of two copies hold; a core has made a step. */
void oracle_invoke (struct sim *sim, struct op *op);
void oracle_done (struct sim *sim, struct op *op);
void oracle_check_claims (struct sim *sim);
void oracle_after_step (struct sim *sim, struct node *node);
/* promotion.c: the node has become primary. */
void oracle_promoted (struct sim *sim, struct node *node);

/* history.c: see there */
void history_reset (struct sim *sim);
void history_learn (struct sim *sim, const struct tl_view *view);
void history_enter (struct sim *sim, struct node *node);
struct history *history_of (struct sim *sim, struct node *node);
const uint64_t *history_floors (struct sim *sim, struct node *node);
void history_raise (struct sim *sim, struct node *node, uint32_t sector,
                    uint64_t index);
bool history_may_show (const struct sim *sim, const struct history *history,
                       uint32_t version, uint32_t sector);

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
void content_raise (uint64_t *floor, uint64_t index);

/* clients.c */
void clients_reset (struct sim *sim);
/* A client's turn.  For the others see clients.c. */
void clients_tick (struct sim *sim, uint64_t client);
void clients_turn (struct sim *sim, const struct node *primary);
void clients_thaw (struct sim *sim, struct node *node);
void clients_avoid (struct sim *sim, const struct node *node, uint64_t until);
/* A request has ended; a node took its requests with it. */
void clients_done (struct sim *sim, struct op *op);
void clients_node_died (struct sim *sim, struct node *node);
unsigned clients_attached (struct sim *sim, const struct node *node);
bool clients_final_read (struct sim *sim, struct node *node, unsigned block);

/* faults.c: see there */
void fault_freeze (struct sim *sim, struct node *node);
void fault_halt (struct sim *sim, struct node *node);
void fault_deafen (struct sim *sim, struct node *node);
void fault_slow (struct sim *sim);
void fault_link (struct sim *sim, unsigned directions);
void fault_swizzle (struct sim *sim);
void fault_link_stops (struct sim *sim, unsigned link, uint64_t until);
void fault_clock (struct sim *sim, struct node *node);
void fault_disk (struct sim *sim, struct node *node);
void fault_stuck (struct sim *sim, struct node *node);
void fault_arbiter (struct sim *sim);

/* setup.c */
void schedule_reset (struct sim *sim);

/* schedule.c */
/* The next fault is due.  For the others see schedule.c. */
void schedule_tick (struct sim *sim);
void schedule_takeover (struct sim *sim, struct node *primary);
void schedule_notice (struct sim *sim, struct node *node);
void schedule_strike (struct sim *sim, struct node *node);
void schedule_crash (struct sim *sim, struct node *node, const char *how,
                     bool ram_lost);
bool schedule_entitled (struct sim *sim, struct node *node);
const struct tl_view *schedule_newest (struct sim *sim);

/* operators.c */
void operators_send (struct sim *sim, struct node *node, enum tl_command cmd,
                     unsigned flags, uint64_t delay);
void operators_command (struct sim *sim, struct node *node,
                        enum tl_command command, unsigned flags);
/* The node answers a command. */
void operators_reply (struct sim *sim, struct node *node, uint64_t token,
                      int status, const char *text);
void operators_check (struct sim *sim);
bool operators_wait (const struct sim *sim);
/* Nobody answers its commands any more. */
void operators_node_died (struct sim *sim, struct node *node);
void operators_manage (struct sim *sim);
void operators_meddle (struct sim *sim);

/* create.c: see there */
void create_volume (struct sim *sim);
bool create_waits (struct sim *sim, struct node *node);
void create_anew (struct sim *sim, struct node *node);
bool create_would_lose (struct sim *sim, struct node *node);

/* reconcile.c: see there */
void reconcile (struct sim *sim);
bool reconcile_by_force (struct sim *sim);

/* heal.c */
/* All faults cease; look whether all is well again. */
void heal_begin (struct sim *sim);
void heal_tick (struct sim *sim);

#endif
