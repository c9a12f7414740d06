/* The control socket: an operator's commands, one JSON object a line, each
 * answered by one.  Served by the loop thread.
 *
 * A client has at most one command under way; what it sends meanwhile waits.
 * Anybody who asks too long a line, or does not take its answers, is closed.
 */
#include "net/net.h"
#include "net/command.h"
#include "net/status_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void take_lines (struct tl_control_client *client);
static void on_poll (uv_poll_t *poll, int status, int events);

/* ---- Clients ---- */

static void
on_closed (uv_handle_t *handle)
{
  struct tl_control_client *client = handle->data;

  close (client->fd);
  client->used = false;
  tl_turn (client->node);
}

static void
close_client (struct tl_control_client *client)
{
  struct tl_node *node = client->node;

  if (client->closing)
    return;
  client->closing = true;
  tl_lock (node);
  client->token = 0;
  client->replied = false;
  tl_unlock (node);
  uv_close ((uv_handle_t *)&client->poll, on_closed);
}

/* Send LINE, which is freed, with its end.  Who does not take it is closed. */
static void
send_line (struct tl_control_client *client, char *line)
{
  struct iovec parts[2];
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
  size_t length;

  if (!line) {
    close_client (client);
    return;
  }
  length = strlen (line);
  parts[0].iov_base = line;
  parts[0].iov_len = length;
  parts[1].iov_base = (char[]){"\n"};
  parts[1].iov_len = 1;
  if (sendmsg (client->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) !=
      (ssize_t)length + 1)
    close_client (client);
  free (line);
}

static void
send_status (struct tl_control_client *client)
{
  struct tl_node *node = client->node;
  struct tl_status_more more = {.volume = node->volume,
                                .node = node->name,
                                .size = node->size,
                                .policy = node->policy,
                                .arbiter = node->arbiter_command != NULL,
                                .deadline = node->deadline,
                                .write = &node->write_latency,
                                .read = &node->read_latency};
  struct tl_status status;

  tl_lock (node);
  more.now = tl_now ();
  tl_core_status (node->core, more.now, &status);
  more.clients = node->clients;
  more.resident = tl_store_resident (node->store);
  more.paths = tl_mptcp_paths (node);
  more.compress = tl_conn_compresses (node);
  more.compressed_from = node->compressed_from;
  more.compressed_to = node->compressed_to;
  tl_unlock (node);
  send_line (client, tl_status_json (&status, &more));
}

/* Version 4, variant 1 of RFC 4122. */
static void
new_uuid (struct tl_uuid *uuid)
{
  tl_random_bytes (uuid->bytes, sizeof uuid->bytes);
  uuid->bytes[6] = (uuid->bytes[6] & 0x0f) | 0x40;
  uuid->bytes[8] = (uuid->bytes[8] & 0x3f) | 0x80;
}

static void
start_command (struct tl_control_client *client,
               const struct tl_command_line *command)
{
  struct tl_node *node = client->node;
  struct tl_event event = {.type = TL_EV_COMMAND};
  bool over;

  event.command.command = command->command;
  event.command.flags = command->flags;
  new_uuid (&event.command.uuid);
  tl_lock (node);
  over = node->over;
  if (!over) {
    client->token = ++node->token;
    client->replied = false;
    event.command.token = client->token;
    event.command.clients = node->clients;
    tl_step (node, &event);
  }
  tl_leave (node);
  if (over)
    send_line (client, tl_answer_json (TL_FAILED, "the node is ending"));
}

/* One line, without its end. */
static void
take_line (struct tl_control_client *client, const char *line, size_t length)
{
  struct tl_command_line command;
  char error[256];

  if (tl_command_parse (line, length, &command, error, sizeof error) == -1)
    send_line (client, tl_answer_json (TL_USAGE, error));
  else if (command.status)
    send_status (client);
  else
    start_command (client, &command);
}

static bool
waits (struct tl_control_client *client)
{
  bool w;

  tl_lock (client->node);
  w = client->token != 0;
  tl_unlock (client->node);
  return w;
}

static void
take_lines (struct tl_control_client *client)
{
  while (!client->closing && !waits (client)) {
    char *end = memchr (client->line, '\n', client->filled);
    size_t length;

    if (!end) {
      if (client->filled == TL_CONTROL_LINE) {
        send_line (
            client,
            tl_answer_json (TL_USAGE, "the request is longer than 4096 bytes"));
        close_client (client);
        return;
      }
      if (!client->over)
        return;
      if (!client->filled) {
        close_client (client);
        return;
      }
      /* The last line may lack its end. */
      end = client->line + client->filled++;
    }
    length = (size_t)(end - client->line);
    take_line (client, client->line, length);
    client->filled -= length + 1;
    memmove (client->line, end + 1, client->filled);
  }
}

/* A reply that has come is sent; what waited behind it is taken. */
static void
take_reply (struct tl_control_client *client)
{
  struct tl_node *node = client->node;
  char text[TL_CONTROL_TEXT];
  int status = 0;
  bool replied;

  tl_lock (node);
  replied = client->replied;
  if (replied) {
    status = client->status;
    strcpy (text, client->text);
    client->replied = false;
    client->token = 0;
  }
  tl_unlock (node);
  if (!replied)
    return;
  send_line (client, tl_answer_json (status, text));
  take_lines (client);
}

static void
on_poll (uv_poll_t *poll, int status, int events)
{
  struct tl_control_client *client = poll->data;
  struct tl_node *node = client->node;
  size_t room = TL_CONTROL_LINE - client->filled;
  ssize_t n = 0;

  if (room) {
    n = recv (client->fd, client->line + client->filled, room, MSG_DONTWAIT);
    if (n == -1 && (errno == EAGAIN || errno == EINTR) && status >= 0)
      return;
  }
  if (n > 0)
    client->filled += (size_t)n;
  else {
    /* It says nothing more, but may wait for an answer; or it has said more
     * than it may before the answer.
     */
    client->over = true;
    uv_poll_stop (&client->poll);
  }
  take_lines (client);
  tl_turn (node);
}

void
tl_control_reply (struct tl_node *node, uint64_t token, int status,
                  const char *text)
{
  for (unsigned i = 0; i < TL_CONTROL_CLIENTS; i++) {
    struct tl_control_client *client = &node->control_clients[i];

    if (!token || client->token != token)
      continue;
    client->status = status;
    snprintf (client->text, sizeof client->text, "%s", text ? text : "");
    client->replied = true;
    tl_poke (node);
    return;
  }
}

/* ---- Accepting ---- */

/* Turn the owner of FD away with one line. */
static void
turn_away (int fd, int status, const char *text)
{
  char *line = tl_answer_json (status, text);

  if (line) {
    send (fd, line, strlen (line), MSG_DONTWAIT | MSG_NOSIGNAL);
    send (fd, "\n", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  free (line);
  close (fd);
}

static void
accept_client (struct tl_node *node, int fd)
{
  struct tl_control_client *client = NULL;
  struct ucred who;
  socklen_t length = sizeof who;

  if (getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &who, &length) == -1 ||
      (who.uid != 0 && who.uid != geteuid ())) {
    turn_away (fd, TL_REFUSED,
               "only root and the node's own user may use the control socket");
    return;
  }
  for (unsigned i = 0; i < TL_CONTROL_CLIENTS && !client; i++)
    if (!node->control_clients[i].used)
      client = &node->control_clients[i];
  if (!client || uv_poll_init (&node->loop, &client->poll, fd) != 0) {
    turn_away (fd, TL_FAILED,
               "too many clients on the control socket; try again later");
    return;
  }
  client->node = node;
  client->poll.data = client;
  client->fd = fd;
  client->filled = 0;
  client->used = true;
  client->closing = client->over = false;
  uv_poll_start (&client->poll, UV_READABLE, on_poll);
}

void
tl_control_accept (struct tl_node *node)
{
  for (unsigned i = 0; i < 16; i++) {
    int fd =
        accept4 (node->control_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd == -1) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
          errno == ENOBUFS)
        tl_loop_pause (node);
      return;
    }
    accept_client (node, fd);
  }
}

void
tl_control_turn (struct tl_node *node)
{
  for (unsigned i = 0; i < TL_CONTROL_CLIENTS; i++)
    if (node->control_clients[i].used && !node->control_clients[i].closing)
      take_reply (&node->control_clients[i]);
}

void
tl_control_end_all (struct tl_node *node)
{
  for (unsigned i = 0; i < TL_CONTROL_CLIENTS; i++) {
    struct tl_control_client *client = &node->control_clients[i];

    if (!client->used || client->closing)
      continue;
    if (waits (client))
      send_line (client, tl_answer_json (TL_FAILED, "the node is ending"));
    close_client (client);
  }
}

bool
tl_control_idle (const struct tl_node *node)
{
  for (unsigned i = 0; i < TL_CONTROL_CLIENTS; i++)
    if (node->control_clients[i].used)
      return false;
  return true;
}
