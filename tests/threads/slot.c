/* A place for a node: it is opened there, used by clients, and closed. */
#include "threads.h"
#include "state/state.h"

#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Nobody damages what is sent: a node that says one of these was sent a wrong
 * frame, or frames in a wrong order.
 */
static const char *const impossible[] = {
    "malformed",          "not a twinlog frame",
    "reserved bytes",     "checksum",
    "compressed payload", "unknown frame type",
    "too large",          "was due",
    "what was not sent",  "beyond the end",
    "where none belongs", "sync-done without a resync"};

static void
on_log (void *opaque, bool error, const char *line)
{
  struct slot *slot = opaque;

  if (getenv ("TWINLOG_THREADS_LOG"))
    fprintf (stderr, "%.3f %s: %s\n", (double)now_us () / 1e6, slot->name,
             line);
  for (size_t i = 0; i < sizeof impossible / sizeof *impossible; i++)
    if (strstr (line, impossible[i]))
      violation (slot->test, "node %s: %s", slot->name, line);
}

bool
slot_open (struct slot *slot, bool kept)
{
  struct test *test = slot->test;
  struct tl_node_config config = {
      .volume = VOLUME,
      .node = slot->name,
      .size = SIZE,
      .listen = slot->listen,
      .peer = slot->peer,
      .control = slot->control,
      .state = slot->state,
      .store = kept ? slot->store : NULL,
      .policy = test->arbiter ? TL_POLICY_ARBITER : TL_POLICY_ERROR,
      .arbiter = test->arbiter ? test->arbiter_command : NULL,
      .deadline = DEADLINE,
      .compress = slot->opened++ % 4 != 3, /* now and then only one */
      .log = on_log,
      .opaque = slot};
  uint64_t until = now_us () + 1000000 * SLOW;
  struct tl_node *node;
  char error[1024];
  int r;

  /* The other node, in the same process, may just be starting its arbiter:
   * until that is executed it has a copy of the locks and sockets that were
   * closed here.
   */
  while ((r = tl_node_open (&node, &config, error, sizeof error)) == -1 &&
         test->arbiter && now_us () < until)
    pause_ms (2);
  if (r == -1) {
    violation (test, "node %s does not open: %s", slot->name, error);
    return false;
  }
  if (tl_node_start (node, error, sizeof error) == -1) {
    violation (test, "node %s does not start: %s", slot->name, error);
    tl_node_close (node);
    return false;
  }
  slot->kept = kept;
  pthread_mutex_lock (&slot->lock);
  slot->node = node;
  slot->ending = false;
  pthread_mutex_unlock (&slot->lock);
  return true;
}

/* Can the RAM of SLOT, which is closed, be lost?  Only if the other node is a
 * member of the newest view that this one has stored or proposed.
 */
static bool
expendable (struct slot *slot)
{
  struct slot *other = &slot->test->slots[!slot->index];
  struct tl_record record;
  struct tl_status status;
  char error[512];

  if (!slot_status (other, &status))
    return false;
  if (tl_state_load (slot->state, &record, error, sizeof error) != 0)
    return false;
  return (status.disk == TL_DISK_UPTODATE ||
          status.disk == TL_DISK_CONSISTENT) &&
         tl_view_has (&status.view, other->name) &&
         status.view.number >= record.view.number &&
         status.view.number >= record.proposal.number;
}

void
slot_close (struct slot *slot, bool lose)
{
  struct tl_node *node;
  char header[200];
  uint64_t begin;

  pthread_mutex_lock (&slot->lock);
  node = slot->node;
  slot->ending = true;
  pthread_mutex_unlock (&slot->lock);
  if (!node)
    return;

  begin = now_us ();
  tl_node_stop (node);
  if (now_us () - begin > UINT64_C (1000000) * (SLOW + 1))
    violation (slot->test, "tl_node_stop took %.3f s",
               (double)(now_us () - begin) / 1e6);
  pthread_mutex_lock (&slot->lock);
  while (slot->users > 0) /* the watch bounds this */
    pthread_cond_wait (&slot->idle, &slot->lock);
  slot->node = NULL;
  pthread_mutex_unlock (&slot->lock);
  tl_node_close (node);

  if (slot->kept && lose && expendable (slot)) {
    snprintf (header, sizeof header, "%s.header", slot->store);
    unlink (slot->store);
    unlink (header);
    slot->test->counts[7]++;
  }
}

struct tl_node *
slot_enter (struct slot *slot)
{
  struct tl_node *node;

  pthread_mutex_lock (&slot->lock);
  node = slot->ending ? NULL : slot->node;
  if (node)
    slot->users++;
  pthread_mutex_unlock (&slot->lock);
  return node;
}

void
slot_leave (struct slot *slot)
{
  pthread_mutex_lock (&slot->lock);
  if (--slot->users == 0)
    pthread_cond_signal (&slot->idle);
  pthread_mutex_unlock (&slot->lock);
}

bool
slot_status (struct slot *slot, struct tl_status *status)
{
  struct tl_node *node = slot_enter (slot);

  if (!node)
    return false;
  tl_node_status (node, status);
  slot_leave (slot);
  return true;
}

/* ---- The control socket ---- */

/* Read a line; the number of bytes, 0 where there is none, as the node closes,
 * or -1 where none came in time.
 */
static int
read_line (int fd, char *line, size_t size, uint64_t until)
{
  size_t filled = 0;

  while (filled + 1 < size) {
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    uint64_t now = now_us ();
    ssize_t n;

    if (now >= until)
      return -1;
    poll (&poll_fd, 1, (int)((until - now) / 1000) + 1);
    if (!poll_fd.revents)
      continue;
    n = read (fd, line + filled, size - 1 - filled);
    if (n <= 0)
      return 0;
    filled += (size_t)n;
    line[filled] = '\0';
    if (strchr (line, '\n'))
      return (int)filled;
  }
  return -1;
}

static int
parse_answer (const char *line, char *text, size_t text_size)
{
  json_t *answer = json_loads (line, 0, NULL);
  const json_t *status = json_object_get (answer, "status");
  const char *said = json_string_value (json_object_get (answer, "text"));
  int result = json_is_integer (status) ? (int)json_integer_value (status) : -1;

  if (text)
    snprintf (text, text_size, "%s", said ? said : line);
  json_decref (answer);
  return result;
}

static int
dial (struct slot *slot)
{
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  snprintf (address.sun_path, sizeof address.sun_path, "%s", slot->control);
  if (connect (fd, (struct sockaddr *)&address, sizeof address) == 0)
    return fd;
  close (fd);
  return -1;
}

static bool
say (int fd, const char *line)
{
  size_t length = strlen (line);

  return send (fd, line, length, MSG_NOSIGNAL) == (ssize_t)length;
}

void
slot_call (struct slot *slot, const char *line, bool wait)
{
  char answer[8192];
  int fd = dial (slot);

  if (fd == -1)
    return;
  if (say (fd, line) && wait) {
    shutdown (fd, SHUT_WR); /* the last line may lack its end */
    read_line (fd, answer, sizeof answer, now_us () + 500000);
  }
  close (fd);
}

int
slot_command (struct slot *slot, const char *line, char *text, size_t text_size)
{
  /* A command is answered within the deadline and what the arbiter is granted,
   * for two agreements.
   */
  uint64_t until = now_us () + 2 * (DEADLINE + GRACE) + 2000000 * SLOW;
  char answer[8192];
  int fd = dial (slot), n = 0, result = -1;

  if (text)
    snprintf (text, text_size, "no answer");
  if (fd == -1)
    return -1;
  if (say (fd, line))
    n = read_line (fd, answer, sizeof answer, until);
  if (n > 0)
    result = parse_answer (answer, text, text_size);
  else if (n == -1)
    violation (slot->test, "node %s did not answer %s", slot->name, line);
  close (fd);
  return result;
}
