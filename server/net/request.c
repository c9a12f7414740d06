/* Requests of NBD clients: what nbdkit's workers call.  A worker enters the
 * critical section itself, sends its frame itself, and waits outside.
 */
#include "net/net.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- Who is inside ---- */

static void
enter (struct tl_node *node, struct tl_inside *inside)
{
  inside->number = ++node->entered;
  inside->began = tl_now ();
  inside->next = NULL;
  inside->prev = node->inside_last;
  if (node->inside_last)
    node->inside_last->next = inside;
  else
    node->inside_first = inside;
  node->inside_last = inside;
  inside->linked = true;
}

static void
leave_inside (struct tl_node *node, struct tl_inside *inside)
{
  if (!inside->linked)
    return;
  if (inside->prev)
    inside->prev->next = inside->next;
  else
    node->inside_first = inside->next;
  if (inside->next)
    inside->next->prev = inside->prev;
  else
    node->inside_last = inside->prev;
  inside->linked = false;
  if (node->admitting)
    pthread_cond_broadcast (&node->changed);
}

/* ---- The end of a call ---- */

void
tl_call_settle (struct tl_node *node, struct tl_call *call)
{
  if (!call->ended || call->entry.conn)
    return;
  if (call->waits) {
    call->waits = false;
    node->waiting--;
  }
  /* Here rather than by the worker: that saves it another turn of the lock. */
  if (call->last || call->request.error)
    leave_inside (node, call->inside);
  if (atomic_exchange_explicit (&call->state, TL_CALL_ENDED,
                                memory_order_acq_rel) == TL_CALL_SLEEPS)
    tl_wake_later (node, &call->state);
}

void
tl_call_end (struct tl_node *node, struct tl_request *request)
{
  struct tl_call *call = (struct tl_call *)request;

  call->ended = true;
  if (call->entry.conn && !call->entry.flying)
    tl_queue_detach (node, call); /* settles it */
  else
    tl_call_settle (node, call);
}

/* Wait for the end of CALL.  The core bounds the wait, by the deadline; should
 * the loop be held up, the worker itself tells the core the time.
 */
static void
wait_for (struct tl_node *node, struct tl_call *call)
{
  static const struct timespec second = {.tv_sec = 1};

  for (;;) {
    uint32_t state = TL_CALL_WAITS;

    if (!atomic_compare_exchange_strong_explicit (
            &call->state, &state, TL_CALL_SLEEPS, memory_order_acquire,
            memory_order_acquire) &&
        state == TL_CALL_ENDED)
      return;
    if (syscall (SYS_futex, &call->state, FUTEX_WAIT_PRIVATE, TL_CALL_SLEEPS,
                 &second, NULL, 0) == -1 &&
        errno == ETIMEDOUT) {
      tl_lock (node);
      tl_tell_time (node);
      tl_leave (node);
    }
  }
}

/* Run one piece.  0 or an errno value. */
static int
run (struct tl_node *node, struct tl_call *call)
{
  struct tl_event event = {.type = TL_EV_REQUEST};
  struct tl_request *request = &call->request;
  struct tl_conn *conn;
  struct tl_copy copy;
  int error = 0;

  event.request = request;
  atomic_init (&call->state, TL_CALL_WAITS);
  call->ended = false;
  call->waits = true;
  call->entry.conn = NULL;

  tl_lock (node);
  if (!node->started || node->over)
    error = ESHUTDOWN;
  else if (request->op == TL_OP_WRITE)
    error = tl_store_reserve (node->store, request->offset, request->length);
  if (error) {
    leave_inside (node, call->inside);
    tl_unlock (node);
    return error;
  }
  if (!call->inside->number)
    enter (node, call->inside);
  else
    request->began = call->inside->began;
  node->waiting++;
  tl_step (node, &event);
  tl_store_take (node->store, &copy);
  tl_pump (node, &copy);
  conn = tl_read_begin (node, call);
  tl_unlock (node);
  tl_store_copy (node->store, &copy);
  if (conn)
    tl_read_until (conn, call);
  wait_for (node, call);

  switch (request->error) {
  case 0:
  case ENOSPC:
  case ESHUTDOWN:
    return request->error;
  default:
    return EIO;
  }
}

/* How much of LENGTH bytes at OFFSET one piece of at most MOST takes: up to a
 * boundary, so that blocks stay whole.
 */
static uint32_t
piece (uint64_t offset, uint32_t length, uint32_t most)
{
  uint32_t room = most - (uint32_t)(offset % most);

  return length < room ? length : room;
}

static bool
in_range (const struct tl_node *node, uint32_t length, uint64_t offset)
{
  return offset <= node->size && length <= node->size - offset;
}

/* Run a request piece by piece. */
static int
run_pieces (struct tl_node *node, struct tl_client *client, enum tl_op op,
            void *bytes, const void *payload, uint32_t length, uint64_t offset)
{
  uint32_t most = op == TL_OP_ZERO ? TL_ZERO_MAX : TL_PAYLOAD_MAX;
  struct tl_inside inside = {.number = 0};
  int error = 0;

  if (!in_range (node, length, offset))
    return EIO;
  while (length && !error) {
    uint32_t n = piece (offset, length, most);
    struct tl_call call;

    memset (&call.request, 0, sizeof call.request);
    call.request.op = op;
    call.request.offset = offset;
    call.request.length = n;
    call.request.epoch = client->epoch;
    if (op == TL_OP_WRITE)
      call.request.checksum = tl_payload_checksum (payload, n);
    call.bytes = bytes;
    call.payload = payload;
    call.snapshot = NULL;
    call.inside = &inside;
    call.last = n == length;
    error = run (node, &call);
    if (bytes)
      bytes = (char *)bytes + n;
    if (payload)
      payload = (const char *)payload + n;
    length -= n;
    offset += n;
  }
  return error;
}

int
tl_node_read (struct tl_node *node, struct tl_client *client, void *bytes,
              uint32_t length, uint64_t offset)
{
  uint64_t begin = tl_now ();
  int error =
      run_pieces (node, client, TL_OP_READ, bytes, NULL, length, offset);

  if (!error)
    tl_latency_add (&node->read_latency, tl_now () - begin);
  return error;
}

int
tl_node_write (struct tl_node *node, struct tl_client *client,
               const void *bytes, uint32_t length, uint64_t offset)
{
  uint64_t begin = tl_now ();
  int error =
      run_pieces (node, client, TL_OP_WRITE, NULL, bytes, length, offset);

  if (!error)
    tl_latency_add (&node->write_latency, tl_now () - begin);
  return error;
}

int
tl_node_zero (struct tl_node *node, struct tl_client *client, uint32_t length,
              uint64_t offset)
{
  return run_pieces (node, client, TL_OP_ZERO, NULL, NULL, length, offset);
}

int
tl_node_flush (struct tl_node *node, struct tl_client *client)
{
  struct tl_inside inside = {.number = 0};
  struct tl_call call = {.request = {.op = TL_OP_FLUSH, .epoch = client->epoch},
                         .inside = &inside,
                         .last = true};

  return run (node, &call);
}

/* ---- Extents ---- */

void
tl_snapshot_take (struct tl_node *node, struct tl_call *call)
{
  const struct tl_map *map = tl_store_allocated (node->store);
  struct tl_snapshot *snapshot = call->snapshot;
  uint64_t offset = call->request.offset;

  snapshot->n = 0;
  while (offset < snapshot->end && snapshot->n < TL_EXTENTS) {
    struct tl_extent *extent = &snapshot->extents[snapshot->n++];
    uint64_t block = tl_block_first (offset), end;
    uint64_t most = tl_block_count (offset, snapshot->end - offset);

    end = (block + tl_map_run (map, block, most)) * TL_BLOCK;
    if (end > snapshot->end)
      end = snapshot->end;
    extent->offset = offset;
    extent->length = end - offset;
    extent->allocated = tl_map_test (map, block);
    offset = end;
  }
}

/* A hole says that zeroes are read there, so that the answer needs what a read
 * needs.  It is a read, whose copy is of the map: everything that was enqueued
 * before the map was looked at is on all members once it is answered.
 */
int
tl_node_extents (struct tl_node *node, struct tl_client *client,
                 uint32_t length, uint64_t offset,
                 int (*extent) (void *opaque, uint64_t offset, uint64_t length,
                                bool allocated),
                 void *opaque)
{
  struct tl_snapshot snapshot = {.end = offset + length};
  if (!in_range (node, length, offset))
    return EIO;
  while (offset < snapshot.end) {
    struct tl_inside inside = {.number = 0};
    struct tl_call call = {
        .request = {.op = TL_OP_READ, .offset = offset, .epoch = client->epoch},
        .snapshot = &snapshot,
        .inside = &inside,
        .last = true};
    uint64_t left = snapshot.end - offset;
    int error;

    call.request.length =
        (uint32_t)(left < TL_PAYLOAD_MAX ? left : TL_PAYLOAD_MAX);
    snapshot.n = 0;
    error = run (node, &call);
    if (error)
      return error;
    for (unsigned i = 0; i < snapshot.n; i++) {
      const struct tl_extent *e = &snapshot.extents[i];

      if (extent (opaque, e->offset, e->length, e->allocated) == -1)
        return -1;
      offset = e->offset + e->length;
    }
    if (!snapshot.n)
      return EIO;
  }
  return 0;
}

/* ---- Clients ---- */

/* Wait, at most until UNTIL, while a request that entered before NUMBER is
 * inside.  False where the time is up.
 */
static bool
wait_inside (struct tl_node *node, uint64_t number, uint64_t until)
{
  struct timespec end = {.tv_sec = (time_t)(until / 1000000),
                         .tv_nsec = (long)(until % 1000000) * 1000};
  bool ok = true;

  node->admitting++;
  while (!node->over && node->inside_first &&
         node->inside_first->number <= number) {
    if (pthread_cond_timedwait (&node->changed, &node->lock, &end) ==
        ETIMEDOUT) {
      ok = false;
      break;
    }
  }
  node->admitting--;
  return ok;
}

struct tl_client *
tl_node_admit (struct tl_node *node, char *why, size_t why_size)
{
  struct tl_client *client = malloc (sizeof *client);
  bool ok = false;

  if (!client) {
    snprintf (why, why_size, "volume %s: no memory", node->volume);
    return NULL;
  }
  tl_lock (node);
  if (!node->started || node->over)
    snprintf (why, why_size, "volume %s: node %s is not running", node->volume,
              node->name);
  else if (tl_core_admit (node->core, why, why_size) == 0) {
    if (!wait_inside (node, node->entered, tl_now () + node->deadline))
      snprintf (why, why_size,
                "volume %s: requests of an earlier client are still under way",
                node->volume);
    else if (node->over)
      snprintf (why, why_size, "volume %s: node %s is ending", node->volume,
                node->name);
    else
      ok = tl_core_admit (node->core, why, why_size) == 0;
  }
  if (ok) {
    client->epoch = tl_core_epoch (node->core);
    node->clients++;
  }
  tl_unlock (node);
  if (!ok) {
    free (client);
    return NULL;
  }
  return client;
}

void
tl_node_leave (struct tl_node *node, struct tl_client *client)
{
  tl_lock (node);
  node->clients--;
  tl_unlock (node);
  free (client);
}

void
tl_node_status (struct tl_node *node, struct tl_status *status)
{
  tl_lock (node);
  tl_core_status (node->core, tl_now (), status);
  tl_unlock (node);
}
