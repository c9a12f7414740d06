#include "attach.h"
#include "arguments.h"
#include "attach_connect.h"
#include "attach_device.h"
#include "attach_name.h"
#include "commands.h"
#include "control.h"

#include "core/core.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECONNECT_DEFAULT 60 /* seconds */
#define RECONNECT_MAX 86400
/* Seconds that the kernel waits beyond the node's deadline: the node's own
 * answer comes first.
 */
#define GRACE 5

/* ---- Options ---- */

/* Whole seconds from 1, or 0: they are not. */
static unsigned
parse_reconnect (const char *text)
{
  unsigned long seconds;

  if (!text[0] || text[strspn (text, "0123456789")])
    return 0;
  errno = 0;
  seconds = strtoul (text, NULL, 10);
  return errno || seconds > RECONNECT_MAX ? 0 : (unsigned)seconds;
}

int
attach_check_options (const struct arguments *arguments, char *error,
                      size_t error_size)
{
  const char *device = arguments->value[OPTION_DEVICE];
  const char *reconnect = arguments->value[OPTION_RECONNECT];

  if (device && device_parse (device) == DEVICE_NONE) {
    snprintf (error, error_size, "--device %s: expected /dev/nbdN", device);
    return -1;
  }
  if (reconnect && !parse_reconnect (reconnect)) {
    snprintf (error, error_size,
              "--reconnect %s: expected seconds from 1 to %d", reconnect,
              RECONNECT_MAX);
    return -1;
  }
  return 0;
}

/* ---- Attached already ---- */

static int
show_attached (const char *volume, int index)
{
  char name[NAME_PATH_SIZE];

  name_path (volume, name);
  printf ("%s is attached as /dev/nbd%d, %s\n", volume, index, name);
  return fflush (stdout) == 0
             ? TL_DONE
             : command_complain (TL_FAILED, "cannot write: %m");
}

/* Another process holds the lock: an agent, or one that is about to be. */
static int
attached_already (const struct attaching *a, const char *error)
{
  const char *device = a->arguments->value[OPTION_DEVICE];
  struct lock_content content;

  if (!lock_read (a->volume, &content) ||
      !device_has (content.index, a->identifier))
    return command_complain (TL_FAILED, "%s; try again in a moment", error);
  if (device && device_parse (device) != content.index)
    return command_complain (
        TL_REFUSED, "%s is attached as /dev/nbd%d already; detach it first",
        a->volume, content.index);
  return show_attached (a->volume, content.index);
}

/* The request's time-out and what it stands on; a node with the policy freeze
 * keeps requests for as long as it takes.
 */
static void
set_times (struct attaching *a)
{
  const char *reconnect = a->arguments->value[OPTION_RECONNECT];
  double deadline =
      json_number_value (json_object_get (a->node, "deadline-seconds"));

  a->agent.reconnect =
      reconnect ? parse_reconnect (reconnect) : RECONNECT_DEFAULT;
  a->timeout = (unsigned)(deadline + 0.999) + GRACE;
  a->agent.handshake = a->timeout * 1000;
  if (strcmp (command_word (a->node, "policy"), "freeze") == 0)
    a->timeout = 0;
}

/* The kernel has a device of this volume, but no agent is with it. */
static int
adopt (struct attaching *a, int index)
{
  const char *device = a->arguments->value[OPTION_DEVICE];
  struct lock_content *content = &a->agent.content;
  char why[512] = "its agent left no word of it";
  enum rules_verdict verdict = RULES_LOST;

  if (device && device_parse (device) != index)
    return command_complain (
        TL_REFUSED, "%s is attached as /dev/nbd%d already; detach it first",
        a->volume, index);
  if (device_has (index, a->identifier) && lock_read (a->volume, content) &&
      content->index == index) {
    if (json_integer_value (json_object_get (a->node, "clients")) > 0)
      verdict = rules_connected (&content->known, a->node, why, sizeof why);
    else
      verdict =
          rules_disconnected (&content->known, a->node, 0, why, sizeof why);
  }
  if (verdict == RULES_LOST)
    return command_complain (
        TL_REFUSED,
        "/dev/nbd%d is left from before and cannot go on: %s. "
        "End what uses it and detach it: twinlog detach %s",
        index, why, a->volume);
  a->agent.fd = -1;
  return TL_DONE;
}

/* ---- The agent ---- */

/* Become a process of its own, which holds nothing of its caller's. */
static void
become_daemon (void)
{
  int fd = open ("/dev/null", O_RDWR);

  setsid ();
  if (chdir ("/") == -1 || fd == -1)
    return;
  for (int i = 0; i <= 2; i++)
    dup2 (fd, i);
  if (fd > 2)
    close (fd);
}

/* Start the agent, or be it.  The agent's own netlink sockets come later. */
static int
start_agent (struct attaching *a)
{
  int index = a->agent.content.index;
  pid_t pid;

  a->agent.foreground = a->arguments->given[OPTION_FOREGROUND];
  if (a->agent.foreground)
    return agent_run (&a->agent);
  pid = fork ();
  if (pid == -1)
    return command_complain (TL_FAILED, "cannot start the agent: %m");
  if (pid == 0) {
    become_daemon ();
    _exit (agent_run (&a->agent));
  }
  /* The child has them now, the lock as well; it need not have written yet. */
  a->agent.content.pid = pid;
  lock_write (&a->agent.lock, &a->agent.content);
  close (a->agent.lock.fd);
  if (a->agent.fd != -1)
    close (a->agent.fd);
  return show_attached (a->volume, index);
}

static int
attach (struct attaching *a)
{
  int index = device_find (a->volume), status;

  if (index == DEVICE_SEVERAL)
    status = command_complain (TL_REFUSED,
                               "several devices are attached to volumes of "
                               "the name %s: detach them with --device",
                               a->volume);
  else if (index == DEVICE_NONE)
    status = attach_connect (a);
  else
    status = adopt (a, index);
  if (status != TL_DONE) {
    lock_release (&a->agent.lock, index == DEVICE_NONE);
    return status;
  }
  if (!name_make (a->volume, a->agent.content.index))
    command_complain (TL_DONE,
                      "warning: cannot make the name of the device: %m");
  return start_agent (a);
}

/* The agent has another directory.  What does not exist is complained of
 * later.
 */
static void
make_absolute (char path[CONTROL_PATH_SIZE])
{
  char *absolute = realpath (path, NULL);

  if (absolute)
    snprintf (path, CONTROL_PATH_SIZE, "%s", absolute);
  free (absolute);
}

int
command_attach (const struct arguments *arguments)
{
  struct attaching a = {.arguments = arguments};
  const char *socket = arguments->value[OPTION_SOCKET];
  char error[1024];
  int status;

  /* What the caller left open would stay open with the agent. */
  if (!arguments->given[OPTION_FOREGROUND])
    close_range (3, ~0U, 0);
  status = command_ask_status (arguments, CONTROL_ASK_TIMEOUT, &a.node, error,
                               sizeof error);
  if (status != TL_DONE)
    return command_complain (status, "%s", error);
  a.volume = strdupa (command_word (a.node, "name"));
  if (!tl_name_valid (a.volume))
    status =
        command_complain (TL_FAILED, "the node's answer is not understood");
  if (status == TL_DONE)
    status = control_find (CONTROL_DIRECTORY, arguments->value[OPTION_CONTROL],
                           a.volume, a.control, error, sizeof error);
  if (status == TL_DONE) {
    if (socket)
      snprintf (a.socket, sizeof a.socket, "%s", socket);
    else
      snprintf (a.socket, sizeof a.socket, CONTROL_DIRECTORY "/%s.sock",
                a.volume);
    make_absolute (a.control);
    make_absolute (a.socket);
    device_identifier (command_word (a.node, "uuid"), a.volume, a.identifier);
    set_times (&a);
    a.agent.volume = a.volume;
    a.agent.control = a.control;
    a.agent.socket = a.socket;
    a.agent.identifier = a.identifier;
    status = lock_take (&a.agent.lock, a.volume, error, sizeof error);
    if (status == TL_REFUSED)
      status = attached_already (&a, error);
    else if (status == TL_DONE)
      status = attach (&a);
    else
      command_complain (status, "%s", error);
  }
  json_decref (a.node);
  return status;
}
