/* One connection of the load: its thread, and the writes in flight on it.
 * Nothing is allocated per request.
 */
#ifndef TWINLOG_CLIENT_BENCH_WORKER_H
#define TWINLOG_CLIENT_BENCH_WORKER_H

#include "bench.h"
#include "bench_histogram.h"

#include <libnbd.h>
#include <pthread.h>
#include <stdatomic.h>

#define ARENA (2u * BENCH_SIZE_MAX) /* bytes of payload, written in turn */
#define CHAIN_REGION (1u << 20)     /* bytes that chains need at least */

/* What all workers of a row have in common. */
struct load {
  const struct bench_row *row;
  uint64_t size;      /* bytes of the volume */
  const char *arena;  /* ARENA bytes */
  int64_t begin, end; /* answers between these count */
  atomic_bool failed; /* all shall end */
};

/* One write, or one chain with its flush, and then the next. */
struct slot {
  struct worker *worker;
  struct slot *next; /* ready */
  unsigned left;     /* requests without an answer */
  bool begun;
  bool flush_due;
  uint64_t bytes;
  int64_t begin, end;
};

/* Touched by its own thread only, but for what is read once that has ended. */
struct worker {
  struct load *load;
  struct nbd_handle *nbd;
  pthread_t thread;
  struct slot slots[BENCH_DEPTH_MAX];
  struct slot *ready; /* all their requests are answered */
  uint64_t random;
  uint64_t at, from, to; /* of chains: the next offset, and its ring */
  uint32_t payload;      /* offset in the arena of the next one */
  bool failed;
  uint64_t done, bytes;
  struct histogram histogram;
  char error[512];
};

/* WORKER, which is all zeroes but for its connection, is number INDEX of
 * LOAD.
 */
void worker_prepare (struct worker *worker, struct load *load, unsigned index);

/* What its thread does; OPAQUE is the worker.  Returns once all that is in
 * flight after the end of the load was answered, or on failure, with `failed`
 * set and one line in `error`.
 */
void *worker_run (void *opaque);

/* The next number of a sequence that begins at *STATE, which is not 0. */
uint64_t worker_random (uint64_t *state);

/* Nanoseconds of the monotonic clock. */
int64_t worker_now (void);

#endif
