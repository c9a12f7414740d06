#include "attach_connect.h"
#include "arguments.h"
#include "attach_export.h"
#include "attach_kernel.h"
#include "commands.h"

#include "core/core.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CLIENTS_TIME 5000 /* milliseconds for other clients to go */
#define INTERVAL 100      /* milliseconds between looks */
/* Requests in flight at most: as many as nbdkit has threads for a connection,
 * so that none waits unread while its timer in the kernel runs.
 */
#define REQUESTS "16"

/* ---- Conditions ---- */

static int
ask_again (struct attaching *a)
{
  char error[1024];
  int status;

  json_decref (a->node);
  status = command_ask_status (a->arguments, CONTROL_ASK_TIMEOUT, &a->node,
                               error, sizeof error);
  return status == TL_DONE ? TL_DONE : command_complain (status, "%s", error);
}

static int
check_primary (const struct attaching *a)
{
  if (strcmp (command_word (a->node, "role"), "Primary") == 0)
    return TL_DONE;
  return command_complain (
      TL_REFUSED,
      "node %s is not the primary of %s: only that one serves. Attach on the "
      "other machine, or make this node the primary: switchover there, or "
      "promote here",
      command_word (a->node, "node"), a->volume);
}

/* Nobody else may be writing, nor anything of an earlier client be on its
 * way.
 */
static int
wait_until_alone (struct attaching *a)
{
  char why[512];
  int status = TL_DONE;

  for (int waited = 0;; waited += INTERVAL) {
    if (rules_alone (a->node, 0, why, sizeof why) == RULES_GO)
      return TL_DONE;
    if (waited >= CLIENTS_TIME)
      return command_complain (TL_REFUSED,
                               "%s: two that write at once destroy each "
                               "other's data; detach it first",
                               why);
    poll (NULL, 0, INTERVAL);
    status = ask_again (a);
    if (status != TL_DONE)
      return status;
  }
}

/* ---- The device ---- */

static int
connect_device (struct attaching *a, struct kernel *kernel,
                const struct export *export)
{
  const char *device = a->arguments->value[OPTION_DEVICE];
  const struct kernel_device wanted = {.index = device ? device_parse (device)
                                                       : KERNEL_ANY_DEVICE,
                                       .fd = export->fd,
                                       .size = export->size,
                                       .block_size = export->block_size,
                                       .flags = export->flags,
                                       .request_timeout = a->timeout,
                                       .reconnect = a->agent.reconnect,
                                       .identifier = a->identifier};
  char error[512];
  int index, status;

  status = kernel_connect (kernel, &wanted, &index, error, sizeof error);
  if (status != TL_DONE)
    return command_complain (status, "%s", error);
  if (!device_has (index, a->identifier)) {
    kernel_disconnect (kernel, index, error, sizeof error);
    return command_complain (TL_FAILED, "the kernel does not keep the "
                                        "identifier of a device: Linux 5.14 "
                                        "or newer is needed");
  }
  if (!device_set (index, "queue/nr_requests", REQUESTS))
    command_complain (
        TL_DONE, "warning: cannot limit the requests of /dev/nbd%d: %m", index);
  a->agent.fd = export->fd;
  a->agent.content.index = index;
  a->agent.content.flags = export->flags;
  return TL_DONE;
}

/* Shake hands with the node, and make sure that it was this node. */
static int
open_export (struct attaching *a, struct export *export)
{
  char error[1024];
  int status;

  status = export_open (export, a->socket, a->volume, a->agent.handshake, error,
                        sizeof error);
  if (status != TL_DONE)
    return command_complain (status, "%s", error);
  status = ask_again (a);
  if (status == TL_DONE)
    status = check_primary (a);
  if (status == TL_DONE &&
      rules_alone (a->node, 1, error, sizeof error) != RULES_GO)
    status = command_complain (TL_REFUSED, "%s", error);
  if (status == TL_DONE && !rules_learn (&a->agent.content.known, a->node))
    status =
        command_complain (TL_FAILED, "the node's answer is not understood");
  if (status == TL_DONE &&
      export->size != (uint64_t)a->agent.content.known.size)
    status = command_complain (TL_REFUSED,
                               "the export at %s has another size than %s",
                               a->socket, a->volume);
  if (status != TL_DONE)
    close (export->fd);
  return status;
}

int
attach_connect (struct attaching *a)
{
  struct kernel kernel;
  struct export export;
  char error[512];
  int status;

  status = check_primary (a);
  if (status != TL_DONE)
    return status;
  status = kernel_open (&kernel, false, error, sizeof error);
  if (status != TL_DONE)
    return command_complain (status, "%s", error);
  status = wait_until_alone (a);
  if (status == TL_DONE)
    status = open_export (a, &export);
  if (status == TL_DONE) {
    status = connect_device (a, &kernel, &export);
    if (status != TL_DONE)
      close (export.fd);
  }
  kernel_close (&kernel);
  return status;
}
