/* Connections, the handshake, and the life of a session.
 *
 * The one who dialled says hello; the one who accepted answers with its own
 * hello, whose header carries the session id it chose; the dialler's welcome
 * begins the session on both sides.  Of two connections made at once the one
 * that the lower node name dialled stays.
 */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- Frames ---- */

static struct tl_action *
frame_on (struct tl_core *c, uint32_t conn, uint8_t type, uint8_t flags)
{
  struct tl_action *action = act (c, TL_DO_SEND);

  action->conn = conn;
  action->frame.type = type;
  action->frame.flags = flags;
  return action;
}

/* A frame of the session. */
struct tl_action *
send_frame (struct tl_core *c, uint8_t type, uint8_t flags)
{
  struct tl_action *action = frame_on (c, c->session, type, flags);

  action->frame.session = c->session_id;
  action->frame.view = c->record.view.number;
  c->spoke = c->now;
  return action;
}

/* ... that the peer applies in order and acknowledges. */
struct tl_action *
send_sequenced (struct tl_core *c, uint8_t type, uint8_t flags)
{
  struct tl_action *action = send_frame (c, type, flags);

  if (c->tx_acked == c->tx_sequence)
    c->progress = c->now;
  action->frame.sequence = ++c->tx_sequence;
  return action;
}

static void
with_payload (struct tl_action *action, const void *bytes, size_t length)
{
  action->payload = TL_PAYLOAD_SMALL;
  action->small = bytes;
  action->frame.payload = (uint32_t)length;
  action->frame.checksum = tl_payload_checksum (bytes, length);
}

void
send_view (struct tl_core *c, uint8_t type, uint8_t flags,
           const struct tl_uuid *uuid, const struct tl_view *view)
{
  void *bytes = small (c);
  size_t length = tl_view_encode (uuid, view, bytes);
  struct tl_action *action = send_frame (c, type, flags);

  /* The view counts on all that was sent before it. */
  action->frame.sequence = c->tx_sequence;
  with_payload (action, bytes, length);
}

static void
send_hello (struct tl_core *c, uint32_t conn, uint64_t session)
{
  struct tl_hello hello = {
      .version_min = TL_PROTOCOL_MIN,
      .version_max = TL_PROTOCOL_MAX,
      .uuid = c->record.uuid,
      .size = c->config.size,
      .incarnation = c->kept->incarnation,
      .role = c->role,
      .data = known_data (c),
      .member = is_member (c),
      .arbiter = c->config.arbiter,
      .view = c->record.view,
      .n_past = c->record.n_history,
  };
  struct tl_action *action = frame_on (c, conn, TL_HELLO, 0);
  void *bytes = small (c);

  memcpy (hello.volume, c->volume, sizeof hello.volume);
  memcpy (hello.node, c->node, sizeof hello.node);
  for (unsigned i = 0; i < hello.n_past; i++) {
    hello.past[i].number = c->record.history[i].number;
    hello.past[i].id = c->record.history[i].id;
  }
  action->frame.session = session;
  with_payload (action, bytes, tl_hello_encode (&hello, bytes));
}

static void
send_bye (struct tl_core *c, uint32_t conn, const char *why)
{
  void *bytes = small (c);
  size_t length = strnlen (why, 200);

  memcpy (bytes, why, length);
  with_payload (frame_on (c, conn, TL_BYE, 0), bytes, length);
}

/* ---- Connections ---- */

/* Close a connection of any kind and forget it.  Unlike conn_down and
 * session_end this draws no conclusion.
 */
void
close_conn (struct tl_core *c, uint32_t id, const char *reason)
{
  struct tl_action *action = act (c, TL_DO_CLOSE);

  action->conn = id;
  action->text = reason;
}

static void
back_off (struct tl_core *c)
{
  c->dial_at = c->now + c->backoff;
  c->backoff = c->backoff * 2 < BACKOFF_MAX ? c->backoff * 2 : BACKOFF_MAX;
}

/* Remember why there is no connection.  Status keeps why the last one ended,
 * or was refused, rather than that another could not be made since; the
 * operator is told of each reason once between two sessions, not at every try.
 */
static void
disconnected (struct tl_core *c, const char *reason, bool dial)
{
  uint64_t hash = tl_payload_checksum (reason, strlen (reason) + 1);

  if (!dial || c->dial_reason || c->disconnect_reason[0] == '\0') {
    snprintf (c->disconnect_reason, sizeof c->disconnect_reason, "%s", reason);
    c->dial_reason = dial;
  }
  for (unsigned i = 0; i < REASONS; i++)
    if (c->said[i] == hash)
      return;
  memmove (&c->said[1], &c->said[0], sizeof c->said - sizeof c->said[0]);
  c->said[0] = hash;
  say (c, "no connection to the peer: %s", reason);
}

static void
drop_dial (struct tl_core *c, const char *reason)
{
  if (c->dial == 0)
    return;
  close_conn (c, c->dial, reason);
  c->dial = 0;
}

static void
drop_accept (struct tl_core *c, const char *reason)
{
  if (c->accept == 0)
    return;
  close_conn (c, c->accept, reason);
  c->accept = 0;
  c->candidate = false;
}

/* What the hellos said is no longer so. */
void
handshake_abort (struct tl_core *c)
{
  drop_dial (c, "the state changed");
  drop_accept (c, "the state changed");
}

void
conn_up (struct tl_core *c, uint32_t id, bool dialled)
{
  bool busy = c->stopped || c->agree.stage != STAGE_IDLE;

  if (dialled) {
    c->dialling = false;
    if (busy || c->phase != PHASE_NONE || c->candidate) {
      close_conn (c, id, "not needed any more");
      return;
    }
    c->dial = id;
    c->dial_by = c->now + HANDSHAKE;
    send_hello (c, id, 0);
    return;
  }
  if (busy) {
    close_conn (c, id, "busy");
    return;
  }
  drop_accept (c, "the peer connected anew");
  c->accept = id;
  c->accept_by = c->now + HANDSHAKE;
}

void
conn_down (struct tl_core *c, uint32_t id, const char *reason)
{
  if (id == 0) {
    c->dialling = false;
    back_off (c);
    if (c->phase == PHASE_NONE)
      disconnected (c, reason, true);
  } else if (c->phase != PHASE_NONE && id == c->session) {
    session_end (c, false, "%s", reason);
  } else if (id == c->dial) {
    c->dial = 0;
    back_off (c);
    if (c->phase == PHASE_NONE)
      disconnected (c, reason, false);
  } else if (id == c->accept) {
    c->accept = 0;
    c->candidate = false;
    if (c->phase == PHASE_NONE)
      disconnected (c, reason, false);
  }
}

/* ---- The handshake ---- */

static void
refuse (struct tl_core *c, uint32_t id, const char *why)
{
  send_bye (c, id, why);
  close_conn (c, id, why);
  conn_down (c, id, why);
}

static void
session_begin (struct tl_core *c, uint32_t id, const struct tl_hello *hello,
               uint64_t session_id)
{
  c->session = id;
  c->session_id = session_id;
  c->peer = *hello;
  c->phase = PHASE_IDLE;
  c->dial = c->accept = 0;
  c->candidate = false;
  c->promote_at = c->config.auto_promote ? c->now + c->config.deadline : NEVER;
  c->begun = c->now;
  c->proved = false;
  c->creating = c->resynced = c->diverged = false;
  c->yielded = 0;
  c->peer_member = c->peer_stored = false;
  c->tx_sequence = c->tx_acked = c->rx_sequence = c->rx_acked = 0;
  c->heard = c->spoke = c->progress = c->now;
  memset (&c->resync, 0, sizeof c->resync);
  memcpy (c->record.peer, hello->node, sizeof c->record.peer);
  changed (c);
  say (c, "connected to node %s (%s)", hello->node, tl_role_name (hello->role));
  meet (c);
}

void
conn_hello (struct tl_core *c, uint32_t id, const struct tl_frame *f,
            const void *payload)
{
  struct tl_hello hello;
  const char *why;

  if (id != c->dial && (id != c->accept || c->candidate)) {
    if (id == c->session)
      session_end (c, true, "hello in the middle of a session");
    return;
  }
  if (tl_hello_decode (&hello, payload, f->payload) == -1) {
    refuse (c, id, "malformed hello");
    return;
  }
  why = meet_refuse (c, &hello);
  if (why != NULL) {
    refuse (c, id, why);
    return;
  }
  if (id == c->accept && c->dial != 0) {
    if (strcmp (c->node, hello.node) < 0) {
      drop_accept (c, "crossed with our own connection");
      return;
    }
    drop_dial (c, "crossed with the peer's connection");
  }
  if (meet_split (c, &hello)) {
    /* The dialler is to see it too. */
    if (id == c->accept)
      send_hello (c, id, 0);
    c->standalone = true;
    changed (c);
    refuse (c, id,
            "split brain: both nodes have data that the other never had; "
            "nothing is overwritten. Run twinlog discard on the node whose "
            "data is to be given up");
    return;
  }
  if (c->standalone) {
    c->standalone = false; /* the other gave its data up */
    changed (c);
  }
  if (id == c->accept) {
    session_end (c, false, "the peer connected anew");
    c->candidate = true;
    c->caller = hello;
    c->caller_session = random_id (c);
    c->accept_by = c->now + HANDSHAKE;
    send_hello (c, id, c->caller_session);
  } else {
    struct tl_action *welcome;

    drop_accept (c, "connected");
    welcome = frame_on (c, id, TL_WELCOME, 0);
    welcome->frame.session = f->session;
    session_begin (c, id, &hello, f->session);
  }
}

void
conn_welcome (struct tl_core *c, uint32_t id, const struct tl_frame *f)
{
  if (id != c->accept || !c->candidate)
    return;
  if (f->session != c->caller_session) {
    refuse (c, id, "welcome of another session");
    return;
  }
  drop_dial (c, "connected");
  session_begin (c, id, &c->caller, c->caller_session);
}

/* ---- The end ---- */

/* End the session.  BYE: tell the peer why.  What was sent and not
 * acknowledged is dirty from now on.
 */
void
session_end (struct tl_core *c, bool bye, const char *format, ...)
{
  char why[200];
  va_list args;

  if (c->phase == PHASE_NONE)
    return;
  va_start (args, format);
  vsnprintf (why, sizeof why, format, args);
  va_end (args);

  if (bye)
    send_bye (c, c->session, why);
  close_conn (c, c->session, text (c, "%s", why));
  c->session = 0;
  c->phase = PHASE_NONE;
  if (c->role == TL_PRIMARY && !alone (c) && c->lost_at == 0)
    c->lost_at = c->now;
  c->peer_member = c->peer_stored = false;
  c->resync.active = c->resync.done = false;
  verify_interrupted (c);
  c->creating = false;
  c->told.waiting = false;
  if (c->proved || c->now >= c->begun + c->config.deadline) {
    c->backoff = BACKOFF_MIN;
    c->dial_at = c->now;
    memset (c->said, 0, sizeof c->said);
  } else {
    back_off (c); /* one that came to nothing is not begun again at once */
  }
  if (c->config.auto_promote)
    c->promote_at = c->now + c->config.deadline;
  disconnected (c, why, false);
  changed (c);
  requests_unsent (c);
  reply (c, &c->create_token, TL_DONE,
         "created, but the connection ended before the partner joined: it "
         "joins when it is back");
  /* Where the handover has come already it is only being stored. */
  if (c->agree.stage == STAGE_IDLE)
    reply (c, &c->handover_token, TL_FAILED,
           "the connection to the peer ended: %s", why);
  if (c->agree.stage == STAGE_IDLE)
    switchover_over (c, TL_FAILED, why);
  agree_session_lost (c);
}

/* ---- Time ---- */

static uint64_t
ping_interval (const struct tl_core *c)
{
  return c->config.deadline / 4;
}

/* By when the peer has to acknowledge something; NEVER: it owes nothing. */
static uint64_t
acknowledge_by (const struct tl_core *c)
{
  uint64_t oldest = c->progress;

  if (c->tx_acked == c->tx_sequence)
    return NEVER;
  if (c->in_flight.first != NULL && c->in_flight.first->sent < oldest)
    oldest = c->in_flight.first->sent;
  return earlier (oldest + c->config.deadline, requests_acknowledge_by (c));
}

void
session_timers (struct tl_core *c)
{
  if (c->dial != 0 && c->now >= c->dial_by) {
    close_conn (c, c->dial, "handshake timed out");
    conn_down (c, c->dial, "the peer did not answer the hello");
  }
  if (c->accept != 0 && c->now >= c->accept_by)
    drop_accept (c, "handshake timed out");
  if (c->phase == PHASE_NONE)
    return;
  if (c->now >= c->heard + c->config.deadline) {
    session_end (c, true, "no word from the peer within the deadline");
  } else if (c->now >= acknowledge_by (c)) {
    session_end (c, true, "the peer did not acknowledge within the deadline");
  } else if (c->phase == PHASE_SOURCE_WAIT &&
             c->now >= c->unready + c->config.deadline) {
    session_end (c, true, "the peer did not get ready within the deadline");
  } else if (c->now >= c->spoke + ping_interval (c)) {
    send_frame (c, TL_PING, 0);
  }
}

uint64_t
session_wake (const struct tl_core *c)
{
  uint64_t at = NEVER;

  if (c->dial != 0)
    at = earlier (at, c->dial_by);
  if (c->accept != 0)
    at = earlier (at, c->accept_by);
  if (c->phase == PHASE_NONE) {
    if (!c->standalone && !c->dialling && c->dial == 0 && !c->candidate &&
        c->agree.stage == STAGE_IDLE)
      at = earlier (at, c->dial_at);
    return at;
  }
  at = earlier (at, acknowledge_by (c));
  if (c->phase == PHASE_SOURCE_WAIT)
    at = earlier (at, c->unready + c->config.deadline);
  at = earlier (at, c->heard + c->config.deadline);
  return earlier (at, c->spoke + ping_interval (c));
}
