/* The loop thread: it connects, accepts, reads, keeps the time, serves the
 * control socket, and has slow work done off the loop.  Other threads leave
 * what is to be done in fields guarded by the lock and poke it; it then looks
 * at all of them in turn.
 */
#include "net/net.h"

#include <stdio.h>
#include <unistd.h>

#define PAUSE_MS 1000
#define PATHS_MS 1000

static void on_timer (uv_timer_t *timer);

/* ---- Time ---- */

/* Set the timer to what the core wants. */
static void
arm (struct tl_node *node)
{
  uint64_t wake, now = tl_now ();

  tl_lock (node);
  wake = node->over ? UINT64_MAX : node->wake;
  if (wake == node->armed) {
    tl_unlock (node);
    return;
  }
  node->armed = wake;
  tl_unlock (node);

  if (wake == UINT64_MAX) {
    uv_timer_stop (&node->timer);
    return;
  }
  uv_update_time (&node->loop);
  uv_timer_start (&node->timer, on_timer,
                  wake <= now ? 0 : (wake - now + 999) / 1000, 0);
}

static void
on_timer (uv_timer_t *timer)
{
  struct tl_node *node = timer->data;

  tl_lock (node);
  node->armed = UINT64_MAX;
  tl_tell_time (node);
  tl_leave (node);
  tl_turn (node);
}

static void
on_paths (uv_timer_t *timer)
{
  struct tl_node *node = timer->data;

  tl_mptcp_look (node);
  tl_turn (node);
}

/* ---- Listening ---- */

static void
on_listen (uv_poll_t *poll, int status, int events)
{
  struct tl_node *node = poll->data;

  tl_conn_accept (node);
  tl_turn (node);
}

static void
on_control (uv_poll_t *poll, int status, int events)
{
  struct tl_node *node = poll->data;

  tl_control_accept (node);
  tl_turn (node);
}

static void
watch_listeners (struct tl_node *node)
{
  uv_poll_start (&node->listen_poll, UV_READABLE, on_listen);
  uv_poll_start (&node->control_poll, UV_READABLE, on_control);
}

static void
on_resume (uv_timer_t *timer)
{
  watch_listeners (timer->data);
}

void
tl_loop_pause (struct tl_node *node)
{
  uv_poll_stop (&node->listen_poll);
  uv_poll_stop (&node->control_poll);
  uv_timer_start (&node->resume, on_resume, PAUSE_MS, 0);
}

/* ---- The end ---- */

static void
close_handles (struct tl_node *node)
{
  tl_lock (node);
  node->poke_open = false;
  tl_unlock (node);
  uv_close ((uv_handle_t *)&node->async, NULL);
  uv_close ((uv_handle_t *)&node->timer, NULL);
}

/* Once tl_node_stop was called: end everything; the loop runs out when the
 * last connection has lingered and the last work has returned.
 */
static void
end (struct tl_node *node)
{
  if (!node->ending) {
    node->ending = true;
    uv_close ((uv_handle_t *)&node->listen_poll, NULL);
    uv_close ((uv_handle_t *)&node->control_poll, NULL);
    uv_close ((uv_handle_t *)&node->resume, NULL);
    uv_close ((uv_handle_t *)&node->paths_timer, NULL);
    /* Whoever tries to connect now is refused rather than kept waiting. */
    close (node->listen_fd);
    close (node->control_fd);
    node->listen_fd = node->control_fd = -1;
    tl_control_end_all (node);
  }
  tl_conn_end_all (node);
  tl_notify_end (node);
  if (!node->closing && !node->conns && tl_control_idle (node) &&
      !node->persist.busy && !node->arbiter.busy && !node->notify.busy &&
      !node->log_queue.busy) {
    node->closing = true;
    close_handles (node);
  }
}

void
tl_turn (struct tl_node *node)
{
  bool over;

  if (node->closing)
    return;
  tl_control_turn (node);
  tl_conn_turn (node);
  tl_persist_turn (node);
  tl_arbiter_turn (node);
  tl_notify_turn (node);
  tl_log_turn (node);
  tl_lock (node);
  over = node->over;
  tl_unlock (node);
  if (over)
    end (node);
  else
    arm (node);
}

static void
on_poke (uv_async_t *async)
{
  tl_turn (async->data);
}

int
tl_loop_init (struct tl_node *node, char *error, size_t error_size)
{
  int r = uv_loop_init (&node->loop);

  if (r == 0) {
    r = uv_async_init (&node->loop, &node->async, on_poke);
    if (r != 0)
      uv_loop_close (&node->loop);
  }
  if (r != 0) {
    snprintf (error, error_size, "cannot make the event loop: %s",
              uv_strerror (r));
    return -1;
  }
  uv_timer_init (&node->loop, &node->timer);
  uv_timer_init (&node->loop, &node->resume);
  uv_timer_init (&node->loop, &node->paths_timer);
  uv_poll_init (&node->loop, &node->listen_poll, node->listen_fd);
  uv_poll_init (&node->loop, &node->control_poll, node->control_fd);
  node->async.data = node->timer.data = node->resume.data =
      node->paths_timer.data = node->listen_poll.data =
          node->control_poll.data = node;
  watch_listeners (node);
  if (node->mptcp)
    uv_timer_start (&node->paths_timer, on_paths, PATHS_MS, PATHS_MS);
  tl_lock (node);
  node->poke_open = true;
  node->wake = node->armed = UINT64_MAX;
  tl_unlock (node);
  return 0;
}

void *
tl_loop_main (void *opaque)
{
  struct tl_node *node = opaque;

  tl_turn (node);
  uv_run (&node->loop, UV_RUN_DEFAULT);
  uv_loop_close (&node->loop);
  tl_lock (node);
  node->loop_ended = true;
  pthread_cond_broadcast (&node->changed);
  tl_unlock (node);
  return NULL;
}
