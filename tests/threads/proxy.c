/* The network between the nodes: each dials the other through here.  Bytes are
 * passed on in pieces of any length through small buffers, so that frames are
 * cut anywhere; the wire can be cut, or hold everything back.
 */
#include "threads.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PAIRS 16
#define BUFFER 16384

/* One direction: what was read from fds[i] and is not yet written. */
struct flow {
  unsigned char bytes[BUFFER];
  size_t begin, end;
  bool ended; /* nothing more will be read */
};

struct pair {
  bool used;
  int fds[2];
  struct flow flows[2];
};

struct proxy {
  pthread_t thread;
  int wake, listen[2];
  unsigned ports[2];
  struct rng rng;
  _Atomic enum wire wire;
  _Atomic bool over;
  struct pair pairs[PAIRS];
};

static struct sockaddr_in
address_of (unsigned port)
{
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons ((uint16_t)port)};

  address.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
  return address;
}

static int
bound_socket (unsigned port)
{
  struct sockaddr_in address = address_of (port);
  int one = 1, fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

  setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind (fd, (struct sockaddr *)&address, sizeof address) == 0)
    return fd;
  close (fd);
  return -1;
}

/* Below the range that outgoing connections get theirs from; an abstract
 * socket, kept for as long as the process lives, keeps other tests off.
 */
unsigned
port_claim (struct rng *rng)
{
  for (unsigned i = 0; i < 1000; i++) {
    unsigned port = (unsigned)rng_between (rng, 12000, 31999);
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int claim = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), probe;
    int n = snprintf (name.sun_path + 1, sizeof name.sun_path - 1,
                      "twinlog-test-port-%u", port);
    socklen_t length =
        (socklen_t)(offsetof (struct sockaddr_un, sun_path) + 1 + (size_t)n);

    if (bind (claim, (struct sockaddr *)&name, length) == 0) {
      probe = bound_socket (port);
      if (probe != -1) {
        close (probe);
        return port;
      }
    }
    close (claim);
  }
  fprintf (stderr, "twinlog-threads: no free port\n");
  exit (3);
}

static void
make_small (int fd)
{
  int bytes = BUFFER, one = 1;

  setsockopt (fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  setsockopt (fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static void
end_pair (struct proxy *proxy, struct pair *pair)
{
  struct linger reset = {.l_onoff = 1, .l_linger = 0};

  for (unsigned i = 0; i < 2; i++) {
    if (rng_percent (&proxy->rng, 50))
      setsockopt (pair->fds[i], SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close (pair->fds[i]);
  }
  pair->used = false;
}

static void
accept_one (struct proxy *proxy, unsigned to)
{
  struct sockaddr_in address = address_of (proxy->ports[to]);
  int from =
      accept4 (proxy->listen[to], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  int onward = -1;
  struct pair *pair = NULL;

  if (from == -1)
    return;
  for (unsigned i = 0; i < PAIRS && !pair; i++)
    if (!proxy->pairs[i].used)
      pair = &proxy->pairs[i];
  if (pair && atomic_load (&proxy->wire) == WIRE_OPEN)
    onward = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (onward != -1) {
    /* On loopback this is decided at once. */
    make_small (onward);
    if (connect (onward, (struct sockaddr *)&address, sizeof address) == 0) {
      make_small (from);
      memset (pair->flows, 0, sizeof pair->flows);
      pair->fds[0] = from;
      pair->fds[1] = onward;
      pair->used = true;
      return;
    }
    close (onward);
  }
  close (from);
}

/* Move what can be moved from side I.  False where the connection broke. */
static bool
move (struct proxy *proxy, struct pair *pair, unsigned i)
{
  struct flow *flow = &pair->flows[i];
  ssize_t n;

  if (flow->begin == flow->end && !flow->ended) {
    size_t most = rng_percent (&proxy->rng, 20)
                      ? (size_t)rng_between (&proxy->rng, 1, 600)
                      : BUFFER;

    flow->begin = flow->end = 0;
    n = recv (pair->fds[i], flow->bytes, most, MSG_DONTWAIT);
    if (n == 0) {
      flow->ended = true;
      shutdown (pair->fds[!i], SHUT_WR);
    } else if (n > 0)
      flow->end = (size_t)n;
    else if (errno != EAGAIN && errno != EINTR)
      return false;
  }
  if (flow->begin < flow->end) {
    n = send (pair->fds[!i], flow->bytes + flow->begin, flow->end - flow->begin,
              MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0)
      flow->begin += (size_t)n;
    else if (n == -1 && errno != EAGAIN && errno != EINTR)
      return false;
  }
  return true;
}

static nfds_t
watch (struct proxy *proxy, struct pollfd *fds)
{
  bool open = atomic_load (&proxy->wire) == WIRE_OPEN;
  nfds_t n = 0;

  fds[n++] = (struct pollfd){.fd = proxy->wake, .events = POLLIN};
  if (atomic_load (&proxy->wire) == WIRE_STALLED)
    return n;
  for (unsigned i = 0; i < 2; i++)
    fds[n++] = (struct pollfd){.fd = proxy->listen[i], .events = POLLIN};
  for (unsigned p = 0; open && p < PAIRS; p++) {
    struct pair *pair = &proxy->pairs[p];

    for (unsigned i = 0; pair->used && i < 2; i++) {
      const struct flow *in = &pair->flows[i], *out = &pair->flows[!i];
      short events = 0;

      if (in->begin == in->end && !in->ended)
        events |= POLLIN;
      if (out->begin < out->end)
        events |= POLLOUT;
      if (events)
        fds[n++] = (struct pollfd){.fd = pair->fds[i], .events = events};
    }
  }
  return n;
}

static void *
proxy_main (void *opaque)
{
  struct proxy *proxy = opaque;
  struct pollfd fds[3 + 2 * PAIRS];

  while (!atomic_load (&proxy->over)) {
    uint64_t woken;
    enum wire wire;

    poll (fds, watch (proxy, fds), 1000);
    if (fds[0].revents && read (proxy->wake, &woken, sizeof woken) == -1)
      continue;
    wire = atomic_load (&proxy->wire);
    if (wire == WIRE_STALLED)
      continue;
    for (unsigned i = 0; i < 2; i++)
      accept_one (proxy, i);
    for (unsigned p = 0; p < PAIRS; p++) {
      struct pair *pair = &proxy->pairs[p];

      if (pair->used && (wire == WIRE_CUT || !move (proxy, pair, 0) ||
                         !move (proxy, pair, 1) ||
                         (pair->flows[0].ended && pair->flows[1].ended)))
        end_pair (proxy, pair);
    }
  }
  return NULL;
}

struct proxy *
proxy_start (struct slot slots[2], uint64_t seed)
{
  struct proxy *proxy = calloc (1, sizeof *proxy);

  if (!proxy)
    abort ();
  rng_seed (&proxy->rng, seed + 77);
  proxy->wake = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  for (unsigned i = 0; i < 2; i++) {
    proxy->ports[i] = slots[i].port;
    proxy->listen[i] = bound_socket (slots[i].proxy_port);
    if (proxy->listen[i] == -1)
      abort ();
    make_small (proxy->listen[i]);
    if (listen (proxy->listen[i], 8) == -1)
      abort ();
    /* Accepting must not wait: a connection may be gone again. */
    if (fcntl (proxy->listen[i], F_SETFL, O_NONBLOCK) == -1)
      abort ();
  }
  if (pthread_create (&proxy->thread, NULL, proxy_main, proxy) != 0)
    abort ();
  return proxy;
}

static void
wake (struct proxy *proxy)
{
  uint64_t one = 1;

  if (write (proxy->wake, &one, sizeof one) == -1)
    abort ();
}

void
proxy_set (struct proxy *proxy, enum wire wire)
{
  atomic_store (&proxy->wire, wire);
  wake (proxy);
}

void
proxy_stop (struct proxy *proxy)
{
  atomic_store (&proxy->over, true);
  wake (proxy);
  pthread_join (proxy->thread, NULL);
  for (unsigned p = 0; p < PAIRS; p++)
    if (proxy->pairs[p].used)
      end_pair (proxy, &proxy->pairs[p]);
  for (unsigned i = 0; i < 2; i++)
    close (proxy->listen[i]);
  close (proxy->wake);
  free (proxy);
}
