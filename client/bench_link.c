#include "bench_link.h"
#include "bench_histogram.h"
#include "bench_worker.h"
#include "commands.h"

#include "core/core.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER 16                  /* bytes */
#define MANY 16                    /* under way when the rate is measured */
#define RATE_SIZE_LEAST (1u << 20) /* bytes of one, for the rate */
#define RATE_TIME 200000000        /* nanoseconds at least, for the rate */
#define STALL 10                   /* seconds without a byte */

/* What the other end gets first. */
struct greeting {
  uint32_t magic; /* both in network order */
  uint32_t size;  /* bytes, after each of which an answer is wanted */
};
#define MAGIC 0x544c4245u

/* All of it; false: the connection has ended, or nothing moves. */
static bool
send_all (int fd, const char *data, size_t size)
{
  ssize_t n;

  for (; size > 0; data += n, size -= (size_t)n)
    if ((n = send (fd, data, size, MSG_NOSIGNAL)) <= 0)
      return false;
  return true;
}

static bool
receive_all (int fd, char *data, size_t size)
{
  ssize_t n;

  for (; size > 0; data += n, size -= (size_t)n)
    if ((n = recv (fd, data, size, 0)) <= 0)
      return false;
  return true;
}

static void
set_up (int fd)
{
  struct timeval limit = {STALL, 0};
  int on = 1;

  setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt (fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt (fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

/* ---- The end that answers ---- */

static void
answer (int fd)
{
  static const char bytes[ANSWER];
  struct greeting greeting;
  uint32_t size;
  char *buffer;

  set_up (fd);
  if (!receive_all (fd, (char *)&greeting, sizeof greeting) ||
      ntohl (greeting.magic) != MAGIC)
    return;
  size = ntohl (greeting.size);
  if (size == 0 || size > BENCH_SIZE_MAX)
    return;
  buffer = malloc (size);
  while (buffer && receive_all (fd, buffer, size) &&
         send_all (fd, bytes, sizeof bytes))
    ;
  free (buffer);
}

/* One connection after the other, until there are no more. */
static void *
serve (void *opaque)
{
  int listener = *(int *)opaque, fd;

  while ((fd = accept4 (listener, NULL, NULL, SOCK_CLOEXEC)) != -1) {
    answer (fd);
    close (fd);
  }
  return NULL;
}

static int
resolve (const char *address, struct addrinfo **found)
{
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                           .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
  const char *port;
  char host[64];

  if (!bench_split_address (address, host, sizeof host, &port))
    return -1;
  return getaddrinfo (host, port, &hints, found) == 0 ? 0 : -1;
}

static int
listen_at (const struct sockaddr *address, socklen_t length)
{
  int fd = socket (address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

  if (fd != -1 &&
      (setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == -1 ||
       bind (fd, address, length) == -1 || listen (fd, 4) == -1)) {
    close (fd);
    fd = -1;
  }
  return fd;
}

int
link_answer (const char *address, char *error, size_t error_size)
{
  struct addrinfo *found;
  int listener;

  if (resolve (address, &found) == -1)
    return command_explain (TL_FAILED, error, error_size,
                            "%s is not a numeric address", address);
  listener = listen_at (found->ai_addr, found->ai_addrlen);
  freeaddrinfo (found);
  if (listener == -1)
    return command_explain (TL_FAILED, error, error_size,
                            "cannot listen at %s: %m", address);
  printf ("answering at %s until interrupted\n", address);
  fflush (stdout);
  serve (&listener);
  command_explain (TL_FAILED, error, error_size, "cannot accept at %s: %m",
                   address);
  close (listener);
  return TL_FAILED;
}

/* ---- The end that asks ---- */

static int
ask (const struct sockaddr *address, socklen_t length, uint32_t size)
{
  struct greeting greeting = {htonl (MAGIC), htonl (size)};
  int fd = socket (address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

  if (fd == -1)
    return -1;
  set_up (fd);
  if (connect (fd, address, length) == -1 ||
      !send_all (fd, (char *)&greeting, sizeof greeting)) {
    close (fd);
    return -1;
  }
  return fd;
}

/* One after the other. */
static bool
ping (int fd, const char *payload, int64_t duration, struct bench_ping *result)
{
  struct histogram histogram = {0};
  int64_t began = worker_now (), end = began + duration, now;
  char bytes[ANSWER];

  do {
    int64_t sent = worker_now ();

    if (!send_all (fd, payload, result->size) ||
        !receive_all (fd, bytes, sizeof bytes))
      return false;
    now = worker_now ();
    if (sent - began >= duration / 10 || now >= end)
      histogram_add (&histogram, (uint64_t)(now - sent));
  } while (now < end);
  result->p50 = histogram_part (&histogram, 0.5);
  result->p99 = histogram_part (&histogram, 0.99);
  return true;
}

/* Many at once; bytes in a second. */
static bool
stream (int fd, const char *payload, uint32_t size, int64_t duration,
        double *rate)
{
  int64_t began = worker_now (), now;
  char bytes[ANSWER];
  uint64_t done = 0;

  for (unsigned i = 0; i < MANY; i++)
    if (!send_all (fd, payload, size))
      return false;
  do {
    if (!receive_all (fd, bytes, sizeof bytes) || !send_all (fd, payload, size))
      return false;
    done++;
    now = worker_now ();
  } while (now - began < duration);
  /* What was under way until then took a part of the time. */
  for (unsigned i = 0; i < MANY; i++, done++)
    if (!receive_all (fd, bytes, sizeof bytes))
      return false;
  now = worker_now ();
  *rate = (double)done * size / ((double)(now - began) / 1e9);
  return true;
}

static bool
measure (const struct sockaddr *address, socklen_t length,
         const struct bench_list *sizes, int64_t duration, const char *payload,
         struct bench_link *link)
{
  int64_t rate_time = duration > RATE_TIME ? duration : RATE_TIME;
  uint32_t large = RATE_SIZE_LEAST;
  bool good = true;
  int fd;

  for (unsigned i = 0; i < sizes->n && good; i++) {
    link->ping[i].size = sizes->value[i];
    if (sizes->value[i] > large)
      large = sizes->value[i];
    fd = ask (address, length, sizes->value[i]);
    good = fd != -1 && ping (fd, payload, duration, &link->ping[i]);
    if (fd != -1)
      close (fd);
  }
  if (!good)
    return false;
  fd = ask (address, length, large);
  good = fd != -1 &&
         stream (fd, payload, large, rate_time, &link->bytes_per_second);
  if (fd != -1)
    close (fd);
  if (good)
    link->n = sizes->n;
  return good;
}

/* Against a thread of this process. */
static int
measure_loopback (const struct bench_list *sizes, int64_t duration,
                  const char *payload, struct bench_link *link, char *error,
                  size_t error_size)
{
  struct sockaddr_in here = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl (INADDR_LOOPBACK)};
  socklen_t length = sizeof here;
  int listener = listen_at ((struct sockaddr *)&here, sizeof here);
  pthread_t thread;
  bool good;

  if (listener == -1 ||
      getsockname (listener, (struct sockaddr *)&here, &length) == -1 ||
      pthread_create (&thread, NULL, serve, &listener) != 0) {
    command_explain (TL_FAILED, error, error_size,
                     "cannot measure the loopback: %m");
    if (listener != -1)
      close (listener);
    return TL_FAILED;
  }
  good = measure ((struct sockaddr *)&here, length, sizes, duration, payload,
                  link);
  if (!good)
    command_explain (TL_FAILED, error, error_size,
                     "cannot measure the loopback: %m");
  shutdown (listener, SHUT_RDWR); /* accept fails */
  pthread_join (thread, NULL);
  close (listener);
  return good ? TL_DONE : TL_FAILED;
}

int
link_measure (const char *address, const struct bench_list *sizes,
              int64_t duration, struct bench_link *link, char *error,
              size_t error_size)
{
  char *payload = calloc (1, BENCH_SIZE_MAX);
  struct addrinfo *found;
  int status = TL_DONE;

  if (!payload)
    return command_explain (TL_FAILED, error, error_size, "not enough memory");
  if (!address)
    status =
        measure_loopback (sizes, duration, payload, link, error, error_size);
  else if (resolve (address, &found) == -1)
    status = command_explain (TL_FAILED, error, error_size,
                              "%s is not a numeric address", address);
  else {
    if (!measure (found->ai_addr, found->ai_addrlen, sizes, duration, payload,
                  link)) {
      command_explain (
          TL_FAILED, error, error_size,
          "cannot measure the link to %s: %m; does twinlog bench --answer "
          "run there?",
          address);
      status = TL_UNREACHABLE;
    }
    freeaddrinfo (found);
  }
  free (payload);
  return status;
}
