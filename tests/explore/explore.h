/* Exhaustive exploration of the core: two nodes, everything that may happen to
 * them as single moves, and every order of these moves up to a bound.
 *
 * The world is one static structure and the cores live in static memory, so
 * that a state is a copy of bytes (snapshot.c) and pointers stay valid.
 */
#ifndef TWINLOG_EXPLORE_EXPLORE_H
#define TWINLOG_EXPLORE_EXPLORE_H

#include "core/internal.h"

#include <setjmp.h>

#define BLOCKS 3u
#define SIZE ((uint64_t)BLOCKS * TL_BLOCK)
#define DEADLINE 5000000u /* microseconds */
#define CONNS 3u          /* that exist at once */
#define QUEUE 16u         /* frames on the way in one direction */
#define SMALL 1400u       /* bytes of payload of a frame without data */
#define PAST 10u          /* views in a history */
#define QUESTIONS 4u      /* to the arbiter, not yet forgotten */
#define REQUESTS 8u       /* of clients, in a whole run */
#define TAGS 16u          /* writes and zeroes, numbered from 1 */
#define TOP 8u            /* slots of kept writes in use at once */
#define BOTH 3u           /* nodes, as bits */
#define TIMERS (16u + REQUESTS)

/* A frame on the way.  Of the content of a block only its tag travels. */
struct packet {
  struct tl_frame frame;
  bool end; /* no frame: the connection is closed */
  uint8_t tags[BLOCKS];
  uint16_t length;
  unsigned char small[SMALL];
};

struct pipe {
  unsigned n;
  struct packet packets[QUEUE];
};

struct conn {
  uint32_t id; /* 0: none */
  bool open[2];
  bool cut; /* what is sent from now on is lost */
};

struct question {
  bool used;
  bool executed;
  bool asked; /* the asker waits for the answer */
  uint8_t node;
  enum tl_answer result;
  bool create, known;
  struct tl_uuid uuid;
  struct tl_view before, after, found;
};

struct client {
  struct tl_request core;
  bool pending;
  uint8_t node, block, tag; /* write: what; read: what was found */
  uint8_t floor;            /* read: the least that may be answered */
};

struct node {
  struct tl_core *core; /* NULL: it is down */
  uint64_t now, wake;
  bool has_record, has_ram, store_wanted, dial_wanted;
  bool fenced; /* switched off, until the other has its answer */
  bool waits;  /* a command is not answered yet */
  bool replaced;
  uint64_t epoch;
  int status; /* of the last reply */
  uint8_t tags[BLOCKS];
  uint64_t allocated_words[1], dirty_words[1];
  struct tl_map allocated;
};

/* How much may happen yet. */
enum budget {
  CUTS,
  CRASHES,
  STORE_FAILURES,
  UNKNOWNS,
  WRITES,
  READS,
  PROMOTES,
  FENCES,
  DEMOTES,
  SWITCHOVERS,
  CREATES,
  ZEROES,
  FORCES,
  DISCARDS,
  FORGETS,
  REPLACEMENTS,
  BUDGETS
};

struct scenario {
  const char *name;
  enum tl_policy policy; /* arbiter: there is one; else real fencing */
  uint8_t budget[BUDGETS];
  unsigned blocks;
  enum {
    FRESH,
    PAIR,
    LONE, /* created alone, with a write in every other block */
    LEFT, /* b was a member and is left behind, with a write */
    SPLIT /* each has a write that the other lacks: somebody lied */
  } begin;
  bool ram_kept, ram_lost, record_lost; /* what a crash may do */
  bool auto_promote, reads_local;
  bool late; /* a core may learn of other things before of the time */
  uint64_t resync_rate;
  /* Loss of acknowledged writes is what was asked for: the policy `continue`
   * with fencing, --force, --fenced of what is not off.  What holds all the
   * same is in owed.c.
   */
  bool may_lose;
};

struct world {
  uint64_t random;
  uint32_t next_conn;
  struct node nodes[2];
  struct conn conns[CONNS];
  struct question questions[QUESTIONS];
  struct tl_uuid arbiter_uuid;
  struct tl_view arbiter_view;
  struct client clients[REQUESTS];
  unsigned n_clients;
  uint8_t tag; /* the newest written */
  uint8_t budget[BUDGETS];
  uint8_t zeroed[BLOCKS]; /* the newest zero of each block */
  /* What no primary may lack: acknowledged writes, and what was read. */
  uint8_t acknowledged[BLOCKS], floor[BLOCKS];
  /* As sets of tags, bit by bit: what each was written upon, itself included;
   * what each node must have while it is complete.
   */
  uint16_t upon[TAGS], owed[2][BLOCKS];
  bool forced;
  bool record_lost; /* of either node, once */
  uint64_t ack_number, ack_id;
  uint8_t ack_node;
};

enum move_kind {
  MOVE_DELIVER, /* arg: connection */
  MOVE_STORED,
  MOVE_EXECUTE, /* arg: question */
  MOVE_ANSWER,
  MOVE_DIAL,
  MOVE_RESTART,
  MOVE_TIME,
  MOVE_WRITE, /* arg: block */
  MOVE_READ,
  MOVE_STORE_FAILS, /* arg: it is durable all the same */
  MOVE_UNKNOWN,     /* arg: question */
  MOVE_CUT,         /* arg: connection */
  MOVE_CRASH,       /* arg: KEPT, MADE, GONE */
  MOVE_PROMOTE,
  MOVE_FENCED_PROMOTE, /* arg: what the other's power-off leaves */
  MOVE_FENCED_DEGRADE,
  MOVE_DEMOTE,
  MOVE_SWITCHOVER,
  MOVE_CREATE,
  MOVE_ZERO, /* arg: block */
  MOVE_FORCED_PROMOTE,
  MOVE_DISCARD,
  MOVE_FORGET,
  MOVE_REPLACE,
  MOVES
};

#define KEPT 1u /* the RAM is there after the crash */
#define MADE 2u /* the record that was being written is durable */
#define GONE 4u /* the state file is lost */

struct move {
  uint8_t kind, node, arg;
};

extern struct world world;
extern struct pipe pipes[CONNS][2]; /* by connection and receiver */
extern struct tl_record records[2]; /* the state files */
extern struct tl_kept kept[2];
extern const struct scenario *scenario;
extern const struct packet *arriving;
extern bool tracing;
extern unsigned touched;    /* bits: nodes that have moved since it was 0 */
extern bool overflow;       /* a limit above was met: the state is left out */
extern char violation[256]; /* empty: none */

/* world.c */
void world_init (const struct scenario *s);
char node_name (unsigned node);
uint8_t content (unsigned node, unsigned block);
void world_start (unsigned node);
void world_crash (unsigned node, unsigned arg);
void world_replace (unsigned node);
void world_step (unsigned node, struct tl_event *event);
void world_stored (unsigned node, bool ok, bool made);
void world_command (unsigned node, enum tl_command command, unsigned flags);
void world_request (unsigned node, enum tl_op op, unsigned block);
void world_tidy (void);
void violate (const char *format, ...) __attribute__ ((format (printf, 1, 2)));

/* wire.c */
void wire_dial (unsigned node);
void wire_send (unsigned node, const struct tl_action *a);
void wire_deliver (unsigned node, unsigned conn);
void wire_close (unsigned node, uint32_t id);
void wire_cut (unsigned conn);
void wire_crash (unsigned node);
void wire_tidy (void);

/* arbiter.c */
void arbiter_ask (unsigned node, const struct tl_action *a);
void arbiter_swap (unsigned question);
void arbiter_answer (unsigned question, bool unknown);
void arbiter_crash (unsigned node);
bool arbiter_end (bool lost);
void arbiter_tidy (void);

/* owed.c */
void owed_change (unsigned node, const struct client *r);
void owed_acknowledged (unsigned node, const struct client *r);
void owed_forced (unsigned node);
void owed_nothing (unsigned node);
bool owed_has (unsigned node, unsigned block, uint16_t tags);
void owed_check (unsigned node);

/* timers.c: when a core does something by itself; NEVER: not. */
void timers (const struct world *w, unsigned node, uint64_t at[TIMERS]);
bool timer_faults (unsigned timer); /* its end takes a fault */
bool time_pass (unsigned node);     /* false: nothing waits for it */

/* moves.c */
bool move_apply (struct move move);
unsigned move_list (struct move *list, unsigned most);
void move_text (struct move move, char *text, size_t size);
bool at_rest (void);

/* check.c */
void check_state (void);
void check_acknowledged (unsigned node, struct client *r);
void check_read (unsigned node, struct client *r);
bool check_recovers (unsigned loser);

/* canon.c: the fingerprint of the state, the same for equal ones. */
struct fingerprint {
  uint64_t low, high;
};
struct fingerprint fingerprint (void);

/* arena.c */
struct tl_core *arena_core (unsigned node);
uint32_t *arena_slots (unsigned node);
void arena_begin (unsigned node); /* what is allocated next is of this node */
void arena_end (void);

/* snapshot.c */
#define SNAPSHOT_MAX (1u << 20)
size_t snapshot_take (unsigned char *bytes);
void snapshot_restore (const unsigned char *bytes, size_t length,
                       unsigned nodes);
/* As a difference to the first snapshot, which is much shorter. */
void snapshot_root (const unsigned char *bytes, size_t length);
size_t snapshot_pack (const unsigned char *bytes, size_t length,
                      unsigned char *packed);
size_t snapshot_unpack (const unsigned char *packed, size_t length,
                        unsigned char *bytes);

/* search.c */
struct totals {
  uint64_t states, transitions, left;
  unsigned depth;
  bool bounded, violated;
  double seconds;
};
void search (const struct scenario *s, uint64_t states, double seconds,
             bool trace, struct totals *totals);

/* scenarios.c */
extern const struct scenario scenarios[];
extern const unsigned n_scenarios;
void scenario_begin (const struct scenario *s);

#endif
