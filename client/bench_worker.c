#include "bench_worker.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define ALIGNMENT 4096u
#define STALL 60          /* seconds without any answer */
#define CHAIN_MOST 4      /* writes of a chain */
#define CHAIN_SMALLEST 13 /* as a power of 2: 8 KiB */
#define CHAIN_SIZES 5     /* ... to 128 KiB */

int64_t
worker_now (void)
{
  struct timespec ts;

  clock_gettime (CLOCK_MONOTONIC, &ts);
  return ts.tv_sec * INT64_C (1000000000) + ts.tv_nsec;
}

uint64_t
worker_random (uint64_t *state)
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
    slot->end = worker_now ();
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

  slot->left = 1 + (unsigned)(worker_random (&worker->random) % CHAIN_MOST);
  slot->flush_due = worker->load->row->pattern == BENCH_FLUSHED_CHAINS;
  for (unsigned i = 0; i < slot->left; i++) {
    sizes[i] =
        1u << (CHAIN_SMALLEST + worker_random (&worker->random) % CHAIN_SIZES);
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
  slot->begin = worker_now ();
  if (row->pattern == BENCH_WRITES) {
    slot->left = 1;
    send_write (worker, slot, row->size,
                worker_random (&worker->random) %
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

void *
worker_run (void *opaque)
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

void
worker_prepare (struct worker *worker, struct load *load, unsigned index)
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
