/* How connections to the peer begin: dialled, or accepted. */
#include "net/net.h"
#include "net/tcp.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define DIAL_MS 2000

/* Connections at once: the session's, one dialled and one accepted while they
 * are sorted out, and those that linger.
 */
#define CONNS_MOST 8

/* ---- Dialling ---- */

static void
dial_failed (struct tl_node *node, const char *what)
{
  struct tl_event event = {.type = TL_EV_CLOSED};

  tl_lock (node);
  event.closed.id = 0;
  event.closed.reason = what;
  tl_step (node, &event);
  tl_leave (node);
}

static void
on_dial_timer (uv_timer_t *timer)
{
  struct tl_conn *conn = timer->data;

  tl_conn_end (conn);
  dial_failed (conn->node, "no answer to the attempt to connect");
}

void
tl_conn_dial (struct tl_node *node)
{
  const struct tl_address *peer = &node->peer_address;
  struct tl_address from = node->listen_address;
  struct tl_conn *conn;
  int one = 1, error = 0;
  int fd = tl_tcp_socket (peer->storage.ss_family, node->mptcp);

  if (fd == -1) {
    dial_failed (node, strerror (errno));
    return;
  }
  if (!tl_address_wildcard (&from) &&
      from.storage.ss_family == peer->storage.ss_family) {
    /* The peer checks where we come from: it is to be the address that it
     * knows us by, whichever way the packets take.
     */
    tl_address_set_port (&from, 0);
    setsockopt (fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    if (bind (fd, (struct sockaddr *)&from.storage, from.length) == -1)
      error = errno;
  }
  if (!error &&
      connect (fd, (const struct sockaddr *)&peer->storage, peer->length) ==
          -1 &&
      errno != EINPROGRESS)
    error = errno;
  if (error) {
    close (fd);
    dial_failed (node, strerror (error));
    return;
  }
  conn = tl_conn_make (node, fd, true);
  if (!conn) {
    dial_failed (node, strerror (ENOMEM));
    return;
  }
  uv_timer_start (&conn->timer, on_dial_timer, DIAL_MS, 0);
  tl_conn_watch (conn, EPOLLOUT);
}

void
tl_conn_dialled (struct tl_conn *conn)
{
  int error = 0;
  socklen_t length = sizeof error;

  if (getsockopt (conn->fd, SOL_SOCKET, SO_ERROR, &error, &length) == -1)
    error = errno;
  if (!error)
    tl_conn_up (conn);
  else {
    tl_conn_end (conn);
    dial_failed (conn->node, strerror (error));
  }
}

/* ---- Accepting ---- */

/* Log it once per change, and then at most once in ten seconds: a scanner must
 * not fill the log.
 */
static void
turned_away (struct tl_node *node, const struct tl_address *from)
{
  char from_text[TL_ADDRESS_TEXT], peer_text[TL_ADDRESS_TEXT];
  uint64_t now = tl_now ();

  if (node->refused.length && (tl_address_same_host (from, &node->refused) ||
                               now < node->refused_logged + 10000000))
    return;
  node->refused = *from;
  node->refused_logged = now;
  tl_address_format (from, from_text);
  tl_address_format (&node->peer_address, peer_text);
  tl_lock (node);
  tl_log_add (node, true,
              "closed a mirror connection from %s: only the host of peer=%s "
              "may connect",
              from_text, peer_text);
  tl_unlock (node);
}

void
tl_conn_accept (struct tl_node *node)
{
  for (unsigned i = 0; i < 16; i++) {
    struct tl_address from = {.length = sizeof from.storage};
    struct tl_conn *conn;
    unsigned n = 0;
    int fd = accept4 (node->listen_fd, (struct sockaddr *)&from.storage,
                      &from.length, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd == -1) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
          errno == ENOBUFS)
        tl_loop_pause (node);
      return;
    }
    if (!tl_address_same_host (&from, &node->peer_address)) {
      turned_away (node, &from);
      close (fd);
      continue;
    }
    node->refused.length = 0;
    for (conn = node->conns; conn; conn = conn->next)
      n++;
    if (n >= CONNS_MOST) {
      close (fd);
      continue;
    }
    conn = tl_conn_make (node, fd, false);
    if (conn)
      tl_conn_up (conn);
  }
}
