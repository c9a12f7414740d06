/* A test of the real node with real threads: two nodes in one process, a proxy
 * that is the network between them, threads that are their clients, and one
 * that stops, starts, promotes and cuts.  What the clients did is recorded and
 * judged afterwards.
 */
#ifndef TWINLOG_THREADS_H
#define TWINLOG_THREADS_H

#include "net/node.h"
#include "sim/rng.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SECTOR 512u
#define SECTORS_OF_BLOCK 8u
#define BLOCKS 32u /* few, so that requests meet */
#define SECTORS (BLOCKS * SECTORS_OF_BLOCK)
#define SIZE ((uint64_t)SECTORS * SECTOR)
#define MOST_SECTORS 64u /* of one request */
#define CLIENTS 6u
#define VOLUME "threads"

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SLOW 4 /* bounds are so many times longer */
#else
#define SLOW 1
#endif

#define DEADLINE (UINT64_C (1000000) * (SLOW > 1 ? 2 : 1))
#define GRACE UINT64_C (1000000) /* what the core grants the arbiter */
#define CONVERGE (UINT64_C (15000000) * SLOW)

/* ---- What the clients did ---- */

enum kind { OP_READ, OP_WRITE, OP_ZERO };

#define TORN UINT64_MAX /* a sector that nobody wrote so */

struct op {
  uint64_t start, end; /* microseconds */
  uint64_t id;         /* what a write wrote */
  uint32_t first, count;
  enum kind kind;
  bool ok;
  size_t seen; /* read: index of the first of COUNT ids in history.seen */
};

#define NEVER UINT64_MAX

static inline bool
covers (const struct op *op, uint32_t sector)
{
  return op->first <= sector && sector < op->first + op->count;
}

/* A request that failed may take effect at any time. */
static inline uint64_t
end_of (const struct op *op)
{
  return op->ok ? op->end : NEVER;
}

struct history {
  struct op *ops;
  size_t n, capacity;
  uint64_t *seen;
  size_t n_seen, seen_capacity;
};

/* Add OP, and where it is a read that was answered the ids in BYTES.  One
 * thread at a time.
 */
void history_add (struct history *history, const struct op *op,
                  const unsigned char *bytes);
void history_free (struct history *history);

/* Fill COUNT sectors from FIRST on with what only write ID writes there. */
void history_fill (unsigned char *bytes, uint64_t id, uint32_t first,
                   uint32_t count);

/* ---- The nodes ---- */

struct test;

struct slot {
  struct test *test;
  unsigned index;
  char name[2];
  char state[160], control[108], store[160];
  char listen[32], peer[32];
  unsigned port, proxy_port; /* of its own, and where the other dials it */
  bool kept;                 /* the RAM is a file (controller only) */
  unsigned opened;           /* how often (controller only) */

  pthread_mutex_t lock; /* guards the next three; innermost */
  pthread_cond_t idle;  /* users is 0 */
  struct tl_node *node; /* NULL: closed */
  unsigned users;
  bool ending; /* let nobody in */
};

/* Open and start; a failure is a violation.  KEPT: with a file as RAM.  The
 * controller's thread, as for the other two.
 */
bool slot_open (struct slot *slot, bool kept);

/* Stop and close.  LOSE: without its RAM, if the other has all. */
void slot_close (struct slot *slot, bool lose);
bool slot_status (struct slot *slot, struct tl_status *status);

/* The node, kept open until slot_leave; NULL where it is closed. */
struct tl_node *slot_enter (struct slot *slot);
void slot_leave (struct slot *slot);

/* Send one command to the control socket of SLOT.  Its status, or -1 where
 * there is no answer.  TEXT may be NULL.
 */
int slot_command (struct slot *slot, const char *line, char *text,
                  size_t text_size);

/* Let the sockets to the peer take only little at a time. */
void inside_squeeze (struct slot *slot);
void inside_watched (struct test *test, struct slot *slot);

/* Connect, send LINE, and where WAIT wait a little for an answer. */
void slot_call (struct slot *slot, const char *line, bool wait);

/* ---- The network ---- */

enum wire { WIRE_OPEN, WIRE_CUT, WIRE_STALLED };

struct proxy;
struct proxy *proxy_start (struct slot slots[2], uint64_t seed);
void proxy_set (struct proxy *proxy, enum wire wire);
void proxy_stop (struct proxy *proxy);

/* Ports of 127.0.0.1 that no other test takes while this process lives. */
unsigned port_claim (struct rng *rng);

/* ---- The clients ---- */

struct client {
  struct test *test;
  unsigned index;
  pthread_t thread;
  struct rng rng;
  uint64_t written; /* ids used */
  struct history history;
  _Atomic uint64_t since; /* when the request under way began, 0: none */
};

void clients_start (struct test *test);
void clients_stop (struct test *test);

/* Read everything through SLOT, as client 0, while the others rest. */
bool clients_read_all (struct test *test, struct slot *slot);

/* ---- The test ---- */

struct test {
  uint64_t seed;
  double seconds;
  bool arbiter; /* policy arbiter, else error */
  const char *directory;
  char arbiter_command[400];
  struct slot slots[2];
  struct proxy *proxy;
  struct client clients[CLIENTS];
  uint64_t calm_end; /* until then nothing was disturbed */
  _Atomic bool stop; /* the clients are to end */
  _Atomic bool over; /* so is the watch */
  _Atomic unsigned violations;
  unsigned counts[8]; /* what the controller did */
};

/* How long a request may take, microseconds. */
static inline uint64_t
request_bound (const struct test *test)
{
  return DEADLINE + (test->arbiter ? GRACE : 0) + UINT64_C (1000000) * SLOW;
}

/* Say what is wrong; the run goes on.  Any thread. */
void violation (struct test *test, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));

/* Between looks at a condition. */
void pause_ms (unsigned ms);
uint64_t now_us (void);

/* Disturb for the rest of the time, then heal.  False where that fails. */
bool faults_run (struct test *test);

/* Wait, with a bound, until one node is Primary and, if BOTH, the other
 * UpToDate; promote one where there is none.
 */
bool faults_settle (struct test *test, bool both, uint64_t bound);

/* Both stores hold the same bytes. */
void judge_stores (struct test *test);

/* No block is torn. */
void judge_blocks (struct test *test);

/* No request took too long, no worker was forgotten. */
void judge_times (struct test *test);

/* All of these, and what the clients saw is linearizable. */
void judge_histories (struct test *test);

#endif
