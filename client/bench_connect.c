#include "bench_connect.h"
#include "control.h"

#include "core/core.h"

#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>

#define TIMEOUT 10000 /* milliseconds */

static int
fail (const struct bench_target *target, char *error, size_t error_size)
{
  const char *text = nbd_get_error ();

  snprintf (error, error_size, "cannot connect to %s: %s",
            target->socket ? target->socket : target->uri, text ? text : "?");
  return TL_UNREACHABLE;
}

static int
begin (struct nbd_handle *nbd, const struct bench_target *target)
{
  if (target->socket)
    return nbd_aio_connect_unix (nbd, target->socket);
  if (nbd_set_uri_allow_local_file (nbd, true) == -1)
    return -1;
  return nbd_aio_connect_uri (nbd, target->uri);
}

int
bench_connect (const struct bench_target *target, struct nbd_handle **nbd,
               char *error, size_t error_size)
{
  int64_t until = control_now () + TIMEOUT, left;

  *nbd = nbd_create ();
  if (!*nbd)
    return fail (target, error, error_size);
  if (begin (*nbd, target) == -1)
    goto out;
  while (!nbd_aio_is_ready (*nbd)) {
    left = until - control_now ();
    if (left <= 0) {
      snprintf (error, error_size, "%s lets nobody in",
                target->socket ? target->socket : target->uri);
      nbd_close (*nbd);
      return TL_TIMED_OUT;
    }
    if (nbd_aio_is_dead (*nbd) || nbd_aio_is_closed (*nbd) ||
        nbd_poll (*nbd, left < 1000 ? (int)left : 1000) == -1)
      goto out;
  }
  return TL_DONE;

out:
  fail (target, error, error_size);
  nbd_close (*nbd);
  return TL_UNREACHABLE;
}

/* The process at the other end of a Unix socket; one that became a daemon
 * since it began to listen is not found.
 */
static pid_t
other_end (int fd)
{
  struct ucred peer = {.pid = 0};
  socklen_t length = sizeof peer;

  if (getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == -1)
    return 0;
  return peer.pid > 0 && kill (peer.pid, 0) == 0 ? peer.pid : 0;
}

int
bench_look (struct bench_target *target, char *error, size_t error_size)
{
  struct nbd_handle *nbd;
  int64_t size, most;
  int status = bench_connect (target, &nbd, error, error_size);

  if (status != TL_DONE)
    return status;
  size = nbd_get_size (nbd);
  most = nbd_get_block_size (nbd, LIBNBD_SIZE_MAXIMUM);
  target->size = size > 0 ? (uint64_t)size : 0;
  target->request_max = most > 0 ? (uint64_t)most : 32u << 20;
  if (target->pid[BENCH_PRIMARY] == 0)
    target->pid[BENCH_PRIMARY] = other_end (nbd_aio_get_fd (nbd));
  target->flush = nbd_can_flush (nbd) == 1;
  if (nbd_is_read_only (nbd) == 1) {
    snprintf (error, error_size, "this export is read-only");
    status = TL_REFUSED;
  }
  nbd_shutdown (nbd, 0);
  nbd_close (nbd);
  return status;
}

int
bench_fill (const struct bench_target *target, char *error, size_t error_size)
{
  static char buffer[1 << 20];
  struct nbd_handle *nbd;
  int status = bench_connect (target, &nbd, error, error_size);

  if (status != TL_DONE)
    return status;
  for (uint64_t at = 0; at < target->size && status == TL_DONE;) {
    size_t n = target->size - at < sizeof buffer ? (size_t)(target->size - at)
                                                 : sizeof buffer;

    if (nbd_pwrite (nbd, buffer, n, at, 0) == -1) {
      snprintf (error, error_size, "a request failed: %s", nbd_get_error ());
      status = TL_FAILED;
    }
    at += n;
  }
  if (status == TL_DONE)
    nbd_shutdown (nbd, 0);
  nbd_close (nbd);
  return status;
}
