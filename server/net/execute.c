/* The critical section: tell the core what happened and carry out its answer,
 * action by action, before the lock is released.
 */
#include "net/net.h"

#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Steps in a row before the loop is left to do the rest. */
#define STEPS 32

uint64_t
tl_now (void)
{
  struct timespec now;

  clock_gettime (CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void
tl_random_bytes (void *bytes, size_t length)
{
  unsigned char *to = bytes;

  while (length) {
    ssize_t n = getrandom (to, length, 0);

    if (n > 0) {
      to += n;
      length -= (size_t)n;
    }
  }
}

/* Not 0.  One system call for many events keeps it cheap on the write path. */
static uint64_t
fresh_random (struct tl_node *node)
{
  for (;;) {
    if (!node->n_random) {
      tl_random_bytes (node->random, sizeof node->random);
      node->n_random = TL_RANDOM;
    }
    if (node->random[--node->n_random])
      return node->random[node->n_random];
  }
}

void
tl_wake_later (struct tl_node *node, _Atomic uint32_t *state)
{
  if (node->n_wakes == TL_WAKES) {
    for (unsigned i = 0; i < TL_WAKES; i++)
      syscall (SYS_futex, node->wakes[i], FUTEX_WAKE_PRIVATE, 1);
    node->n_wakes = 0;
  }
  node->wakes[node->n_wakes++] = state;
}

void
tl_unlock (struct tl_node *node)
{
  _Atomic uint32_t *wakes[TL_WAKES];
  unsigned n = node->n_wakes;

  for (unsigned i = 0; i < n; i++)
    wakes[i] = node->wakes[i];
  node->n_wakes = 0;
  pthread_mutex_unlock (&node->lock);
  /* The address is all that is used: a worker that saw its state change
   * before it slept may be gone, and its stack with it.
   */
  for (unsigned i = 0; i < n; i++)
    syscall (SYS_futex, wakes[i], FUTEX_WAKE_PRIVATE, 1);
}

void
tl_pump (struct tl_node *node, struct tl_copy *copy)
{
  struct tl_conn *conn;

  do {
    for (conn = node->conns; conn && !tl_queue_ready (conn); conn = conn->next)
      ;
    if (conn)
      tl_queue_pump (node, conn, copy);
  } while (conn);
}

void
tl_leave (struct tl_node *node)
{
  tl_pump (node, NULL);
  tl_unlock (node);
}

void
tl_poke (struct tl_node *node)
{
  if (node->poke_open)
    uv_async_send (&node->async);
}

/* A small payload of the core; to its hello the shell adds what it offers. */
static void
send_small (struct tl_node *node, struct tl_conn *conn,
            const struct tl_action *action)
{
  unsigned char bytes[TL_SMALL_MAX];
  struct tl_frame frame = action->frame;
  const void *payload = action->small;

  if (conn->compress && frame.type == TL_HELLO)
    payload = tl_compress_offer (&frame, payload, bytes);
  tl_queue_add (node, conn, &frame, NULL, payload);
}

static void
send_frame (struct tl_node *node, const struct tl_action *action)
{
  struct tl_conn *conn = tl_conn_find (node, action->conn);
  struct tl_call *call = (struct tl_call *)action->request;

  if (!conn)
    return;
  switch (action->payload) {
  case TL_PAYLOAD_NONE:
    tl_queue_add (node, conn, &action->frame, NULL, NULL);
    break;
  case TL_PAYLOAD_REQUEST:
    tl_queue_add (node, conn, &action->frame, call, call->payload);
    break;
  case TL_PAYLOAD_STORE:
    tl_queue_store (node, conn, &action->frame);
    break;
  case TL_PAYLOAD_SMALL:
    send_small (node, conn, action);
    break;
  }
}

static void
close_conn (struct tl_node *node, uint32_t id)
{
  struct tl_conn *conn = tl_conn_find (node, id);

  if (!conn)
    return;
  conn->told = true;
  tl_queue_finish (node, conn);
}

static void
execute (struct tl_node *node, const struct tl_event *event,
         const struct tl_action *action)
{
  struct tl_call *call = (struct tl_call *)action->request;

  switch (action->type) {
  case TL_DO_WRITE:
    /* A write enters in a step of its own worker, which takes the copy. */
    assert (event->type == TL_EV_REQUEST);
    tl_store_write_later (node->store, call->request.offset,
                          call->request.length, call->payload);
    break;
  case TL_DO_READ:
    if (call->snapshot)
      tl_snapshot_take (node, call);
    else
      tl_store_read (node->store, call->request.offset, call->request.length,
                     call->bytes);
    break;
  case TL_DO_ZERO:
    tl_store_zero (node->store, action->offset, action->length);
    break;
  case TL_DO_APPLY:
    tl_store_write (node->store, action->offset, action->length,
                    event->frame.payload);
    break;
  case TL_DO_CLEAR:
    tl_store_clear (node->store);
    break;
  case TL_DO_SEND:
    send_frame (node, action);
    break;
  case TL_DO_CLOSE:
    close_conn (node, action->conn);
    break;
  case TL_DO_DIAL:
    node->dial_wanted = true;
    tl_poke (node);
    break;
  case TL_DO_STORE:
    node->persist.record = *tl_core_pending (node->core);
    node->persist.wanted++;
    tl_poke (node);
    break;
  case TL_DO_ASK:
    node->arbiter.ask.create = action->create;
    node->arbiter.ask.uuid = action->uuid;
    node->arbiter.ask.before = action->before;
    node->arbiter.ask.after = action->after;
    node->arbiter.wanted++;
    tl_poke (node);
    break;
  case TL_DO_REPLY:
    tl_control_reply (node, action->token, action->status, action->text);
    break;
  case TL_DO_LOG:
    tl_log_add (node, false, "%s", action->text);
    break;
  }
}

static void
step_once (struct tl_node *node, struct tl_event *event)
{
  struct tl_update *update = &node->update;
  struct tl_request *request, *next;

  event->now = tl_now ();
  event->random = fresh_random (node);
  tl_core_step (node->core, event, update);
  for (unsigned i = 0; i < update->n; i++)
    execute (node, event, &update->actions[i]);
  for (request = update->done; request; request = next) {
    next = request->next;
    tl_call_end (node, request);
  }
  node->wake = update->wake;
  if (node->notify_command && tl_core_changed (node->core) == event->now) {
    node->notify.wanted = true;
    tl_poke (node);
  }
}

void
tl_step (struct tl_node *node, struct tl_event *event)
{
  struct tl_event time = {.type = TL_EV_TIME};

  if (node->over)
    return;
  step_once (node, event);
  for (unsigned i = 0; node->wake <= event->now && i < STEPS; i++) {
    step_once (node, &time);
    event->now = time.now;
  }
  /* The loop's timer is left alone where it only fires too early. */
  if (node->wake < node->armed)
    tl_poke (node);
}

void
tl_tell_time (struct tl_node *node)
{
  struct tl_event event = {.type = TL_EV_TIME};

  if (node->wake <= tl_now ())
    tl_step (node, &event);
}
