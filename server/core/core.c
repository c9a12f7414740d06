#include "internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Building the update ---- */

/* splitmix64: https://prng.di.unimi.it/splitmix64.c gives the constants. */
uint64_t
random_id (struct tl_core *c)
{
  uint64_t z;

  do {
    z = c->random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
  } while (z == 0);
  return z;
}

bool
room (const struct tl_core *c, unsigned actions)
{
  return c->out->n + actions <= TL_ACTIONS;
}

struct tl_action *
act (struct tl_core *c, enum tl_action_type type)
{
  struct tl_action *action;

  assert (room (c, 1));
  action = &c->out->actions[c->out->n++];
  memset (action, 0, sizeof *action);
  action->type = type;
  return action;
}

static const char *
vtext (struct tl_core *c, const char *format, va_list args)
{
  struct tl_update *out = c->out;
  char *at = out->text + out->text_used;
  size_t left = sizeof out->text - out->text_used;
  int n;

  /* The last byte is never used up: where there is no room the text is "". */
  n = vsnprintf (at, left, format, args);
  out->text_used += (size_t)n < left - 1 ? (size_t)n + 1 : left - 1;
  return at;
}

const char *
text (struct tl_core *c, const char *format, ...)
{
  const char *result;
  va_list args;

  va_start (args, format);
  result = vtext (c, format, args);
  va_end (args);
  return result;
}

void
say (struct tl_core *c, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  act (c, TL_DO_LOG)->text = vtext (c, format, args);
  va_end (args);
}

void
reply (struct tl_core *c, uint64_t *token, int status, const char *format, ...)
{
  struct tl_action *action;
  va_list args;

  if (*token == 0)
    return;
  action = act (c, TL_DO_REPLY);
  action->token = *token;
  action->status = status;
  va_start (args, format);
  action->text = vtext (c, format, args);
  va_end (args);
  *token = 0;
}

void *
small (struct tl_core *c)
{
  struct tl_update *out = c->out;
  void *buffer = out->small + out->small_used;

  assert (out->small_used + TL_SMALL_MAX <= sizeof out->small);
  out->small_used += TL_SMALL_MAX;
  return buffer;
}

void
changed (struct tl_core *c)
{
  c->changed = c->now;
}

uint64_t
tl_core_changed (const struct tl_core *c)
{
  return c->changed;
}

/* ---- Life ---- */

/* Find or make what is kept with the RAM.  What was under way when an earlier
 * process ended may be missing at the peer.
 */
static int
keep (struct tl_core *c)
{
  uint64_t blocks = c->config.size / TL_BLOCK;

  c->kept = c->config.kept;
  if (c->kept == NULL) {
    c->kept = &c->own;
    c->kept->incarnation = c->config.incarnation;
    c->kept->data = TL_EMPTY;
    return tl_map_init (&c->dirty, blocks);
  }
  tl_map_over (&c->dirty, c->config.kept_map, blocks);
  c->slots = malloc (TL_KEPT_WRITES * sizeof c->slots[0]);
  if (c->slots == NULL)
    return -1;
  for (uint32_t i = 0; i < TL_KEPT_WRITES; i++) {
    tl_map_set (&c->dirty, c->kept->writes[i].first, c->kept->writes[i].count);
    c->kept->writes[i].count = 0;
    c->slots[c->n_slots++] = i;
  }
  return 0;
}

struct tl_core *
tl_core_new (const struct tl_core_config *config,
             const struct tl_record *loaded)
{
  struct tl_core *c = calloc (1, sizeof *c);

  if (c == NULL)
    return NULL;
  c->config = *config;
  snprintf (c->volume, sizeof c->volume, "%s", config->volume);
  snprintf (c->node, sizeof c->node, "%s", config->node);
  c->config.volume = c->volume;
  c->config.node = c->node;
  if (keep (c) == -1) {
    tl_core_free (c);
    return NULL;
  }
  if (loaded != NULL) {
    c->record = *loaded;
  } else {
    memcpy (c->record.volume, c->volume, sizeof c->volume);
    memcpy (c->record.node, c->node, sizeof c->node);
    c->record.size = config->size;
  }
  /* A node that is not complete neither proposes nor needs to know what became
   * of its last proposal; but a create is asked for again.
   */
  if (c->record.view.number != 0 && !is_member (c))
    memset (&c->record.proposal, 0, sizeof c->record.proposal);
  c->agree.retry_at = NEVER;
  c->backoff = BACKOFF_MIN;
  c->promote_at = NEVER;
  return c;
}

void
tl_core_free (struct tl_core *c)
{
  if (c == NULL)
    return;
  tl_map_free (&c->dirty);
  free (c->slots);
  free (c);
}

const struct tl_record *
tl_core_pending (const struct tl_core *c)
{
  return &c->pending;
}

uint64_t
tl_core_epoch (const struct tl_core *c)
{
  return c->epoch;
}

/* ---- The rules that start something by themselves ---- */

/* The partner's name, as far as the view has one. */
static const char *
partner (const struct tl_core *c)
{
  const struct tl_view *view = &c->record.view;

  for (unsigned i = 0; i < view->n_members; i++)
    if (strcmp (view->members[i], c->node) != 0)
      return view->members[i];
  return NULL;
}

/* A primary changes the members by itself in three cases. */
static void
consider_members (struct tl_core *c)
{
  const char *other = partner (c);

  if (c->role != TL_PRIMARY || c->agree.stage != STAGE_IDLE || c->stopped ||
      c->now < c->propose_at)
    return;

  if (other != NULL && c->phase == PHASE_NONE) {
    /* The partner is gone.  If it is just connecting anew, see first. */
    if (c->lost_at == 0)
      c->lost_at = c->now;
    if (c->candidate || c->config.policy == TL_POLICY_ERROR ||
        c->config.policy == TL_POLICY_FREEZE)
      return;
    agree_next (c, KIND_ALONE, c->node, NULL);
  } else if (other != NULL && !c->peer_member && !c->creating) {
    /* It is here, but its RAM was lost, or it was never told of this view:
     * no more is acknowledged before it is out.
     */
    agree_next (c, KIND_REMOVE, c->node, NULL);
  } else if (other == NULL && c->phase == PHASE_SOURCE && c->resync.done) {
    agree_next (c, KIND_JOIN, c->node, c->peer.node);
  }
}

static void
consider_dial (struct tl_core *c)
{
  if (c->started && !c->stopped && !c->standalone && c->phase == PHASE_NONE &&
      !c->dialling && c->dial == 0 && !c->candidate &&
      c->agree.stage == STAGE_IDLE && c->now >= c->dial_at) {
    c->dialling = true;
    act (c, TL_DO_DIAL);
  }
}

static uint64_t
wake (const struct tl_core *c)
{
  uint64_t at;

  if (c->stopped)
    return NEVER;
  if (c->recheck || c->resync.more || c->verify.more)
    return c->now; /* the update was full */
  at = earlier (session_wake (c), agree_wake (c));
  at = earlier (at, requests_wake (c));
  if (c->agree.stage == STAGE_IDLE)
    at = earlier (at, c->promote_at);
  if (c->resync.paced)
    at = earlier (at, c->resync.next);
  if (c->waiting.token != 0)
    at = earlier (at, c->waiting_by);
  if (c->switchover_token != 0)
    at = earlier (at, c->leaving_since + c->config.deadline + ARBITER_GRACE);
  if (c->handover_token != 0)
    at = earlier (at, c->handover_by);
  if (c->propose_at > c->now)
    at = earlier (at, c->propose_at);
  if (c->create_token != 0)
    at = earlier (at, c->create_by);
  return at;
}

/* ---- The entry ---- */

static void
frame (struct tl_core *c, const struct tl_event *event)
{
  const struct tl_frame *f = event->frame.frame;
  const void *payload = event->frame.payload;
  uint32_t id = event->frame.id;
  struct tl_uuid uuid;
  struct tl_view view;

  if (f->type == TL_HELLO) {
    conn_hello (c, id, f, payload);
    return;
  }
  if (f->type == TL_BYE) {
    /* Only printable text reaches the log. */
    char why[200];
    size_t n = f->payload < sizeof why - 1 ? f->payload : sizeof why - 1;

    memcpy (why, payload, n);
    why[n] = '\0';
    for (size_t i = 0; i < n; i++)
      if (why[i] < ' ' || why[i] > '~')
        why[i] = '?';
    close_conn (c, id, "bye");
    conn_down (c, id, text (c, "the peer says: %s", why));
    return;
  }
  if (f->type == TL_WELCOME) {
    conn_welcome (c, id, f);
    return;
  }
  /* To drop it alone would leave a gap. */
  if (id == c->session && f->session != c->session_id)
    session_end (c, true, "frame of another session");
  if (id != c->session || c->phase == PHASE_NONE)
    return; /* of a connection or session that is over */
  c->heard = c->now;

  switch (f->type) {
  case TL_WRITE:
  case TL_ZERO:
  case TL_SYNC_BEGIN:
  case TL_SYNC_CHUNK:
  case TL_SYNC_DONE:
  case TL_VERIFY:
    target_frame (c, f, payload);
    break;
  case TL_VERIFIED:
    verify_result (c, f, payload);
    break;
  case TL_ACK:
    source_ack (c, f->sequence);
    break;
  case TL_BITMAP:
    source_bitmap (c, payload, f->payload);
    break;
  case TL_HANDOVER:
    if (f->payload == 0) {
      command_handover (c);
      break;
    }
    /* fall through */
  case TL_VIEW:
  case TL_VIEW_ACK:
    if (tl_view_decode (&uuid, &view, payload, f->payload) == -1)
      session_end (c, true, "malformed %s frame", tl_frame_name (f->type));
    else if (f->sequence != c->rx_sequence)
      session_end (c, true,
                   "%s frame behind frame %" PRIu64 " where %" PRIu64
                   " was the last",
                   tl_frame_name (f->type), f->sequence, c->rx_sequence);
    else if (f->type == TL_VIEW_ACK)
      agree_peer (c, &view);
    else
      view_told (c, f->flags, f->type == TL_HANDOVER, &uuid, &view);
    break;
  case TL_PING:
    c->proved = c->proved || !c->resync.active;
    send_frame (c, TL_PONG, 0);
    break;
  default: /* pong: it was heard */
    break;
  }
}

static void
stop (struct tl_core *c)
{
  session_end (c, true, "the node is shutting down");
  handshake_abort (c);
  c->stopped = true;
  requests_fail (c, ESHUTDOWN);
  reply (c, &c->agree.token, TL_FAILED, "the node is shutting down");
  reply (c, &c->handover_token, TL_FAILED, "the node is shutting down");
  reply (c, &c->waiting.token, TL_FAILED, "the node is shutting down");
  switchover_over (c, TL_FAILED, "the node is shutting down");
}

void
tl_core_step (struct tl_core *c, const struct tl_event *event,
              struct tl_update *update)
{
  c->now = event->now;
  c->random = event->random;
  c->out = update;
  update->n = 0;
  update->done = NULL;
  update->small_used = 0;
  update->text_used = 0;

  switch (event->type) {
  case TL_EV_START:
    c->started = true;
    c->changed = c->dial_at = c->now;
    if (c->config.auto_promote)
      c->promote_at = c->now + c->config.deadline;
    /* What was given up, and the process ended before it was cleared. */
    if (c->kept->data == TL_EMPTY && c->config.allocated->count > 0)
      act (c, TL_DO_CLEAR);
    agree_resume (c);
    break;
  case TL_EV_REQUEST:
    request (c, event->request);
    break;
  case TL_EV_CONNECTED:
    conn_up (c, event->connected.id, event->connected.dialled);
    break;
  case TL_EV_CLOSED:
    conn_down (c, event->closed.id, event->closed.reason);
    break;
  case TL_EV_FRAME:
    frame (c, event);
    break;
  case TL_EV_BATCH_END:
    target_ack (c);
    break;
  case TL_EV_STORED:
    agree_stored (c, event->stored.ok, event->stored.reason);
    break;
  case TL_EV_ANSWER:
    agree_answer (c, event);
    break;
  case TL_EV_COMMAND:
    command (c, event);
    break;
  case TL_EV_TIME:
    session_timers (c);
    agree_timers (c);
    command_timers (c);
    command_auto_promote (c);
    c->recheck = true;
    break;
  case TL_EV_STOP:
    stop (c);
    break;
  }

  if (c->leaving)
    switchover_drained (c);
  command_waiting (c);

  consider_members (c);
  if (c->recheck)
    requests_recheck (c);
  /* The write of a request is still to be carried out: until then the map of
   * what exists is not to be believed.
   */
  if (event->type != TL_EV_REQUEST) {
    source_pump (c);
    verify_pump (c);
  }
  consider_dial (c);
  update->wake = wake (c);
}
