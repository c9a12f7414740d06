/* The operator's command that is told of changes.
 *
 * One runs at a time.  What changes meanwhile is told by the next one, all of
 * it at once, so that the last one always knows what is.  It may take its time,
 * to fence a machine say: nothing waits for it, and it outlives the node.
 */
#include "net/net.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

static bool
differs (const struct tl_status *a, const struct tl_status *b)
{
  return a->role != b->role || a->disk != b->disk || a->link != b->link ||
         a->peer_known != b->peer_known ||
         (b->peer_known &&
          (a->peer_role != b->peer_role || a->peer_disk != b->peer_disk)) ||
         a->copies != b->copies;
}

/* ---- What it is told ---- */

/* NAME=VALUE, which replaces one that was inherited. */
static void put (struct tl_notify *notify, const char *name, const char *format,
                 ...) __attribute__ ((format (printf, 3, 4)));

static void
put (struct tl_notify *notify, const char *name, const char *format, ...)
{
  size_t used = (size_t)snprintf (notify->text[notify->n_text], TL_NOTIFY_TEXT,
                                  "TWINLOG_%s=", name);
  va_list arguments;

  va_start (arguments, format);
  vsnprintf (notify->text[notify->n_text] + used, TL_NOTIFY_TEXT - used, format,
             arguments);
  va_end (arguments);
  notify->n_text++;
}

static void
put_state (struct tl_notify *notify, const char *prefix,
           const struct tl_status *status)
{
  char name[40];

#define PUT(word, ...)                                                         \
  do {                                                                         \
    snprintf (name, sizeof name, "%s%s", prefix, word);                        \
    put (notify, name, __VA_ARGS__);                                           \
  } while (0)
  PUT ("ROLE", "%s", tl_role_name (status->role));
  PUT ("DISK_STATE", "%s", tl_disk_name (status->disk));
  PUT ("CONNECTION_STATE", "%s", tl_link_name (status->link));
  PUT ("PEER_ROLE", "%s",
       status->peer_known ? tl_role_name (status->peer_role) : "Unknown");
  PUT ("PEER_DISK_STATE", "%s",
       status->peer_known ? tl_disk_name (status->peer_disk) : "DUnknown");
  PUT ("COPIES", "%u", status->copies);
#undef PUT
}

/* Is WORD, NAME=VALUE, one of those that are put anew? */
static bool
replaced (const struct tl_notify *notify, const char *word)
{
  for (unsigned i = 0; i < notify->n_text; i++)
    if (strncmp (word, notify->text[i], strcspn (word, "=") + 1) == 0)
      return true;
  return false;
}

/* The environment of the process, and those; NULL where memory is short. */
static char **
make_environment (struct tl_notify *notify)
{
  size_t n = 0;
  char **all;

  while (environ[n])
    n++;
  all = calloc (n + notify->n_text + 1, sizeof *all);
  if (!all)
    return NULL;
  n = 0;
  for (char **word = environ; *word; word++)
    if (!replaced (notify, *word))
      all[n++] = *word;
  for (unsigned i = 0; i < notify->n_text; i++)
    all[n++] = notify->text[i];
  return all;
}

/* ---- Its life ---- */

static void
say (struct tl_node *node, const char *what, int value)
{
  tl_lock (node);
  tl_log_add (node, true, what, value);
  tl_unlock (node);
}

static void
on_closed (uv_handle_t *handle)
{
  struct tl_node *node = handle->data;
  struct tl_notify *notify = &node->notify;

  close (notify->pidfd);
  notify->busy = false;
  tl_turn (node);
}

static void
on_end (uv_poll_t *poll, int status, int events)
{
  struct tl_node *node = poll->data;
  struct tl_notify *notify = &node->notify;
  int result = 0;

  if (waitpid (notify->child, &result, WNOHANG) == 0)
    return;
  if (WIFEXITED (result) && WEXITSTATUS (result) != 0)
    say (node, "the command of notify= ended with status %d",
         WEXITSTATUS (result));
  else if (WIFSIGNALED (result))
    say (node, "the command of notify= was killed by signal %d",
         WTERMSIG (result));
  tl_notify_end (node);
}

static void
run (uv_work_t *work)
{
  struct tl_node *node = work->data;
  struct tl_notify *notify = &node->notify;
  char shell[] = "sh", option[] = "-c";
  char *arguments[] = {shell, option, node->notify_command, NULL};
  char **environment = make_environment (notify);

  notify->error = environment ? tl_spawn (arguments, environment, STDERR_FILENO,
                                          STDERR_FILENO, &notify->child)
                              : ENOMEM;
  free (environment);
  if (notify->error)
    return;
  notify->pidfd = pidfd_open (notify->child, 0);
  if (notify->pidfd == -1) {
    /* It cannot be watched: wait for it here. */
    while (waitpid (notify->child, NULL, 0) == -1 && errno == EINTR)
      ;
    notify->error = EMFILE;
  }
}

static void
after (uv_work_t *work, int status)
{
  struct tl_node *node = work->data;
  struct tl_notify *notify = &node->notify;

  if (notify->error) {
    notify->busy = false;
    tl_lock (node);
    tl_log_add (node, true, "cannot run the command of notify=: %s",
                strerror (notify->error));
    tl_unlock (node);
    tl_turn (node);
    return;
  }
  uv_poll_init (&node->loop, &notify->poll, notify->pidfd);
  notify->poll.data = node;
  notify->watched = true;
  uv_poll_start (&notify->poll, UV_READABLE, on_end);
  tl_turn (node);
}

void
tl_notify_end (struct tl_node *node)
{
  struct tl_notify *notify = &node->notify;

  if (!notify->watched)
    return;
  notify->watched = false;
  uv_close ((uv_handle_t *)&notify->poll, on_closed);
}

void
tl_notify_turn (struct tl_node *node)
{
  struct tl_notify *notify = &node->notify;
  struct tl_status status;
  bool start;

  if (!node->notify_command || notify->busy)
    return;
  tl_lock (node);
  start = notify->wanted && !node->over;
  if (start) {
    notify->wanted = false;
    tl_core_status (node->core, tl_now (), &status);
  }
  tl_unlock (node);
  if (!start || !differs (&notify->told, &status))
    return;
  notify->n_text = 0;
  put (notify, "VOLUME", "%s", node->volume);
  put (notify, "NODE", "%s", node->name);
  put (notify, "PEER_NODE", "%s", status.peer);
  put (notify, "CONTROL", "%s", node->control);
  put (notify, "VIEW", "%" PRIu64, status.view.number);
  put_state (notify, "", &status);
  put_state (notify, "OLD_", &notify->told);
  notify->told = status;
  notify->work.data = node;
  notify->busy = uv_queue_work (&node->loop, &notify->work, run, after) == 0;
}
