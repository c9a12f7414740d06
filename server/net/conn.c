/* Connections to the peer: made, watched and ended by the loop thread.
 *
 * The way of a connection: dialled or accepted, then up: the core is told and
 * its frames come and go.  It ends in one of two ways.  The core asks for it:
 * what is queued is sent as far as that goes without waiting, the stream is
 * ended, and the descriptor lingers until the peer has read it, so that the
 * last words are not lost.  Or it fails: the core is told why, once.  `told`
 * is set, under the lock, by whoever comes first; nothing is read for the core
 * afterwards.  The descriptor is closed and the memory freed once the handles
 * are closed and no worker is in sendmsg.
 */
#include "net/net.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINGER_MS 200

/* The kernel gives up on a peer that acknowledges nothing for so long, should
 * the core ever not.
 */
#define USER_TIMEOUT_MS 30000

static void on_poll (uv_poll_t *poll, int status, int events);

struct tl_conn *
tl_conn_find (struct tl_node *node, uint32_t id)
{
  for (struct tl_conn *conn = node->conns; conn; conn = conn->next)
    if (id && conn->id == id && !conn->told)
      return conn;
  return NULL;
}

static void
set_options (int fd)
{
  int one = 1, timeout = USER_TIMEOUT_MS;

  setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  setsockopt (fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof timeout);
}

void
tl_conn_watch (struct tl_conn *conn, int events)
{
  if (conn->polled == events)
    return;
  conn->polled = events;
  uv_poll_start (&conn->poll, events, on_poll);
}

/* ---- The end ---- */

static void
free_conn (struct tl_conn *conn)
{
  struct tl_node *node = conn->node;
  struct tl_conn **link;

  tl_lock (node);
  for (link = &node->conns; *link != conn; link = &(*link)->next)
    ;
  *link = conn->next;
  tl_unlock (node);
  close (conn->fd);
  free (conn->buffer);
  free (conn);
}

static void
on_closed (uv_handle_t *handle)
{
  struct tl_conn *conn = handle->data;

  conn->handles--;
  tl_turn (conn->node);
}

/* End it at once.  Nothing but tl_conn_turn uses it afterwards. */
void
tl_conn_end (struct tl_conn *conn)
{
  struct tl_node *node = conn->node;

  if (conn->phase == TL_PHASE_GONE)
    return;
  conn->phase = TL_PHASE_GONE;
  tl_lock (node);
  conn->told = true;
  tl_queue_drop (node, conn);
  tl_leave (node);
  uv_close ((uv_handle_t *)&conn->poll, on_closed);
  uv_close ((uv_handle_t *)&conn->timer, on_closed);
}

void
tl_conn_fail (struct tl_conn *conn, const char *reason)
{
  struct tl_node *node = conn->node;
  struct tl_event event = {.type = TL_EV_CLOSED};

  tl_lock (node);
  if (!conn->told) {
    conn->told = true;
    event.closed.id = conn->id;
    event.closed.reason = reason;
    tl_queue_drop (node, conn);
    tl_step (node, &event);
  }
  tl_leave (node);
  tl_conn_end (conn);
}

/* ---- The beginning ---- */

/* A connection around FD, which is taken over.  NULL where memory is short. */
struct tl_conn *
tl_conn_make (struct tl_node *node, int fd, bool dialled)
{
  struct tl_conn *conn = calloc (1, sizeof *conn);

  if (conn)
    conn->buffer = malloc (TL_RECEIVE_SIZE);
  if (!conn || !conn->buffer ||
      uv_poll_init (&node->loop, &conn->poll, fd) != 0) {
    if (conn)
      free (conn->buffer);
    free (conn);
    close (fd);
    return NULL;
  }
  uv_timer_init (&node->loop, &conn->timer);
  conn->poll.data = conn->timer.data = conn;
  conn->handles = 2;
  conn->node = node;
  conn->fd = fd;
  conn->dialled = dialled;
  conn->tail = &conn->head;
  conn->phase = TL_PHASE_DIALLING;
  tl_lock (node);
  conn->next = node->conns;
  node->conns = conn;
  tl_unlock (node);
  return conn;
}

void
tl_conn_up (struct tl_conn *conn)
{
  struct tl_node *node = conn->node;
  struct tl_event event = {.type = TL_EV_CONNECTED};

  uv_timer_stop (&conn->timer);
  set_options (conn->fd);
  conn->phase = TL_PHASE_UP;
  tl_conn_watch (conn, UV_READABLE);
  tl_lock (node);
  if (++node->last_id == 0)
    node->last_id = 1;
  conn->id = node->last_id;
  event.connected.id = conn->id;
  event.connected.dialled = conn->dialled;
  tl_step (node, &event);
  tl_leave (node);
}

/* ---- In between ---- */

static void
on_linger_timer (uv_timer_t *timer)
{
  tl_conn_end (timer->data);
}

/* The core is done with it and the stream was ended.  Closing now could make
 * the kernel throw away what is under way, our last word included.
 */
static void
linger (struct tl_conn *conn)
{
  conn->phase = TL_PHASE_LINGER;
  tl_conn_watch (conn, UV_READABLE);
  uv_timer_start (&conn->timer, on_linger_timer, LINGER_MS, 0);
}

static void
discard (struct tl_conn *conn)
{
  ssize_t n;

  for (unsigned i = 0; i < 4; i++) {
    n = recv (conn->fd, conn->buffer, TL_RECEIVE_SIZE, MSG_DONTWAIT);
    if (n == 0 || (n == -1 && errno != EAGAIN && errno != EINTR)) {
      tl_conn_end (conn);
      return;
    }
    if (n == -1)
      return;
  }
}

static void
on_poll (uv_poll_t *poll, int status, int events)
{
  struct tl_conn *conn = poll->data;
  struct tl_node *node = conn->node;

  if (status < 0) {
    /* libuv reports an error of the socket so, and stops watching; the next
     * call on the socket says what it is.
     */
    conn->polled = 0;
    events = UV_READABLE | UV_WRITABLE;
  }
  switch (conn->phase) {
  case TL_PHASE_DIALLING:
    tl_conn_dialled (conn);
    break;
  case TL_PHASE_UP:
    if (events & UV_WRITABLE) {
      tl_lock (node);
      conn->blocked = false;
      tl_leave (node);
    }
    if (events & UV_READABLE)
      tl_receive (conn, status < 0);
    break;
  case TL_PHASE_LINGER:
    discard (conn);
    break;
  case TL_PHASE_GONE:
    break;
  }
  tl_turn (node);
}

/* One connection, in its turn.  It may be freed. */
static void
turn (struct tl_conn *conn)
{
  struct tl_node *node = conn->node;
  bool told, down, blocked, sending;
  int error;

  tl_lock (node);
  told = conn->told;
  down = conn->down;
  blocked = conn->blocked;
  sending = conn->sending;
  error = conn->error;
  tl_unlock (node);

  if (conn->phase == TL_PHASE_UP && !told && error) {
    /* The peer may have said why before it went. */
    if (tl_receive (conn, true))
      tl_conn_fail (conn, strerror (error));
  } else if (conn->phase == TL_PHASE_UP && told && down)
    linger (conn);
  else if (conn->phase == TL_PHASE_UP && !told)
    tl_conn_watch (conn, blocked ? UV_READABLE | UV_WRITABLE : UV_READABLE);
  else if (conn->phase == TL_PHASE_LINGER)
    tl_conn_watch (conn, UV_READABLE);
  if (conn->phase == TL_PHASE_GONE && !conn->handles && !sending)
    free_conn (conn);
}

void
tl_conn_turn (struct tl_node *node)
{
  struct tl_conn *conn, *next;
  bool dial = false;

  for (conn = node->conns; conn; conn = next) {
    next = conn->next;
    turn (conn);
  }
  for (conn = node->conns; conn; conn = conn->next)
    if (conn->phase == TL_PHASE_DIALLING)
      return;
  tl_lock (node);
  if (!node->over) {
    dial = node->dial_wanted;
    node->dial_wanted = false;
  }
  tl_unlock (node);
  if (dial)
    tl_conn_dial (node);
}

void
tl_conn_end_all (struct tl_node *node)
{
  struct tl_conn *conn;

  for (conn = node->conns; conn; conn = conn->next) {
    bool told;

    tl_lock (node);
    told = conn->told;
    tl_unlock (node);
    if (conn->phase == TL_PHASE_DIALLING ||
        (conn->phase == TL_PHASE_UP && !told))
      tl_conn_end (conn);
  }
}
