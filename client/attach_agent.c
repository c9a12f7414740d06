#include "attach_agent.h"
#include "attach_device.h"
#include "attach_export.h"
#include "attach_name.h"
#include "control.h"

#include "core/core.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <syslog.h>
#include <unistd.h>

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#endif

/* Milliseconds. */
#define LOOK_CONNECTED 1000 /* between looks at the node */
#define LOOK_DEAD 100
#define ANSWER_TIME 2000    /* for one answer of the node */
#define KERNEL_NOTICES 1000 /* from the end of a socket to its LINK_DEAD */

enum link { LINK_UP, LINK_UNKNOWN, LINK_DOWN };

/* What the loop keeps. */
struct watch {
  struct agent *agent;
  struct kernel kernel;
  enum link link;
  bool noticed;   /* the kernel took the link for dead */
  bool late;      /* requests fail by now */
  int64_t since;  /* when the link ended */
  char told[512]; /* the last reason that was logged */
};

static void __attribute__ ((format (printf, 2, 3)))
say (const struct agent *agent, const char *format, ...)
{
  char text[1024];
  va_list list;

  va_start (list, format);
  vsnprintf (text, sizeof text, format, list);
  va_end (list);
  if (agent->foreground)
    fprintf (stderr, "twinlog: %s: /dev/nbd%d: %s\n", agent->volume,
             agent->content.index, text);
  else
    syslog (LOG_DAEMON | LOG_NOTICE, "%s: /dev/nbd%d: %s", agent->volume,
            agent->content.index, text);
}

/* Under memory pressure the kernel may be waiting for this very device, and
 * the device for us: all memory is ours beforehand, what the heap has had is
 * not given back, and nobody ends us to find some.
 */
static void
protect (const struct agent *agent)
{
  int fd = open ("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  bool spared = fd != -1 && write (fd, "-1000", 5) == 5;
  bool flusher = prctl (PR_SET_IO_FLUSHER, 1, 0, 0, 0) == 0;
  bool locked;

  if (fd != -1)
    close (fd);
  mallopt (M_TRIM_THRESHOLD, 64 << 20);
  mallopt (M_MMAP_MAX, 0);
  locked = mlockall (MCL_CURRENT | MCL_FUTURE) == 0;
  if (!spared || !flusher || !locked)
    say (agent, "warning: the system refused to protect the agent from memory "
                "pressure: the device may stall when its connection ends");
}

/* ---- What is seen ---- */

static bool
hung_up (int fd)
{
  struct pollfd pollfd = {.fd = fd, .events = POLLRDHUP};

  return poll (&pollfd, 1, 0) == 1;
}

/* The node's object, NULL with one line in WHY. */
static json_t *
ask_node (const struct agent *agent, char *why, size_t size)
{
  json_t *request = json_pack ("{s:s}", "command", "status");
  json_t *answer = NULL, *node = NULL;

  if (control_ask (agent->control, request, ANSWER_TIME, &answer, why, size) ==
      TL_DONE) {
    node = json_incref (json_object_get (answer, "node"));
    if (!node)
      snprintf (why, size, "the node does not tell its state");
  }
  json_decref (answer);
  json_decref (request);
  return node;
}

static void
link_ended (struct watch *watch)
{
  struct agent *agent = watch->agent;

  if (agent->fd != -1)
    close (agent->fd);
  agent->fd = -1;
  watch->link = LINK_DOWN;
  watch->since = control_now ();
  watch->late = false;
  watch->told[0] = '\0';
  say (agent, "the connection ended; requests wait up to %u s for another one",
       agent->reconnect);
}

/* ---- What is done ---- */

/* A reason to wait is logged when it is another one than before. */
static void
wait_because (struct watch *watch, const char *why)
{
  int64_t waited = control_now () - watch->since;

  if (strcmp (watch->told, why) != 0) {
    snprintf (watch->told, sizeof watch->told, "%s", why);
    say (watch->agent, "waiting: %s", why);
  }
  if (!watch->late && waited > (int64_t)watch->agent->reconnect * 1000) {
    watch->late = true;
    say (watch->agent,
         "no connection for %u s: requests fail until there is one",
         watch->agent->reconnect);
  }
}

static int
give_up (struct watch *watch, const char *why)
{
  const struct agent *agent = watch->agent;
  char error[256];

  say (agent,
       "given up: %s. What is in flight fails. End what uses the device, and "
       "detach it",
       why);
  if (kernel_disconnect (&watch->kernel, agent->content.index, error,
                         sizeof error) != TL_DONE)
    say (agent, "%s", error);
  name_remove (agent->volume, agent->content.index);
  return TL_REFUSED;
}

/* What was judged and not lost is known from now on: the next view is compared
 * with it.
 */
static void
learn (struct watch *watch, const json_t *node)
{
  struct agent *agent = watch->agent;
  struct rules_known known;

  if (!rules_learn (&known, node) ||
      (known.view == agent->content.known.view &&
       strcmp (known.id, agent->content.known.id) == 0 &&
       known.promotions == agent->content.known.promotions))
    return;
  agent->content.known = known;
  if (!lock_write (&agent->lock, &agent->content))
    say (agent, "cannot write %s: %m", agent->lock.path);
}

/* May the device have the connection that FRESH is?  Judged anew: the process
 * that it leads to need not be the one that was asked before.
 */
static bool
may_have (struct watch *watch, const struct export *fresh, char *why,
          size_t size)
{
  const struct agent *agent = watch->agent;
  json_t *node = ask_node (agent, why, size);
  bool ok;

  if (!node)
    return false;
  ok = rules_disconnected (&agent->content.known, node, 1, why, size) ==
       RULES_GO;
  if (ok)
    learn (watch, node);
  json_decref (node);
  if (ok && (fresh->size != (uint64_t)agent->content.known.size ||
             fresh->flags != agent->content.flags)) {
    snprintf (why, size,
              "the export at %s offers another size or other operations than "
              "before",
              agent->socket);
    return false;
  }
  if (ok && hung_up (fresh->fd)) {
    snprintf (why, size, "the new connection ended at once");
    return false;
  }
  return ok;
}

static void
connect_again (struct watch *watch)
{
  struct agent *agent = watch->agent;
  struct export fresh;
  char why[512];

  if (!watch->noticed && control_now () - watch->since < KERNEL_NOTICES)
    return;
  if (export_open (&fresh, agent->socket, agent->volume, agent->handshake, why,
                   sizeof why) != TL_DONE) {
    wait_because (watch, why);
    return;
  }
  if (!may_have (watch, &fresh, why, sizeof why) ||
      kernel_reconfigure (&watch->kernel, agent->content.index, fresh.fd,
                          agent->identifier, why, sizeof why) != TL_DONE) {
    close (fresh.fd);
    wait_because (watch, why);
    return;
  }
  agent->fd = fresh.fd;
  watch->link = LINK_UP;
  watch->noticed = false;
  say (agent, "connected again after %.1f s",
       (double)(control_now () - watch->since) / 1000);
}

/* ---- The loop ---- */

/* Look at the node.  An exit status, or -1: go on. */
static int
look (struct watch *watch)
{
  struct agent *agent = watch->agent;
  enum rules_verdict verdict;
  char why[512];
  json_t *node = ask_node (agent, why, sizeof why);
  int status = -1;

  if (!node) {
    if (watch->link == LINK_DOWN)
      wait_because (watch, why);
    return -1;
  }
  if (watch->link == LINK_UNKNOWN &&
      json_integer_value (json_object_get (node, "clients")) == 0)
    link_ended (watch);
  /* An answer that came after the end may be that of the next process. */
  if (watch->link == LINK_UP && hung_up (agent->fd))
    link_ended (watch);
  if (watch->link == LINK_DOWN)
    verdict =
        rules_disconnected (&agent->content.known, node, 0, why, sizeof why);
  else
    verdict = rules_connected (&agent->content.known, node, why, sizeof why);
  if (verdict != RULES_LOST)
    learn (watch, node);
  if (verdict == RULES_LOST)
    status = give_up (watch, why);
  else if (verdict == RULES_WAIT)
    wait_because (watch, why);
  else if (watch->link == LINK_DOWN)
    connect_again (watch);
  json_decref (node);
  return status;
}

/* Wait for something to happen, or for the time of the next look. */
static void
wait_for_news (struct watch *watch)
{
  struct agent *agent = watch->agent;
  struct pollfd fds[2] = {
      {.fd = kernel_events_fd (&watch->kernel), .events = POLLIN},
      {.fd = agent->fd, .events = POLLRDHUP}};

  poll (fds, 2, watch->link == LINK_DOWN ? LOOK_DEAD : LOOK_CONNECTED);
  if (kernel_link_dead (&watch->kernel, agent->content.index)) {
    /* Of a socket that we have replaced already, or of ours: the kernel shuts
     * down what it takes for dead.
     */
    if (agent->fd == -1 || hung_up (agent->fd))
      watch->noticed = true;
    if (watch->link == LINK_UNKNOWN)
      link_ended (watch);
  }
  if (watch->link == LINK_UP && hung_up (agent->fd))
    link_ended (watch);
}

int
agent_run (struct agent *agent)
{
  struct watch watch = {.agent = agent,
                        .link = agent->fd == -1 ? LINK_UNKNOWN : LINK_UP};
  char error[512];
  int status;

  signal (SIGPIPE, SIG_IGN);
  agent->content.pid = getpid ();
  if (!agent->foreground)
    openlog ("twinlog", LOG_PID, LOG_DAEMON);
  protect (agent);
  status = kernel_open (&watch.kernel, true, error, sizeof error);
  if (status != TL_DONE) {
    say (agent, "%s", error);
    return status;
  }
  if (!lock_write (&agent->lock, &agent->content))
    say (agent, "cannot write %s: %m", agent->lock.path);
  say (agent, "attached; the agent is process %d", (int)agent->content.pid);
  for (status = -1; status == -1;) {
    wait_for_news (&watch);
    if (!device_has (agent->content.index, agent->identifier)) {
      say (agent, "detached");
      name_remove (agent->volume, agent->content.index);
      status = TL_DONE;
    } else
      status = look (&watch);
  }
  kernel_close (&watch.kernel);
  if (agent->fd != -1)
    close (agent->fd);
  lock_release (&agent->lock, true);
  return status;
}
