/* A plugin of nbdkit that mirrors and does nothing else: each write is copied
 * into memory here and sent over TCP to another process, which copies it into
 * its own and acknowledges what has come.  No checksums, no sessions, no order
 * that is kept, no bound on what is waited for: what a mirror in nbdkit costs
 * before it is safe.
 */
#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <arpa/inet.h>
#include <errno.h>
#include <linux/futex.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL
#define SIZE (128u << 20) /* that of the peers */
#define BATCH 32          /* writes of one sendmsg */
#define BUFFER (4u << 20) /* more than the largest write of a bench */

enum { WAITS, SLEEPS, ENDED };

struct header {
  uint64_t offset;
  uint64_t length;
};

struct call {
  struct call *next;
  struct header header;
  const void *bytes;
  _Atomic uint32_t state; /* a futex */
};

struct list {
  struct call *first, *last;
};

static unsigned char *memory;
static int mirror; /* the socket to the other process */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list queued, flying;
static bool sending;

static void
add (struct list *list, struct call *call)
{
  call->next = NULL;
  if (list->first)
    list->last->next = call;
  else
    list->first = call;
  list->last = call;
}

static struct call *
take (struct list *list)
{
  struct call *call = list->first;

  if (call)
    list->first = call->next;
  return call;
}

static _Noreturn void
die (const char *what)
{
  nbdkit_error ("%s: %m", what);
  _exit (EXIT_FAILURE);
}

/* ---- The other process ---- */

static void
receive (int fd)
{
  unsigned char *buffer = malloc (BUFFER);
  uint64_t count = 0;
  size_t end = 0;

  for (;;) {
    ssize_t n = recv (fd, buffer + end, BUFFER - end, 0);
    uint64_t before = count;
    size_t begin = 0;

    if (n <= 0)
      _exit (0);
    end += (size_t)n;
    while (end - begin >= sizeof (struct header)) {
      struct header header;

      memcpy (&header, buffer + begin, sizeof header);
      if (end - begin - sizeof header < header.length)
        break;
      memcpy (memory + header.offset, buffer + begin + sizeof header,
              header.length);
      begin += sizeof header + header.length;
      count++;
    }
    memmove (buffer, buffer + begin, end - begin);
    end -= begin;
    if (count != before && send (fd, &count, sizeof count, 0) == -1)
      _exit (0);
  }
}

/* ---- This one ---- */

static void
settle (struct call *call)
{
  if (atomic_exchange (&call->state, ENDED) == SLEEPS)
    syscall (SYS_futex, &call->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *
acknowledge (void *opaque)
{
  uint64_t done = 0, counts[64];
  size_t end = 0;

  for (;;) {
    ssize_t n = recv (mirror, (char *)counts + end, sizeof counts - end, 0);
    struct list ended = {NULL, NULL};
    struct call *call;

    if (n <= 0)
      die ("recv");
    end += (size_t)n;
    if (end < sizeof counts[0])
      continue;
    pthread_mutex_lock (&lock);
    while (done < counts[end / sizeof counts[0] - 1]) {
      add (&ended, take (&flying));
      done++;
    }
    pthread_mutex_unlock (&lock);
    memmove (counts, counts + end / sizeof counts[0], end % sizeof counts[0]);
    end %= sizeof counts[0];
    while ((call = take (&ended)))
      settle (call);
  }
  return NULL;
}

static void
send_all (struct iovec *iovecs, int n)
{
  while (n) {
    struct msghdr message = {.msg_iov = iovecs, .msg_iovlen = (size_t)n};
    ssize_t sent = sendmsg (mirror, &message, MSG_NOSIGNAL);

    if (sent == -1)
      die ("sendmsg");
    for (; n && (size_t)sent >= iovecs->iov_len; iovecs++, n--)
      sent -= (ssize_t)iovecs->iov_len;
    if (n) {
      iovecs->iov_base = (char *)iovecs->iov_base + sent;
      iovecs->iov_len -= (size_t)sent;
    }
  }
}

/* Who finds nobody sending sends what others add meanwhile, too. */
static void
send_queued (void)
{
  struct iovec iovecs[2 * BATCH];

  sending = true;
  while (queued.first) {
    struct call *call;
    int n = 0;

    while (n < 2 * BATCH && (call = take (&queued))) {
      iovecs[n].iov_base = &call->header;
      iovecs[n++].iov_len = sizeof call->header;
      iovecs[n].iov_base = (void *)(uintptr_t)call->bytes;
      iovecs[n++].iov_len = call->header.length;
      add (&flying, call);
    }
    pthread_mutex_unlock (&lock);
    send_all (iovecs, n);
    pthread_mutex_lock (&lock);
  }
  sending = false;
}

static int
bare_after_fork (void)
{
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_addr.s_addr = htonl (INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  int listener = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
  pid_t parent = getpid ();
  pthread_t thread;

  memory = calloc (1, SIZE);
  mirror = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (!memory || listener == -1 || mirror == -1 ||
      bind (listener, (struct sockaddr *)&address, length) == -1 ||
      listen (listener, 1) == -1 ||
      getsockname (listener, (struct sockaddr *)&address, &length) == -1 ||
      connect (mirror, (struct sockaddr *)&address, length) == -1)
    die ("a connection of its own");
  switch (fork ()) {
  case -1:
    die ("fork");
  case 0:
    prctl (PR_SET_PDEATHSIG, SIGKILL);
    if (getppid () != parent)
      _exit (0);
    close (mirror);
    mirror = accept (listener, NULL, NULL);
    setsockopt (mirror, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    receive (mirror);
  }
  close (listener);
  setsockopt (mirror, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  errno = pthread_create (&thread, NULL, acknowledge, NULL);
  if (errno)
    die ("pthread_create");
  return 0;
}

static void *
bare_open (int readonly)
{
  return NBDKIT_HANDLE_NOT_NEEDED;
}

static int64_t
bare_get_size (void *handle)
{
  return SIZE;
}

static int
bare_pread (void *handle, void *bytes, uint32_t length, uint64_t offset,
            uint32_t flags)
{
  memcpy (bytes, memory + offset, length);
  return 0;
}

static int
bare_pwrite (void *handle, const void *bytes, uint32_t length, uint64_t offset,
             uint32_t flags)
{
  struct call call = {.header = {offset, length}, .bytes = bytes};

  memcpy (memory + offset, bytes, length);
  pthread_mutex_lock (&lock);
  add (&queued, &call);
  if (!sending)
    send_queued ();
  pthread_mutex_unlock (&lock);
  for (;;) {
    uint32_t state = WAITS;

    atomic_compare_exchange_strong (&call.state, &state, SLEEPS);
    if (state == ENDED)
      return 0;
    syscall (SYS_futex, &call.state, FUTEX_WAIT_PRIVATE, SLEEPS, NULL, NULL, 0);
  }
}

static struct nbdkit_plugin plugin = {
    .name = "bare",
    .after_fork = bare_after_fork,
    .open = bare_open,
    .get_size = bare_get_size,
    .pread = bare_pread,
    .pwrite = bare_pwrite,
};

NBDKIT_REGISTER_PLUGIN (plugin)
