/* Stops a node at one exact place, as a suspended machine may be: a library for
 * LD_PRELOAD.
 *
 * Where the file that TWINLOG_STOP names is there and holds the name of a
 * place, the first thread that comes to it removes the file and stops the
 * process.  The places, on the way of a request:
 *
 *   asked    the client's request was read
 *   frame    a frame of the mirror is about to be sent
 *   sent     it was
 *   heard    something of the mirror was read, an acknowledgement say
 *   answer   the client's answer is about to be sent
 *
 * and of a view, each twice, for it is proposed before it is agreed:
 *
 *   storing  the state file is about to be replaced
 *   stored   it was
 *
 * With TWINLOG_STOP_CLOCK set its clock stands still meanwhile, as that of a
 * machine does.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C (1000000000)
#define EXPORT __attribute__ ((visibility ("default")))

static char *stop_file;
static bool stop_clock;
static _Atomic int64_t behind; /* nanoseconds that the clock stood still */

/* The commands that the node runs are no business of this library. */
__attribute__ ((constructor)) static void
begin (void)
{
  const char *path = getenv ("TWINLOG_STOP");

  stop_file = path ? strdup (path) : NULL;
  stop_clock = getenv ("TWINLOG_STOP_CLOCK") != NULL;
  unsetenv ("TWINLOG_STOP");
}

static int
family (int fd)
{
  struct sockaddr_storage address;
  socklen_t length = sizeof address;

  if (getsockname (fd, (struct sockaddr *)&address, &length) == -1)
    return -1;
  return address.ss_family;
}

static bool
of_mirror (int fd)
{
  int is = family (fd);

  return is == AF_INET || is == AF_INET6;
}

/* nbdkit waits in its calls for a client; the control socket never does. */
static bool
of_client (int fd, int flags)
{
  return !(flags & MSG_DONTWAIT) && family (fd) == AF_UNIX;
}

static int64_t
nanoseconds (void)
{
  struct timespec time;

  syscall (SYS_clock_gettime, CLOCK_MONOTONIC, &time);
  return time.tv_sec * SECOND + time.tv_nsec;
}

static void
stop (void)
{
  int64_t began = nanoseconds ();

  raise (SIGSTOP); /* this thread first, at once, then all */
  if (stop_clock)
    behind += nanoseconds () - began;
}

static void
come_to (const char *place)
{
  char word[16] = "";
  int fd = stop_file ? open (stop_file, O_RDONLY | O_CLOEXEC) : -1;
  ssize_t n;

  if (fd == -1)
    return;
  n = pread (fd, word, sizeof word - 1, 0);
  close (fd);
  if (n > 0 && strcmp (word, place) == 0 && unlink (stop_file) == 0)
    stop ();
}

EXPORT ssize_t
send (int fd, const void *bytes, size_t n, int flags)
{
  static ssize_t (*real) (int, const void *, size_t, int);

  if (!real)
    real = dlsym (RTLD_NEXT, "send");
  if (of_client (fd, flags))
    come_to ("answer");
  return real (fd, bytes, n, flags);
}

EXPORT ssize_t
sendmsg (int fd, const struct msghdr *message, int flags)
{
  static ssize_t (*real) (int, const struct msghdr *, int);
  ssize_t result;
  bool mirror = of_mirror (fd);

  if (!real)
    real = dlsym (RTLD_NEXT, "sendmsg");
  if (mirror)
    come_to ("frame");
  result = real (fd, message, flags);
  if (mirror && result > 0)
    come_to ("sent");
  return result;
}

EXPORT ssize_t
recv (int fd, void *bytes, size_t n, int flags)
{
  static ssize_t (*real) (int, void *, size_t, int);
  ssize_t result;

  if (!real)
    real = dlsym (RTLD_NEXT, "recv");
  result = real (fd, bytes, n, flags);
  if (result > 0 && of_mirror (fd))
    come_to ("heard");
  return result;
}

/* This is how nbdkit reads what a client asks. */
EXPORT ssize_t
read (int fd, void *bytes, size_t n)
{
  static ssize_t (*real) (int, void *, size_t);
  ssize_t result;

  if (!real)
    real = dlsym (RTLD_NEXT, "read");
  result = real (fd, bytes, n);
  if (result > 0 && family (fd) == AF_UNIX)
    come_to ("asked");
  return result;
}

EXPORT int
renameat (int from_dir, const char *from, int to_dir, const char *to)
{
  static int (*real) (int, const char *, int, const char *);
  int result;

  if (!real)
    real = dlsym (RTLD_NEXT, "renameat");
  come_to ("storing");
  result = real (from_dir, from, to_dir, to);
  come_to ("stored");
  return result;
}

EXPORT int
clock_gettime (clockid_t clock, struct timespec *time)
{
  static int (*real) (clockid_t, struct timespec *);
  int64_t now;

  if (!real)
    real = dlsym (RTLD_NEXT, "clock_gettime");
  if (real (clock, time) == -1)
    return -1;
  if (behind && (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE)) {
    now = time->tv_sec * SECOND + time->tv_nsec - behind;
    time->tv_sec = now / SECOND;
    time->tv_nsec = now % SECOND;
  }
  return 0;
}
