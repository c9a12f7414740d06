/* The arbiter: a command of the operator's, run for each compare-and-swap.
 *
 * The wait is on a thread of libuv's pool.  The command is a process group of
 * its own, so that all of it can be killed when the time is up.  It gets the
 * records as arguments, never as text that a shell would read.
 */
#include "net/net.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_MOST 10000000 /* microseconds */

/* What the command prints. */
struct output {
  int fd;
  size_t filled;
  bool overflow;
  char text[TL_ARBITER_OUTPUT + 1];
};

static void unknown (struct tl_arbiter *arbiter, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));

static void
unknown (struct tl_arbiter *arbiter, const char *format, ...)
{
  va_list arguments;

  arbiter->result = TL_ANSWER_UNKNOWN;
  va_start (arguments, format);
  vsnprintf (arbiter->reason, sizeof arbiter->reason, format, arguments);
  va_end (arguments);
}

/* Take what has come; false at the end of it. */
static bool
take (struct output *output)
{
  char waste[1024];

  for (;;) {
    size_t room = TL_ARBITER_OUTPUT - output->filled;
    ssize_t n = room ? read (output->fd, output->text + output->filled, room)
                     : read (output->fd, waste, sizeof waste);

    if (n == -1 && errno == EINTR)
      continue;
    if (n == -1)
      return errno == EAGAIN;
    if (n == 0)
      return false;
    if (room)
      output->filled += (size_t)n;
    else
      output->overflow = true;
  }
}

/* Read until the command has ended or UNTIL has come.  A child of its own that
 * it left behind may hold the pipes open: its end is what counts.  False where
 * the time was up.
 */
static bool
follow (int pidfd, struct output *out, struct output *err, uint64_t until)
{
  struct pollfd fds[3] = {{.fd = pidfd, .events = POLLIN},
                          {.fd = out->fd, .events = POLLIN},
                          {.fd = err->fd, .events = POLLIN}};
  bool ended = false;

  while (!ended) {
    uint64_t now = tl_now ();

    if (now >= until)
      return false;
    if (poll (fds, 3, (int)((until - now + 999) / 1000)) <= 0)
      continue;
    ended = fds[0].revents != 0;
    if (fds[1].revents && !take (out))
      fds[1].fd = -1;
    if (fds[2].revents && !take (err))
      fds[2].fd = -1;
  }
  if (fds[1].fd != -1)
    take (out);
  if (fds[2].fd != -1)
    take (err);
  return true;
}

static bool
blank (const char *text)
{
  while (isspace ((unsigned char)*text))
    text++;
  return !*text;
}

/* Exit status 1: what stands is on the standard output. */
static void
read_record (struct tl_arbiter *arbiter, struct output *out)
{
  if (strlen (out->text) != out->filled || out->overflow)
    unknown (arbiter, "the arbiter printed what is no record");
  else if (blank (out->text)) {
    arbiter->result = TL_ANSWER_LOST;
    arbiter->known = false;
  } else if (tl_view_parse (out->text, &arbiter->uuid, &arbiter->view) == 0) {
    arbiter->result = TL_ANSWER_LOST;
    arbiter->known = true;
  } else
    unknown (arbiter, "the arbiter printed what is no record");
}

static void
judge (struct tl_arbiter *arbiter, int status, struct output *out,
       struct output *err)
{
  out->text[out->filled] = err->text[err->filled] = 0;
  if (WIFEXITED (status) && WEXITSTATUS (status) == 0)
    arbiter->result = TL_ANSWER_DONE;
  else if (WIFEXITED (status) && WEXITSTATUS (status) == 1)
    read_record (arbiter, out);
  else if (!blank (err->text))
    unknown (arbiter, "%.*s", (int)strcspn (err->text, "\n"), err->text);
  else if (WIFEXITED (status))
    unknown (arbiter, "the arbiter ended with status %d", WEXITSTATUS (status));
  else
    unknown (arbiter, "the arbiter was killed by signal %d", WTERMSIG (status));
}

/* Start it, unless none is to be started any more. */
static int
start (struct tl_arbiter *arbiter, char *const arguments[], int out, int err,
       pid_t *child)
{
  int error = ECANCELED;

  /* The lock is held meanwhile, so that an end cannot miss the child. */
  pthread_mutex_lock (&arbiter->child_lock);
  if (!arbiter->ended)
    error = tl_spawn (arguments, environ, out, err, child);
  if (!error)
    arbiter->child = *child;
  pthread_mutex_unlock (&arbiter->child_lock);
  return error;
}

/* Wait for the end of CHILD, which was started, and reap it. */
static void
attend (struct tl_arbiter *arbiter, pid_t child, struct output *out,
        struct output *err, uint64_t limit)
{
  int pidfd = pidfd_open (child, 0);
  bool in_time = false;
  int status;
  pid_t reaped;

  if (pidfd != -1) {
    in_time = follow (pidfd, out, err, tl_now () + limit);
    close (pidfd);
  }
  if (!in_time)
    kill (-child, SIGKILL);
  /* From here on its number may be another's. */
  pthread_mutex_lock (&arbiter->child_lock);
  arbiter->child = 0;
  pthread_mutex_unlock (&arbiter->child_lock);
  do
    reaped = waitpid (child, &status, 0);
  while (reaped == -1 && errno == EINTR);

  if (pidfd == -1)
    unknown (arbiter, "cannot watch the arbiter");
  else if (!in_time)
    unknown (arbiter, "no answer of the arbiter in %.1f s",
             (double)limit / 1e6);
  else if (reaped == -1)
    unknown (arbiter, "the status of the arbiter was lost: %s",
             strerror (errno));
  else
    judge (arbiter, status, out, err);
}

void
tl_arbiter_run (struct tl_arbiter *arbiter, const char *command,
                const char *volume, uint64_t limit)
{
  char before[TL_VIEW_TEXT] = "none", after[TL_VIEW_TEXT], verb[] = "cas";
  char shell[] = "sh", option[] = "-c", name[TL_NAME_SIZE], *script;
  char *arguments[9] = {shell, option, NULL,  shell, verb,
                        name,  before, after, NULL};
  struct output out = {.fd = -1}, err = {.fd = -1};
  int out_pipe[2] = {-1, -1}, err_pipe[2] = {-1, -1};
  int error = 0;
  pid_t child;

  if (!arbiter->asking.create)
    tl_view_format (&arbiter->asking.uuid, &arbiter->asking.before, before);
  tl_view_format (&arbiter->asking.uuid, &arbiter->asking.after, after);
  snprintf (name, sizeof name, "%s", volume);
  if (asprintf (&script, "exec %s \"$@\"", command) == -1) {
    unknown (arbiter, "no memory");
    return;
  }
  arguments[2] = script;

  if (pipe2 (out_pipe, O_CLOEXEC) == -1 || pipe2 (err_pipe, O_CLOEXEC) == -1)
    error = errno;
  else {
    out.fd = out_pipe[0];
    err.fd = err_pipe[0];
    fcntl (out.fd, F_SETFL, O_NONBLOCK);
    fcntl (err.fd, F_SETFL, O_NONBLOCK);
    error = start (arbiter, arguments, out_pipe[1], err_pipe[1], &child);
  }
  if (out_pipe[1] != -1)
    close (out_pipe[1]);
  if (err_pipe[1] != -1)
    close (err_pipe[1]);
  if (error)
    unknown (arbiter, "cannot run the arbiter: %s", strerror (error));
  else
    attend (arbiter, child, &out, &err, limit);
  if (out_pipe[0] != -1)
    close (out_pipe[0]);
  if (err_pipe[0] != -1)
    close (err_pipe[0]);
  free (script);
}

void
tl_arbiter_end (struct tl_node *node)
{
  struct tl_arbiter *arbiter = &node->arbiter;

  pthread_mutex_lock (&arbiter->child_lock);
  arbiter->ended = true;
  if (arbiter->child)
    kill (-arbiter->child, SIGKILL);
  pthread_mutex_unlock (&arbiter->child_lock);
}

static void
run (uv_work_t *work)
{
  struct tl_node *node = work->data;
  uint64_t limit = node->deadline < LIMIT_MOST ? node->deadline : LIMIT_MOST;

  tl_arbiter_run (&node->arbiter, node->arbiter_command, node->volume, limit);
}

static void
after (uv_work_t *work, int status)
{
  struct tl_node *node = work->data;
  struct tl_arbiter *arbiter = &node->arbiter;
  struct tl_event event = {.type = TL_EV_ANSWER};

  arbiter->busy = false;
  event.answer.result = arbiter->result;
  event.answer.known = arbiter->known;
  event.answer.uuid = arbiter->uuid;
  event.answer.view = arbiter->view;
  event.answer.reason = arbiter->reason;
  tl_lock (node);
  tl_step (node, &event);
  tl_leave (node);
  tl_turn (node);
}

void
tl_arbiter_turn (struct tl_node *node)
{
  struct tl_arbiter *arbiter = &node->arbiter;
  bool start_one = false;

  if (arbiter->busy)
    return;
  tl_lock (node);
  if (arbiter->wanted && !node->over) {
    arbiter->wanted--;
    arbiter->asking = arbiter->ask;
    start_one = true;
  }
  tl_unlock (node);
  if (!start_one)
    return;
  arbiter->known = false;
  arbiter->reason[0] = 0;
  arbiter->work.data = node;
  arbiter->busy = uv_queue_work (&node->loop, &arbiter->work, run, after) == 0;
}
