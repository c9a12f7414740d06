/* What happens once a view is stored, by the reason why it was agreed. */
#include "internal.h"

#include <inttypes.h>

/* Zeroes everywhere, which count as DATA, and of which no peer is known to have
 * a copy.
 */
void
make_blank (struct tl_core *c, enum tl_data data)
{
  act (c, TL_DO_CLEAR);
  tl_map_clear (&c->dirty, 0, c->dirty.blocks);
  c->kept->map_incarnation = 0;
  c->kept->data = data;
}

static void
acted_create (struct tl_core *c)
{
  make_blank (c, TL_COMPLETE);
  c->role = TL_PRIMARY;
  c->connected_view = c->record.view.id;
  c->epoch++;
  c->demoted = false;
  c->recheck = true;
  say (c, "created: Primary in view 1%s",
       alone (c) ? ", with the ONLY copy of the data" : "");
  if (c->phase == PHASE_NONE) {
    reply (c, &c->agree.token, TL_DONE,
           alone (c) ? "created, with one copy"
                     : "created; the partner joins when it is back");
    return;
  }
  source_wait (c);
  if (alone (c)) {
    reply (c, &c->agree.token, TL_DONE, "created, with one copy");
    send_view (c, TL_VIEW, 0, &c->record.uuid, &c->record.view);
    return;
  }
  c->creating = true;
  c->create_token = c->agree.token;
  c->create_by = c->agree.give_up;
  send_view (c, TL_VIEW, TL_CREATE, &c->record.uuid, &c->record.view);
}

static void
acted_promote (struct tl_core *c)
{
  session_end (c, true, "promoted");
  if (c->agree.forced) {
    /* What the store holds becomes the data, and nobody's copy equals it. */
    if (c->kept->data == TL_EMPTY)
      act (c, TL_DO_CLEAR);
    c->kept->data = TL_COMPLETE;
    c->kept->map_incarnation = 0;
  }
  become_primary (c);
  reply (c, &c->agree.token, TL_DONE, "Primary in view %" PRIu64,
         c->record.view.number);
}

static void
acted_adopt (struct tl_core *c)
{
  if (c->agree.create) {
    make_blank (c, TL_COMPLETE);
    c->kept->map_incarnation = c->peer.incarnation;
  }
  if (c->phase == PHASE_NONE) {
    /* Found at the arbiter: the child of our own view that names us. */
    if (is_member (c) && strcmp (c->record.view.primary, c->node) == 0 &&
        (!c->demoted || c->handover_token != 0))
      become_primary (c);
    reply (c, &c->handover_token, c->role == TL_PRIMARY ? TL_DONE : TL_FAILED,
           "%s in view %" PRIu64, tl_role_name (c->role),
           c->record.view.number);
    return;
  }
  if (is_member (c))
    c->connected_view = c->record.view.id;
  if (c->agree.acknowledge) {
    c->record.peer_view = c->record.view.id;
    send_view (c, TL_VIEW_ACK, 0, &c->record.uuid, &c->record.view);
    if (strcmp (c->record.view.primary, c->peer.node) == 0) {
      if (c->agree.propose)
        return; /* the peer stores it too, and ends the session */
      c->peer.role = TL_PRIMARY;
      c->peer.data = TL_COMPLETE;
      if (c->phase != PHASE_TARGET)
        target_ready (c);
    } else if (is_member (c) && strcmp (c->record.view.primary, c->node) == 0) {
      /* Handed over: the peer has stored this and stepped down. */
      c->peer.view = c->record.view;
      c->peer.member = 1;
      c->peer.role = TL_SECONDARY;
      c->peer_member = c->peer_stored = true;
      reply (c, &c->handover_token, TL_DONE, "Primary in view %" PRIu64,
             c->record.view.number);
      become_primary (c);
    }
    return;
  }
  /* The view that the peer's hello told. */
  if (c->phase == PHASE_TARGET_WAIT)
    target_ready (c);
  else
    meet (c);
}

/* What this node has is given up: it is as if it had never been a member. */
static void
acted_discard (struct tl_core *c)
{
  step_down (c, "its data is discarded");
  make_blank (c, TL_EMPTY);
  c->connected_view = 0;
  c->standalone = false;
  c->dial_at = c->now;
  say (c, "discarded: Empty, to be filled from the other node");
  reply (c, &c->agree.token, TL_DONE, "Empty, to be filled from the other");
}

/* The target has the data.  V4: it is a member once it was told so in this
 * session; if that is over, a view without it comes next.
 */
static void
acted_join (struct tl_core *c)
{
  const struct tl_view *view = &c->record.view;

  c->recheck = true;
  if (c->phase == PHASE_NONE) {
    c->lost_at = c->now;
    agree_next (c, KIND_REMOVE, c->node, NULL);
    return;
  }
  c->peer_member = true; /* complete through the resync of this session */
  say (c, "view %" PRIu64 ": node %s is a member", view->number, c->peer.node);
  send_view (c, TL_VIEW, 0, &c->record.uuid, view);
}

void
acted (struct tl_core *c)
{
  const struct tl_view *view = &c->record.view;

  changed (c);
  if (c->role == TL_PRIMARY)
    c->connected_view = view->id; /* nobody else acknowledges in it */
  if (alone (c))
    c->lost_at = 0;
  switch (c->agree.kind) {
  case KIND_CREATE:
    acted_create (c);
    break;
  case KIND_ALONE:
    c->recheck = true;
    say (c, "view %" PRIu64 ": going on alone, this is the ONLY copy",
         view->number);
    reply (c, &c->agree.token, TL_DONE, "alone in view %" PRIu64, view->number);
    break;
  case KIND_PROMOTE:
    acted_promote (c);
    break;
  case KIND_JOIN:
    acted_join (c);
    break;
  case KIND_REMOVE:
    c->recheck = true;
    if (c->role != TL_PRIMARY)
      become_primary (c); /* it resumes after a restart */
    say (c,
         "view %" PRIu64 ": node %s is no member until it is resynced; "
         "this is the ONLY copy",
         view->number, c->peer.node[0] != '\0' ? c->peer.node : "the partner");
    if (c->phase != PHASE_NONE)
      send_view (c, TL_VIEW, 0, &c->record.uuid, view);
    break;
  case KIND_HANDOVER:
    step_down (c, "handed over");
    if (c->phase == PHASE_NONE) {
      switchover_over (c, TL_FAILED,
                       "the connection ended: promote the peer there");
      break;
    }
    c->phase = PHASE_IDLE;
    send_view (c, TL_HANDOVER, 0, &c->record.uuid, view);
    break;
  case KIND_UNDO:
    break;
  case KIND_FORGET:
    say (c, "the peer is forgotten: another may connect");
    reply (c, &c->agree.token, TL_DONE, "another peer may connect");
    break;
  case KIND_DISCARD:
    acted_discard (c);
    break;
  case KIND_ADOPT:
    acted_adopt (c);
    break;
  }
}
