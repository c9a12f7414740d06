/* How a view comes about: rules V1 to V3 of design.md.  Proposal stored,
 * agreed, view stored, acted on: in this order.
 */
#include "internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static void
trouble (struct tl_core *c, const char *what)
{
  if (strncmp (c->trouble, what, sizeof c->trouble - 1) == 0)
    return;
  snprintf (c->trouble, sizeof c->trouble, "%s", what);
  if (what[0] != '\0')
    say (c, "%s", what);
  changed (c);
}

/* When to try again after the state file or the arbiter failed: a few times
 * within the deadline, and once a second afterwards.
 */
static uint64_t
retry (const struct tl_core *c)
{
  uint64_t wait = c->config.deadline / 8;

  return c->now + (wait < SECOND ? wait : SECOND);
}

static void
store (struct tl_core *c)
{
  c->agree.retry_at = NEVER;
  act (c, TL_DO_STORE);
}

static void
ask (struct tl_core *c)
{
  struct tl_action *action = act (c, TL_DO_ASK);

  c->agree.stage = STAGE_ASK;
  c->agree.retry_at = NEVER;
  action->create = c->agree.before.number == 0;
  action->uuid = c->agree.uuid;
  action->before = c->agree.before;
  action->after = c->agree.view;
}

/* The view is agreed: store it. */
static void
store_view (struct tl_core *c)
{
  bool member = c->agree.kind == KIND_ADOPT
                    ? c->agree.member
                    : tl_view_has (&c->agree.view, c->node);

  c->pending = c->record;
  c->pending.uuid = c->agree.uuid;
  memset (&c->pending.proposal, 0, sizeof c->pending.proposal);
  /* A forced promotion may stand on a view that was never stored here. */
  if (c->agree.before.number > c->pending.view.number)
    tl_record_push (&c->pending, &c->agree.before);
  tl_record_push (&c->pending, &c->agree.view);
  c->pending.incarnation = member ? c->kept->incarnation : 0;
  c->agree.stage = STAGE_STORE_VIEW;
  store (c);
}

static void
idle (struct tl_core *c)
{
  c->agree.stage = STAGE_IDLE;
  c->agree.retry_at = NEVER;
  c->agree.token = 0;
  c->agree.member = c->agree.forced = c->agree.doubtful = false;
  c->agree.acknowledge = c->agree.create = c->agree.propose = false;
}

/* Give up what has not been stored or asked anywhere yet. */
void
agree_abort (struct tl_core *c, int status, const char *format, ...)
{
  char why[200];
  va_list args;

  va_start (args, format);
  vsnprintf (why, sizeof why, format, args);
  va_end (args);
  reply (c, &c->agree.token, status, "%s", why);
  if (c->agree.kind == KIND_HANDOVER)
    switchover_over (c, status, why);
  idle (c);
}

/* It came to nothing, and is tried again after a while, if it is still wanted
 * then.
 */
static void
put_off (struct tl_core *c, const char *why)
{
  bool promotion = c->agree.kind == KIND_PROMOTE;

  agree_abort (c, TL_FAILED, "%s", why);
  c->propose_at = retry (c);
  if (promotion && c->config.auto_promote)
    c->promote_at = c->propose_at;
}

/* Begin to agree VIEW, the successor of what this node has stored. */
void
agree (struct tl_core *c, enum kind kind, const struct tl_view *view,
       const struct tl_uuid *uuid)
{
  handshake_abort (c);
  idle (c);
  c->agree.kind = kind;
  c->agree.before = c->record.view;
  c->agree.view = *view;
  c->agree.uuid = *uuid;
  if (!c->config.arbiter) {
    if ((kind == KIND_PROMOTE || kind == KIND_CREATE) &&
        c->phase != PHASE_NONE) {
      c->agree.stage = STAGE_ASK_PEER;
      send_view (c, TL_VIEW,
                 kind == KIND_CREATE ? TL_PROPOSE | TL_CREATE : TL_PROPOSE,
                 uuid, view);
    } else {
      store_view (c);
    }
    return;
  }
  c->pending = c->record;
  c->pending.proposal = *view;
  c->agree.stage = STAGE_STORE_PROPOSAL;
  store (c);
}

/* Begin to agree the successor of our view with PRIMARY and MEMBER (NULL: the
 * primary alone).
 */
void
agree_next (struct tl_core *c, enum kind kind, const char *primary,
            const char *member)
{
  struct tl_view view;

  tl_view_next (&view, &c->record.view, random_id (c), primary, member);
  agree (c, kind, &view, &c->record.uuid);
}

/* A node starts whose RAM was kept.  V3: a proposal whose outcome it does not
 * know is asked again, before anything else.  V7: a lone primary resumes.
 */
void
agree_resume (struct tl_core *c)
{
  const struct tl_view *proposal = &c->record.proposal;

  if (c->record.view.number == 1 && c->kept->data == TL_EMPTY &&
      c->record.incarnation == c->kept->incarnation &&
      strcmp (c->record.view.primary, c->node) == 0) {
    /* Its create was stored, and the process ended before it acted. */
    make_blank (c, TL_COMPLETE);
    become_primary (c);
    return;
  }
  if (!is_member (c))
    return;
  if (proposal->number == 0) {
    if (alone (c))
      become_primary (c);
    return;
  }
  idle (c);
  if (strcmp (proposal->primary, c->node) != 0)
    c->agree.kind = KIND_HANDOVER;
  else
    c->agree.kind = proposal->n_members == 1 ? KIND_PROMOTE : KIND_JOIN;
  c->agree.before = c->record.view;
  c->agree.view = *proposal;
  c->agree.uuid = c->record.uuid;
  c->agree.doubtful = true;
  ask (c);
}

/* Store a record that says less, of the kinds that concern no view. */
void
agree_record (struct tl_core *c, enum kind kind)
{
  handshake_abort (c);
  idle (c);
  c->agree.kind = kind;
  c->pending = c->record;
  if (kind == KIND_DISCARD) {
    memset (&c->pending, 0, sizeof c->pending);
    memcpy (c->pending.volume, c->volume, sizeof c->volume);
    memcpy (c->pending.node, c->node, sizeof c->node);
    c->pending.size = c->config.size;
  }
  c->pending.peer[0] = '\0';
  c->pending.peer_view = 0;
  c->agree.stage = STAGE_STORE_VIEW;
  store (c);
}

/* Store a view that was agreed elsewhere. */
void
agree_adopt (struct tl_core *c, const struct tl_uuid *uuid,
             const struct tl_view *view, bool member)
{
  handshake_abort (c);
  idle (c);
  c->agree.kind = KIND_ADOPT;
  memset (&c->agree.before, 0, sizeof c->agree.before);
  c->agree.view = *view;
  c->agree.uuid = *uuid;
  c->agree.member = member;
  store_view (c);
}

/* A view came in while another was being stored. */
static void
next_told (struct tl_core *c)
{
  if (!c->told.waiting || c->agree.stage != STAGE_IDLE)
    return;
  c->told.waiting = false;
  view_told (c, c->told.flags, c->told.handover, &c->told.uuid, &c->told.view);
}

/* What could not be stored may be durable all the same: the record as it is
 * goes over it before anything else is agreed, or a connection made.
 */
static void
undo (struct tl_core *c)
{
  handshake_abort (c);
  c->agree.kind = KIND_UNDO;
  c->pending = c->record;
  c->agree.stage = STAGE_STORE_VIEW;
  c->agree.retry_at = retry (c);
}

void
agree_stored (struct tl_core *c, bool ok, const char *reason)
{
  /* Nobody was asked yet, and nobody told. */
  bool nowhere = c->agree.stage == STAGE_STORE_PROPOSAL ||
                 c->agree.kind == KIND_FORGET ||
                 c->agree.kind == KIND_DISCARD ||
                 (!c->config.arbiter && (c->agree.kind == KIND_PROMOTE ||
                                         c->agree.kind == KIND_CREATE ||
                                         c->agree.kind == KIND_HANDOVER));

  assert (c->agree.stage == STAGE_STORE_PROPOSAL ||
          c->agree.stage == STAGE_STORE_VIEW);
  if (!ok) {
    trouble (c, text (c, "the state file cannot be written: %s", reason));
    if (!nowhere) {
      c->agree.retry_at = retry (c);
    } else {
      bool view = c->agree.stage == STAGE_STORE_VIEW;

      put_off (c, c->trouble);
      if (view)
        undo (c);
    }
    return;
  }
  trouble (c, "");
  if (c->agree.kind != KIND_FORGET && c->agree.kind != KIND_DISCARD) {
    /* What the peer told meanwhile. */
    memcpy (c->pending.peer, c->record.peer, sizeof c->pending.peer);
    c->pending.peer_view = c->record.peer_view;
  }
  c->record = c->pending;
  if (c->agree.stage == STAGE_STORE_PROPOSAL) {
    ask (c);
    return;
  }
  c->agree.stage = STAGE_IDLE;
  acted (c);
  /* Acting may have begun to agree the next view. */
  if (c->agree.stage == STAGE_IDLE)
    idle (c);
  next_told (c);
}

/* ---- The arbiter's answer ---- */

static void
unknown (struct tl_core *c, const char *why)
{
  trouble (c, text (c, "arbiter: %s", why));
  c->agree.doubtful = true;
  c->agree.retry_at = retry (c);
}

/* It has no record that ours could follow.  That is an answer: this try made
 * no swap, and where no earlier one is in doubt the proposal is over.  The
 * pair may connect again meanwhile.
 */
static void
astray (struct tl_core *c, const char *why)
{
  if (c->agree.doubtful) {
    unknown (c, why);
    return;
  }
  trouble (c, text (c, "arbiter: %s", why));
  put_off (c, c->trouble);
}

/* The arbiter is past our view. */
static void
overtaken (struct tl_core *c, const struct tl_view *winner)
{
  bool child = winner->parent == c->record.view.id && is_member (c) &&
               tl_view_has (winner, c->node);
  struct tl_uuid uuid = c->agree.uuid;
  struct tl_view view = *winner;

  if (c->agree.forced) {
    /* Whatever it is, the operator overrules it. */
    c->agree.before = view;
    tl_view_next (&c->agree.view, &view, random_id (c), c->node, NULL);
    ask (c);
    return;
  }
  trouble (c, "");
  if (child && strcmp (view.primary, c->node) == 0) {
    /* A handover that was never told: answer once it is stored. */
    c->handover_token = c->agree.token;
    c->handover_by = c->agree.give_up;
    c->agree.token = 0;
  }
  reply (c, &c->agree.token, TL_REFUSED,
         "the arbiter is at view %" PRIu64 " with primary %s: this copy was "
         "overtaken",
         view.number, view.primary);
  session_end (c, true, "overtaken at the arbiter");
  step_down (c, text (c, "the arbiter is at view %" PRIu64 " with primary %s",
                      view.number, view.primary));
  switchover_over (c, TL_FAILED, "overtaken at the arbiter");
  agree_adopt (c, &uuid, &view, child);
}

void
agree_answer (struct tl_core *c, const struct tl_event *event)
{
  const struct tl_view *winner = &event->answer.view;

  assert (c->agree.stage == STAGE_ASK && c->agree.retry_at == NEVER);
  switch (event->answer.result) {
  case TL_ANSWER_DONE:
    break;
  case TL_ANSWER_UNKNOWN:
    unknown (c,
             event->answer.reason != NULL ? event->answer.reason : "no answer");
    return;
  case TL_ANSWER_LOST:
    if (!event->answer.known) {
      astray (c, "it has no record of this volume");
      return;
    }
    if (tl_uuid_equal (&event->answer.uuid, &c->agree.uuid) &&
        tl_view_equal (winner, &c->agree.view))
      break; /* an earlier try of ours had won */
    if (c->agree.kind == KIND_CREATE &&
        tl_view_equal (winner, &c->agree.view)) {
      /* It was asked before a restart, under another UUID. */
      c->agree.uuid = event->answer.uuid;
      break;
    }
    if (c->agree.kind == KIND_CREATE) {
      reply (c, &c->agree.token, TL_REFUSED,
             "the arbiter knows this volume already, at view %" PRIu64,
             winner->number);
      idle (c);
      return;
    }
    if (!tl_uuid_equal (&event->answer.uuid, &c->agree.uuid)) {
      astray (c, "its record is of another volume");
      return;
    }
    if (winner->number <= c->record.view.number && !c->agree.forced) {
      astray (c, "its record is older than the view of this node");
      return;
    }
    overtaken (c, winner);
    return;
  }
  trouble (c, "");
  store_view (c);
}

/* ---- The peer's ---- */

/* The peer has stored VIEW. */
void
agree_peer (struct tl_core *c, const struct tl_view *view)
{
  if (c->agree.stage == STAGE_ASK_PEER) {
    if (tl_view_equal (view, &c->agree.view))
      store_view (c);
    return;
  }
  if (!tl_view_equal (view, &c->record.view))
    return; /* a newer one is on its way */
  c->peer.view = *view;
  c->record.peer_view = view->id;
  c->connected_view = view->id;
  if (c->creating) {
    c->creating = false;
    c->peer.data = TL_COMPLETE;
    c->peer_member = true;
    c->kept->map_incarnation = c->peer.incarnation;
    reply (c, &c->create_token, TL_DONE, "created, with two copies");
  }
  c->peer_stored = c->peer_member;
  c->recheck = true;
  changed (c);
}

void
agree_session_lost (struct tl_core *c)
{
  if (c->agree.stage == STAGE_ASK_PEER)
    agree_abort (c, TL_FAILED,
                 "the peer went away before it agreed: try again");
}

/* ---- Time ---- */

void
agree_timers (struct tl_core *c)
{
  if (c->agree.token != 0 && c->now >= c->agree.give_up) {
    if (c->agree.stage == STAGE_ASK_PEER)
      session_end (c, true, "the peer did not agree within the deadline");
    reply (c, &c->agree.token, TL_TIMED_OUT,
           "not agreed within the deadline%s%s: the node goes on trying",
           c->trouble[0] != '\0' ? ": " : "", c->trouble);
  }
  if (c->agree.retry_at > c->now)
    return;
  if (c->agree.stage == STAGE_ASK)
    ask (c);
  else if (c->agree.stage == STAGE_STORE_PROPOSAL ||
           c->agree.stage == STAGE_STORE_VIEW)
    store (c);
}

uint64_t
agree_wake (const struct tl_core *c)
{
  uint64_t at = c->agree.retry_at;

  if (c->agree.token != 0 && c->agree.give_up < at)
    at = c->agree.give_up;
  return at;
}
