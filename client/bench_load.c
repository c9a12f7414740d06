#include "bench_load.h"
#include "bench_connect.h"
#include "bench_histogram.h"

#include "core/core.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define ARENA (2u * BENCH_SIZE_MAX) /* bytes of payload, written in turn */
#define ALIGNMENT 4096u
#define STALL 60          /* seconds without any answer */
#define CHAIN_MOST 4      /* writes of a chain */
#define CHAIN_SMALLEST 13 /* as a power of 2: 8 KiB */
#define CHAIN_SIZES 5     /* ... to 128 KiB */
#define CHAIN_REGION (1u << 20)

struct load;

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

struct load {
  const struct bench_row *row;
  uint64_t size;
  char *arena;
  int64_t begin, end; /* answers between these count */
  atomic_bool failed; /* all shall end */
};

int64_t
load_now (void)
{
  struct timespec ts;

  clock_gettime (CLOCK_MONOTONIC, &ts);
  return ts.tv_sec * INT64_C (1000000000) + ts.tv_nsec;
}

static uint64_t
random_next (uint64_t *state)
{
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

/* Answered, by libnbd within a call of the worker's own. */
static int
answered (void *opaque, int *error)
{
  struct slot *slot = opaque;
  struct worker *worker = slot->worker;

  if (*error && !worker->failed) {
    snprintf (worker->error, sizeof worker->error, "a request failed: %s",
              strerror (*error));
    worker->failed = true;
  }
  if (--slot->left == 0) {
    slot->end = load_now ();
    slot->next = worker->ready;
    worker->ready = slot;
  }
  return 1; /* libnbd may forget it */
}

static void
refused (struct worker *worker)
{
  const char *text = nbd_get_error ();

  snprintf (worker->error, sizeof worker->error, "a request failed: %s",
            text ? text : "?");
  worker->failed = true;
}

static void
send_write (struct worker *worker, struct slot *slot, uint32_t size,
            uint64_t offset)
{
  nbd_completion_callback callback = {.callback = answered, .user_data = slot};

  if (worker->payload + size > ARENA)
    worker->payload = 0;
  if (nbd_aio_pwrite (worker->nbd, worker->load->arena + worker->payload, size,
                      offset, callback, 0) == -1) {
    refused (worker);
    answered (slot, &(int){0});
  }
  worker->payload += size < ALIGNMENT ? ALIGNMENT : size;
}

static void
send_flush (struct worker *worker, struct slot *slot)
{
  nbd_completion_callback callback = {.callback = answered, .user_data = slot};

  slot->left = 1;
  slot->flush_due = false;
  if (nbd_aio_flush (worker->nbd, callback, 0) == -1) {
    refused (worker);
    answered (slot, &(int){0});
  }
}

/* The writes of a chain follow each other on the device, and go out
 * together.
 */
static void
send_chain (struct worker *worker, struct slot *slot)
{
  uint32_t sizes[CHAIN_MOST];

  slot->left = 1 + (unsigned)(random_next (&worker->random) % CHAIN_MOST);
  slot->flush_due = worker->load->row->pattern == BENCH_FLUSHED_CHAINS;
  for (unsigned i = 0; i < slot->left; i++) {
    sizes[i] =
        1u << (CHAIN_SMALLEST + random_next (&worker->random) % CHAIN_SIZES);
    slot->bytes += sizes[i];
  }
  for (unsigned i = 0, n = slot->left; i < n; i++) {
    if (worker->at + sizes[i] > worker->to)
      worker->at = worker->from;
    send_write (worker, slot, sizes[i], worker->at);
    worker->at += sizes[i];
  }
}

static void
send_next (struct worker *worker, struct slot *slot)
{
  const struct bench_row *row = worker->load->row;

  slot->begun = true;
  slot->bytes = row->size;
  slot->begin = load_now ();
  if (row->pattern == BENCH_WRITES) {
    slot->left = 1;
    send_write (worker, slot, row->size,
                random_next (&worker->random) %
                    (worker->load->size / row->size) * row->size);
  } else
    send_chain (worker, slot);
}

static void
count (struct worker *worker, const struct slot *slot)
{
  if (slot->end < worker->load->begin || slot->end > worker->load->end)
    return;
  worker->done++;
  worker->bytes += slot->bytes;
  histogram_add (&worker->histogram, (uint64_t)(slot->end - slot->begin));
}

/* A slot whose requests are all answered: what comes next for it.  False: it
 * rests, for it is the end.
 */
static bool
go_on (struct worker *worker, struct slot *slot)
{
  if (worker->failed || atomic_load (&worker->load->failed))
    return false;
  if (slot->flush_due) {
    send_flush (worker, slot);
    return true;
  }
  if (slot->begun)
    count (worker, slot);
  if (slot->end > worker->load->end)
    return false;
  send_next (worker, slot);
  return true;
}

static void *
work (void *opaque)
{
  struct worker *worker = opaque;
  unsigned resting = 0, silent = 0;
  int n;

  for (;;) {
    while (worker->ready) {
      struct slot *slot = worker->ready;

      worker->ready = slot->next;
      silent = 0;
      if (!go_on (worker, slot))
        resting++;
    }
    if (resting == worker->load->row->depth)
      break;
    if (worker->failed && nbd_aio_is_dead (worker->nbd))
      break;
    n = nbd_poll (worker->nbd, 1000);
    if (n == -1 && !worker->failed)
      refused (worker);
    silent = n == 0 ? silent + 1 : 0;
    if (silent == STALL && !worker->failed) {
      snprintf (worker->error, sizeof worker->error, "no answer for %d s",
                STALL);
      worker->failed = true;
    }
    if (n == -1 || silent >= STALL)
      break;
  }
  if (worker->failed)
    atomic_store (&worker->load->failed, true);
  return NULL;
}

/* Nanoseconds that a process has computed for, -1: not known. */
static int64_t
cpu_time (pid_t pid)
{
  struct timespec ts;
  clockid_t clock;

  if (clock_getcpuclockid (pid, &clock) != 0 ||
      clock_gettime (clock, &ts) == -1)
    return -1;
  return ts.tv_sec * INT64_C (1000000000) + ts.tv_nsec;
}

static void
cpu_times (const struct bench_target *target, int64_t times[BENCH_SIDES])
{
  for (unsigned i = 0; i < BENCH_SIDES; i++)
    times[i] = i == BENCH_CLIENT || target->pid[i] > 0
                   ? cpu_time (target->pid[i]) /* 0: of this process */
                   : -1;
}

/* Until then, or a worker has failed. */
static void
sleep_until (struct load *load, int64_t until)
{
  int64_t left;

  while ((left = until - load_now ()) > 0 && !atomic_load (&load->failed)) {
    struct timespec ts = {0, left < 100000000 ? (long)left : 100000000L};

    nanosleep (&ts, NULL);
  }
}

/* Bytes that do not compress, so that no link looks faster than it is. */
static char *
make_arena (void)
{
  uint64_t *arena = mmap (NULL, ARENA, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  uint64_t random = 88172645463325252u;

  if (arena == MAP_FAILED)
    return NULL;
  for (size_t i = 0; i < ARENA / sizeof *arena; i++)
    arena[i] = random_next (&random);
  return (char *)arena;
}

static void
prepare (struct worker *worker, struct load *load, unsigned index)
{
  uint64_t region = load->size / load->row->connections;

  worker->load = load;
  worker->random = 0x9e3779b97f4a7c15u * (index + 1);
  worker->payload =
      ARENA / load->row->connections * index / ALIGNMENT * ALIGNMENT;
  region -= region % ALIGNMENT;
  worker->from = worker->at = region * index;
  worker->to = worker->from + region;
  for (unsigned i = 0; i < load->row->depth; i++) {
    worker->slots[i].worker = worker;
    worker->slots[i].next = worker->ready;
    worker->ready = &worker->slots[i];
  }
}

static void
conclude (struct load *load, const struct worker *workers,
          const int64_t before[], const int64_t after[], struct bench_row *row)
{
  double seconds = (double)(load->end - load->begin) / 1e9;
  struct histogram all = {0};
  uint64_t bytes = 0;

  row->done = 0;
  for (unsigned i = 0; i < row->connections; i++) {
    row->done += workers[i].done;
    bytes += workers[i].bytes;
    histogram_merge (&all, &workers[i].histogram);
  }
  row->per_second = (double)row->done / seconds;
  row->bytes_per_second = (double)bytes / seconds;
  row->p50 = histogram_part (&all, 0.5);
  row->p99 = histogram_part (&all, 0.99);
  row->p999 = histogram_part (&all, 0.999);
  for (unsigned i = 0; i < BENCH_SIDES; i++)
    row->cpu[i] =
        before[i] < 0 || after[i] < 0 || row->done == 0
            ? -1
            : (double)(after[i] - before[i]) / 1e3 / (double)row->done;
}

/* Start the workers, wait, and end them. */
static int
run (const struct bench_target *target, struct load *load,
     struct worker *workers, int64_t duration, struct bench_row *row,
     char *error, size_t error_size)
{
  int64_t before[BENCH_SIDES], after[BENCH_SIDES];
  unsigned started = 0;
  int status = TL_DONE;

  load->begin = load_now () + duration / 10;
  load->end = load->begin + duration;
  while (started < row->connections) {
    prepare (&workers[started], load, started);
    if (pthread_create (&workers[started].thread, NULL, work,
                        &workers[started]) != 0) {
      snprintf (error, error_size, "cannot start a thread");
      atomic_store (&load->failed, true);
      status = TL_FAILED;
      break;
    }
    started++;
  }
  sleep_until (load, load->begin);
  cpu_times (target, before);
  sleep_until (load, load->end);
  cpu_times (target, after);
  for (unsigned i = 0; i < started; i++) {
    pthread_join (workers[i].thread, NULL);
    if (workers[i].failed && status == TL_DONE) {
      snprintf (error, error_size, "%s", workers[i].error);
      status = TL_FAILED;
    }
  }
  if (status == TL_DONE) {
    conclude (load, workers, before, after, row);
    if (row->done == 0) {
      snprintf (error, error_size,
                "no write ended in time; give more "
                "--seconds");
      status = TL_FAILED;
    }
  }
  return status;
}

int
load_run (const struct bench_target *target, int64_t duration,
          struct bench_row *row, char *error, size_t error_size)
{
  static char *arena; /* for all runs of the process */
  struct load load = {.row = row, .size = target->size};
  struct worker *workers = calloc (row->connections, sizeof *workers);
  unsigned connected = 0;
  int status = TL_DONE;

  if (!arena)
    arena = make_arena ();
  load.arena = arena;
  if (!workers || !arena) {
    snprintf (error, error_size, "not enough memory");
    status = TL_FAILED;
  } else if (row->size > target->size || row->size > target->request_max ||
             (row->pattern != BENCH_WRITES &&
              target->size / row->connections < CHAIN_REGION)) {
    snprintf (error, error_size,
              "the volume of %llu bytes is too small for this, or takes "
              "writes of %llu bytes only",
              (unsigned long long)target->size,
              (unsigned long long)target->request_max);
    status = TL_FAILED;
  }
  while (status == TL_DONE && connected < row->connections) {
    status = bench_connect (target, &workers[connected].nbd, error, error_size);
    connected += status == TL_DONE;
  }
  if (status == TL_DONE)
    status = run (target, &load, workers, duration, row, error, error_size);
  /* A worker that gave up still has requests under way: no farewell. */
  for (unsigned i = 0; i < connected; i++) {
    if (status == TL_DONE)
      nbd_shutdown (workers[i].nbd, 0);
    nbd_close (workers[i].nbd);
  }
  free (workers);
  return status;
}
