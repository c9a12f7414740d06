#include "control.h"

#include "core/core.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_MAX (1 << 20) /* bytes */

static int __attribute__ ((format (printf, 4, 5)))
fail (int status, char *error, size_t error_size, const char *format, ...)
{
  va_list list;

  va_start (list, format);
  vsnprintf (error, error_size, format, list);
  va_end (list);
  return status;
}

int64_t
control_now (void)
{
  struct timespec ts;

  clock_gettime (CLOCK_MONOTONIC, &ts);
  return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ---- Which node ---- */

static int
is_socket_name (const struct dirent *entry)
{
  size_t length = strlen (entry->d_name);

  return length > 4 && strcmp (entry->d_name + length - 4, ".ctl") == 0;
}

static int
find_only_one (const char *directory, char *path, char *error,
               size_t error_size)
{
  struct dirent **entries;
  char names[512] = "";
  size_t used = 0;
  int n;

  n = scandir (directory, &entries, is_socket_name, alphasort);
  if (n == -1 && errno != ENOENT)
    return fail (TL_UNREACHABLE, error, error_size, "cannot look into %s: %s",
                 directory, strerror (errno));
  if (n <= 0) {
    if (n == 0)
      free (entries);
    return fail (TL_UNREACHABLE, error, error_size,
                 "no node runs here: there is no %s/*.ctl; is nbdkit running, "
                 "or is --control needed?",
                 directory);
  }
  snprintf (path, CONTROL_PATH_SIZE, "%s/%s", directory, entries[0]->d_name);
  for (int i = 0; i < n; i++) {
    if (used < sizeof names)
      used += (size_t)snprintf (
          names + used, sizeof names - used, "%s%.*s", i ? ", " : "",
          (int)strlen (entries[i]->d_name) - 4, entries[i]->d_name);
    free (entries[i]);
  }
  free (entries);
  if (n > 1)
    return fail (TL_USAGE, error, error_size,
                 "there are several volumes here, name one: %s", names);
  return TL_DONE;
}

int
control_find (const char *directory, const char *control, const char *volume,
              char *path, char *error, size_t error_size)
{
  if (!control && !volume)
    return find_only_one (directory, path, error, error_size);
  if (control)
    snprintf (path, CONTROL_PATH_SIZE, "%s", control);
  else
    snprintf (path, CONTROL_PATH_SIZE, "%s/%s.ctl", directory, volume);
  return TL_DONE;
}

/* ---- The connection ---- */

/* Wait until FD is ready for EVENTS; -1: not before UNTIL. */
static int
ready (int fd, short events, int64_t until)
{
  struct pollfd pollfd = {.fd = fd, .events = events};
  int64_t left;

  do {
    left = until - control_now ();
    if (left < 0)
      return -1;
  } while (poll (&pollfd, 1, (int)(left < 1000 ? left : 1000)) <= 0);
  return 0;
}

static int
connect_to (int fd, const char *path, int64_t until, char *error,
            size_t error_size)
{
  struct sockaddr_un address = {.sun_family = AF_UNIX};

  if (strlen (path) >= sizeof address.sun_path)
    return fail (TL_USAGE, error, error_size,
                 "%s: the path of a socket has at most %zu bytes", path,
                 sizeof address.sun_path - 1);
  strcpy (address.sun_path, path);
  while (connect (fd, (struct sockaddr *)&address, sizeof address) == -1) {
    if (errno == ENOENT)
      return fail (TL_UNREACHABLE, error, error_size,
                   "no node at %s; is nbdkit running?", path);
    if (errno == ECONNREFUSED)
      return fail (TL_UNREACHABLE, error, error_size,
                   "the node at %s has ended; nobody listens there", path);
    /* EAGAIN: others are waiting to be let in. */
    if (errno != EAGAIN && errno != EINTR)
      return fail (TL_UNREACHABLE, error, error_size,
                   "cannot reach the node at %s: %s", path, strerror (errno));
    if (control_now () >= until)
      return fail (TL_TIMED_OUT, error, error_size,
                   "the node at %s lets nobody in", path);
    poll (NULL, 0, 20);
  }
  return TL_DONE;
}

static int
send_line (int fd, const char *path, const char *line, int64_t until,
           char *error, size_t error_size)
{
  size_t length = strlen (line);
  ssize_t n;

  while (length > 0) {
    n = send (fd, line, length, MSG_NOSIGNAL);
    if (n >= 0) {
      line += n;
      length -= (size_t)n;
    } else if (errno == EAGAIN) {
      if (ready (fd, POLLOUT, until) == -1)
        return fail (TL_TIMED_OUT, error, error_size,
                     "the node at %s takes no request", path);
    } else if (errno == EPIPE || errno == ECONNRESET)
      return TL_DONE; /* it may have said why before it closed */
    else if (errno != EINTR)
      return fail (TL_UNREACHABLE, error, error_size,
                   "cannot send to the node at %s: %s", path, strerror (errno));
  }
  return TL_DONE;
}

/* One line into BUFFER of ANSWER_MAX bytes, with a NUL for its newline. */
static int
receive_line (int fd, const char *path, char *buffer, int64_t until,
              char *error, size_t error_size)
{
  size_t used = 0;
  char *end;
  ssize_t n;

  for (;;) {
    if (ready (fd, POLLIN, until) == -1)
      return fail (TL_TIMED_OUT, error, error_size,
                   "no answer from the node at %s in time", path);
    n = recv (fd, buffer + used, ANSWER_MAX - used, 0);
    if (n == -1 && (errno == EAGAIN || errno == EINTR))
      continue;
    if (n <= 0)
      return fail (TL_UNREACHABLE, error, error_size,
                   "the node at %s closed the connection without an answer",
                   path);
    end = memchr (buffer + used, '\n', (size_t)n);
    used += (size_t)n;
    if (end) {
      *end = '\0';
      return TL_DONE;
    }
    if (used == ANSWER_MAX)
      return fail (TL_FAILED, error, error_size,
                   "the answer of the node at %s is longer than %d bytes", path,
                   ANSWER_MAX);
  }
}

static int
parse_answer (const char *path, const char *line, json_t **answer, char *error,
              size_t error_size)
{
  json_t *status;

  *answer = json_loads (line, JSON_REJECT_DUPLICATES, NULL);
  status = json_object_get (*answer, "status");
  if (json_is_integer (status) && json_integer_value (status) >= TL_DONE &&
      json_integer_value (status) <= TL_TIMED_OUT)
    return TL_DONE;
  json_decref (*answer);
  *answer = NULL;
  return fail (TL_FAILED, error, error_size,
               "the answer of the node at %s is not understood; is it a node "
               "of twinlog, of this version?",
               path);
}

int
control_ask (const char *path, const json_t *request, unsigned timeout,
             json_t **answer, char *error, size_t error_size)
{
  int64_t until = control_now () + timeout;
  char *line = NULL, *text = NULL, *buffer = NULL;
  int fd, status;

  *answer = NULL;
  fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  text = json_dumps (request, JSON_COMPACT);
  buffer = malloc (ANSWER_MAX);
  if (fd == -1 || !text || !buffer || asprintf (&line, "%s\n", text) == -1) {
    status = fail (TL_FAILED, error, error_size, "%s", strerror (errno));
    line = NULL;
    goto out;
  }
  status = connect_to (fd, path, until, error, error_size);
  if (status == TL_DONE)
    status = send_line (fd, path, line, until, error, error_size);
  if (status == TL_DONE)
    status = receive_line (fd, path, buffer, until, error, error_size);
  if (status == TL_DONE)
    status = parse_answer (path, buffer, answer, error, error_size);

out:
  if (fd != -1)
    close (fd);
  free (buffer);
  free (text);
  free (line);
  return status;
}

const char *
control_clean (const char *text, char *buffer, size_t size)
{
  size_t i;

  for (i = 0; text[i] && i < size - 1; i++)
    buffer[i] = (unsigned char)text[i] < ' ' || text[i] == 127 ? '?' : text[i];
  buffer[i] = '\0';
  return buffer;
}
