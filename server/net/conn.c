/* Connections to the peer: made, watched and ended by the loop thread.
 *
 * The way of a connection: dialled or accepted, then up: the core is told and
 * its frames come and go.  It ends in one of two ways.  The core asks for it:
 * what is queued is sent as far as that goes without waiting, the stream is
 * ended, and the descriptor lingers until the peer has read it, so that the
 * last words are not lost.  Or it fails: the core is told why, once.  `told`
 * is set, under the lock, by whoever comes first; nothing is read for the core
 * afterwards.  The descriptor is closed and the memory freed once the handles
 * are closed and no worker sends or reads.
 */
#include "net/net.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define LINGER_MS 200

/* How often a worker that reads looks at whether its request has ended. */
#define READ_MS 20

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

bool
tl_conn_compresses (const struct tl_node *node)
{
  for (const struct tl_conn *conn = node->conns; conn; conn = conn->next)
    if (conn->compresses && !conn->told)
      return true;
  return false;
}

static void
set_options (int fd)
{
  struct timeval wait = {.tv_usec = READ_MS * 1000};
  int one = 1, timeout = USER_TIMEOUT_MS;

  /* Only a worker that reads waits in a call on it. */
  fcntl (fd, F_SETFL, fcntl (fd, F_GETFL) & ~O_NONBLOCK);
  setsockopt (fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  setsockopt (fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof timeout);
}

void
tl_conn_rewatch (struct tl_conn *conn)
{
  struct epoll_event event = {.events = conn->wanted};

  if (conn->lent)
    event.events &= ~(uint32_t)EPOLLIN;
  if (event.events == conn->watching)
    return;
  conn->watching = event.events;
  epoll_ctl (conn->watcher, EPOLL_CTL_MOD, conn->fd, &event);
}

void
tl_conn_watch (struct tl_conn *conn, uint32_t events)
{
  tl_lock (conn->node);
  conn->wanted = events;
  tl_conn_rewatch (conn);
  tl_unlock (conn->node);
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
  close (conn->watcher);
  close (conn->fd);
  tl_compress_free (conn->compress);
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
  struct epoll_event event = {.events = 0};

  if (conn) {
    conn->buffer = malloc (TL_RECEIVE_SIZE);
    conn->compress = node->compress ? tl_compress_new () : NULL;
    conn->watcher = epoll_create1 (EPOLL_CLOEXEC);
  }
  if (!conn || !conn->buffer || (node->compress && !conn->compress) ||
      conn->watcher == -1 ||
      epoll_ctl (conn->watcher, EPOLL_CTL_ADD, fd, &event) == -1 ||
      uv_poll_init (&node->loop, &conn->poll, conn->watcher) != 0) {
    if (conn) {
      tl_compress_free (conn->compress);
      free (conn->buffer);
      if (conn->watcher != -1)
        close (conn->watcher);
    }
    free (conn);
    close (fd);
    return NULL;
  }
  uv_poll_start (&conn->poll, UV_READABLE, on_poll);
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
  tl_conn_watch (conn, EPOLLIN);
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
  tl_conn_watch (conn, EPOLLIN);
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

/* Input, or an error: be the reader, unless a worker is. */
static void
input (struct tl_conn *conn, bool all)
{
  struct tl_node *node = conn->node;
  const char *bad;
  bool ours;

  tl_lock (node);
  ours = !conn->reading && !conn->told;
  conn->reading |= ours;
  tl_unlock (node);
  if (!ours)
    return;
  bad = tl_receive (conn, all);
  tl_lock (node);
  conn->reading = false;
  tl_unlock (node);
  if (bad)
    tl_conn_fail (conn, bad);
}

/* Take what the watcher has seen. */
static uint32_t
seen (struct tl_conn *conn)
{
  struct epoll_event event = {.events = 0};

  return epoll_wait (conn->watcher, &event, 1, 0) == 1 ? event.events : 0;
}

static void
up (struct tl_conn *conn)
{
  struct tl_node *node = conn->node;
  uint32_t events = EPOLLIN;

  /* What it waits for, but for room to send, is asked of the socket itself. */
  if (conn->wanted & EPOLLOUT)
    events = seen (conn);
  if (events & EPOLLOUT) {
    tl_lock (node);
    conn->blocked = false;
    tl_leave (node);
    tl_turn (node);
  }
  if (events & ~(uint32_t)EPOLLOUT)
    input (conn, false);
}

static void
on_poll (uv_poll_t *poll, int status, int events)
{
  struct tl_conn *conn = poll->data;

  switch (conn->phase) {
  case TL_PHASE_DIALLING:
    tl_conn_dialled (conn);
    break;
  case TL_PHASE_UP:
    /* Where a step leaves something to the loop it is poked. */
    up (conn);
    return;
  case TL_PHASE_LINGER:
    discard (conn);
    break;
  case TL_PHASE_GONE:
    break;
  }
  tl_turn (conn->node);
}

/* One connection, in its turn.  It may be freed. */
static void
turn (struct tl_conn *conn)
{
  struct tl_node *node = conn->node;
  bool told, down, blocked, busy, reading;
  const char *bad;

  tl_lock (node);
  told = conn->told;
  down = conn->down;
  blocked = conn->blocked;
  reading = conn->reading;
  busy = conn->sending || reading;
  bad = conn->bad;
  if (!bad && conn->error)
    bad = strerror (conn->error);
  tl_unlock (node);

  if (conn->phase == TL_PHASE_UP && !told && bad && !reading) {
    /* The peer may have said why before it went. */
    if (!conn->bad)
      input (conn, true);
    if (conn->phase == TL_PHASE_UP)
      tl_conn_fail (conn, bad);
  } else if (conn->phase == TL_PHASE_UP && told && down && !reading)
    linger (conn);
  else if (conn->phase == TL_PHASE_UP && !told)
    tl_conn_watch (conn, blocked ? EPOLLIN | EPOLLOUT : EPOLLIN);
  else if (conn->phase == TL_PHASE_LINGER)
    tl_conn_watch (conn, EPOLLIN);
  if (conn->phase == TL_PHASE_GONE && !conn->handles && !busy)
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
