#include "attach_kernel.h"

#include "core/core.h"

#include <linux/nbd-netlink.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <stdio.h>

static int
fail (int code, const char *what, char *error, size_t error_size)
{
  if (code == -NLE_PERM)
    snprintf (error, error_size, "%s: only root may", what);
  else
    snprintf (error, error_size, "%s: %s", what, nl_geterror (code));
  return TL_FAILED;
}

static struct nl_sock *
new_socket (void)
{
  struct nl_sock *sock = nl_socket_alloc ();

  if (sock && genl_connect (sock) == 0)
    return sock;
  nl_socket_free (sock);
  return NULL;
}

/* Events are not answers: they carry no number of ours. */
static int
subscribe (struct kernel *kernel)
{
  int group = genl_ctrl_resolve_grp (kernel->requests, NBD_GENL_FAMILY_NAME,
                                     NBD_GENL_MCAST_GROUP_NAME);

  if (group < 0)
    return group;
  kernel->events = new_socket ();
  if (!kernel->events)
    return -NLE_NOMEM;
  nl_socket_disable_seq_check (kernel->events);
  nl_socket_set_nonblocking (kernel->events);
  return nl_socket_add_membership (kernel->events, group);
}

int
kernel_open (struct kernel *kernel, bool events, char *error, size_t error_size)
{
  int code;

  *kernel = (struct kernel){.requests = new_socket ()};
  if (!kernel->requests) {
    snprintf (error, error_size, "cannot speak generic netlink to the kernel");
    return TL_FAILED;
  }
  kernel->family = genl_ctrl_resolve (kernel->requests, NBD_GENL_FAMILY_NAME);
  if (kernel->family < 0) {
    snprintf (error, error_size,
              "the kernel has no NBD client: load its module with «modprobe "
              "nbd», and name it in /etc/modules-load.d for the next start");
    kernel_close (kernel);
    return TL_FAILED;
  }
  if (!events)
    return TL_DONE;
  code = subscribe (kernel);
  if (code >= 0)
    return TL_DONE;
  kernel_close (kernel);
  return fail (code, "cannot hear of dead links", error, error_size);
}

void
kernel_close (struct kernel *kernel)
{
  nl_socket_free (kernel->events);
  nl_socket_free (kernel->requests);
  kernel->events = kernel->requests = NULL;
}

/* ---- Requests ---- */

static struct nl_msg *
new_message (const struct kernel *kernel, uint8_t command)
{
  struct nl_msg *message = nlmsg_alloc ();

  if (message && !genlmsg_put (message, NL_AUTO_PORT, NL_AUTO_SEQ,
                               kernel->family, 0, 0, command, 0)) {
    nlmsg_free (message);
    message = NULL;
  }
  return message;
}

static int
put_socket (struct nl_msg *message, int fd)
{
  struct nlattr *list = nla_nest_start (message, NBD_ATTR_SOCKETS), *item;

  if (!list)
    return -NLE_NOMEM;
  item = nla_nest_start (message, NBD_SOCK_ITEM);
  if (!item || nla_put_u32 (message, NBD_SOCK_FD, (uint32_t)fd) < 0)
    return -NLE_NOMEM;
  nla_nest_end (message, item);
  nla_nest_end (message, list);
  return 0;
}

/* Send MESSAGE, whose attributes were put with the result CODE; it is used
 * up.  0, or a negative code of libnl.
 */
static int
send_message (struct kernel *kernel, struct nl_msg *message, int code)
{
  if (code >= 0)
    return nl_send_sync (kernel->requests, message);
  nlmsg_free (message);
  return code;
}

static int
take_index (struct nl_msg *message, void *opaque)
{
  struct nlattr *attributes[NBD_ATTR_MAX + 1];
  int *index = opaque;

  if (genlmsg_parse (nlmsg_hdr (message), 0, attributes, NBD_ATTR_MAX, NULL) ==
          0 &&
      attributes[NBD_ATTR_INDEX])
    *index = (int)nla_get_u32 (attributes[NBD_ATTR_INDEX]);
  return NL_OK;
}

static int
put_device (struct nl_msg *message, const struct kernel_device *device)
{
  const struct {
    int attribute;
    uint64_t value;
  } numbers[] = {
      {NBD_ATTR_SIZE_BYTES, device->size},
      {NBD_ATTR_BLOCK_SIZE_BYTES, device->block_size},
      {NBD_ATTR_SERVER_FLAGS, device->flags},
      {NBD_ATTR_CLIENT_FLAGS, 0},
      {NBD_ATTR_TIMEOUT, device->request_timeout},
      {NBD_ATTR_DEAD_CONN_TIMEOUT, device->reconnect},
  };
  int code = 0;

  if (device->index != KERNEL_ANY_DEVICE)
    code = nla_put_u32 (message, NBD_ATTR_INDEX, (uint32_t)device->index);
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] && code >= 0; i++)
    code = nla_put_u64 (message, numbers[i].attribute, numbers[i].value);
  if (code >= 0)
    code = nla_put_string (message, NBD_ATTR_BACKEND_IDENTIFIER,
                           device->identifier);
  if (code >= 0)
    code = put_socket (message, device->fd);
  return code;
}

int
kernel_connect (struct kernel *kernel, const struct kernel_device *device,
                int *index, char *error, size_t error_size)
{
  struct nl_msg *message = new_message (kernel, NBD_CMD_CONNECT);
  char what[64] = "cannot connect a device";
  int code;

  if (!message)
    return fail (-NLE_NOMEM, what, error, error_size);
  *index = device->index;
  if (device->index != KERNEL_ANY_DEVICE)
    snprintf (what, sizeof what, "cannot connect /dev/nbd%d", device->index);
  nl_socket_modify_cb (kernel->requests, NL_CB_VALID, NL_CB_CUSTOM, take_index,
                       index);
  code = send_message (kernel, message, put_device (message, device));
  nl_socket_modify_cb (kernel->requests, NL_CB_VALID, NL_CB_DEFAULT, NULL,
                       NULL);
  if (code == -NLE_BUSY) {
    snprintf (error, error_size,
              "/dev/nbd%d is in use: name a free one, or leave --device out",
              device->index);
    return TL_REFUSED;
  }
  if (code < 0)
    return fail (code, what, error, error_size);
  if (*index < 0) {
    snprintf (error, error_size, "the kernel did not say which device it took");
    return TL_FAILED;
  }
  return TL_DONE;
}

int
kernel_reconfigure (struct kernel *kernel, int index, int fd,
                    const char *identifier, char *error, size_t error_size)
{
  struct nl_msg *message = new_message (kernel, NBD_CMD_RECONFIGURE);
  int code = -NLE_NOMEM;

  if (message) {
    code = nla_put_u32 (message, NBD_ATTR_INDEX, (uint32_t)index);
    if (code >= 0)
      code = nla_put_string (message, NBD_ATTR_BACKEND_IDENTIFIER, identifier);
    if (code >= 0)
      code = put_socket (message, fd);
    code = send_message (kernel, message, code);
  }
  if (code < 0)
    return fail (code, "the kernel does not take the new connection", error,
                 error_size);
  return TL_DONE;
}

int
kernel_disconnect (struct kernel *kernel, int index, char *error,
                   size_t error_size)
{
  struct nl_msg *message = new_message (kernel, NBD_CMD_DISCONNECT);
  int code = -NLE_NOMEM;

  if (message)
    code =
        send_message (kernel, message,
                      nla_put_u32 (message, NBD_ATTR_INDEX, (uint32_t)index));
  if (code < 0)
    return fail (code, "cannot disconnect the device", error, error_size);
  return TL_DONE;
}

/* ---- Events ---- */

int
kernel_events_fd (const struct kernel *kernel)
{
  return nl_socket_get_fd (kernel->events);
}

struct event_search {
  int index;
  bool found;
};

static int
take_event (struct nl_msg *message, void *opaque)
{
  struct event_search *search = opaque;
  int index = -1;

  take_index (message, &index);
  if (genlmsg_hdr (nlmsg_hdr (message))->cmd == NBD_CMD_LINK_DEAD &&
      index == search->index)
    search->found = true;
  return NL_OK;
}

bool
kernel_link_dead (struct kernel *kernel, int index)
{
  struct event_search search = {.index = index};
  int code;

  nl_socket_modify_cb (kernel->events, NL_CB_VALID, NL_CB_CUSTOM, take_event,
                       &search);
  do
    code = nl_recvmsgs_default (kernel->events);
  while (code >= 0);
  /* What overflowed may have been ours. */
  return search.found || code == -NLE_NOMEM;
}
