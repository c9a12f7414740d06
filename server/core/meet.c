/* What two nodes make of each other: rules V4, V5, V7 and V8 of design.md. */
#include "internal.h"

#include <errno.h>
#include <inttypes.h>

/* Why a hello is refused, or NULL. */
const char *
meet_refuse (struct tl_core *c, const struct tl_hello *hello)
{
  if (hello->version_min > TL_PROTOCOL_MAX ||
      hello->version_max < TL_PROTOCOL_MIN)
    return text (c,
                 "protocol versions %" PRIu32 " to %" PRIu32
                 " there, %u to %u here: no common one, update the older node",
                 hello->version_min, hello->version_max, TL_PROTOCOL_MIN,
                 TL_PROTOCOL_MAX);
  if (strcmp (hello->volume, c->volume) != 0)
    return text (c, "volume %s there, %s here: name= must be the same",
                 hello->volume, c->volume);
  if (strcmp (hello->node, c->node) == 0)
    return text (c, "both nodes are called %s: node= must differ", c->node);
  if (hello->size != c->config.size)
    return text (
        c, "size %" PRIu64 " there, %" PRIu64 " here: size= must be the same",
        hello->size, c->config.size);
  if (hello->arbiter != c->config.arbiter)
    return text (c,
                 "%s has an arbiter, %s has none: arbiter= must be given "
                 "on both nodes or on none",
                 hello->arbiter ? hello->node : c->node,
                 hello->arbiter ? c->node : hello->node);
  if (!tl_uuid_zero (&hello->uuid) && !tl_uuid_zero (&c->record.uuid) &&
      !tl_uuid_equal (&hello->uuid, &c->record.uuid))
    return "another volume of the same name: its UUID differs";
  if (c->record.peer[0] != '\0' && strcmp (c->record.peer, hello->node) != 0)
    return text (c, "the partner of %s is node %s, not %s", c->node,
                 c->record.peer, hello->node);
  return NULL;
}

static bool
record_has (const struct tl_record *record, uint64_t id)
{
  if (record->view.id == id || record->view.parent == id)
    return true;
  for (unsigned i = 0; i < record->n_history; i++)
    if (record->history[i].id == id)
      return true;
  return false;
}

static bool
hello_has (const struct tl_hello *hello, uint64_t id)
{
  if (hello->view.id == id || hello->view.parent == id)
    return true;
  for (unsigned i = 0; i < hello->n_past; i++)
    if (hello->past[i].id == id)
      return true;
  return false;
}

/* How our view stands to the peer's.  A handover that only its giver has stored
 * counts for nothing: the one it names primary, who alone could have
 * acknowledged in it, never knew.
 */
static enum tl_order
order (const struct tl_core *c, const struct tl_hello *hello)
{
  const struct tl_view *ours = &c->record.view, *theirs = &hello->view;
  enum tl_order order =
      tl_view_compare (&c->record, theirs, hello->past, hello->n_past);

  if (order != TL_DIVERGED)
    return order;
  if (c->role != TL_PRIMARY && ours->parent != 0 &&
      strcmp (ours->primary, hello->node) == 0 &&
      hello_has (hello, ours->parent))
    return TL_BEHIND;
  if (hello->role != TL_PRIMARY && theirs->parent != 0 &&
      strcmp (theirs->primary, c->node) == 0 &&
      record_has (&c->record, theirs->parent))
    return TL_AHEAD;
  return TL_DIVERGED;
}

/* Have both nodes data that the other never had? */
bool
meet_split (const struct tl_core *c, const struct tl_hello *hello)
{
  return order (c, hello) == TL_DIVERGED && c->kept->data == TL_COMPLETE &&
         hello->data == TL_COMPLETE;
}

void
become_primary (struct tl_core *c)
{
  c->role = TL_PRIMARY;
  c->epoch++;
  c->demoted = false;
  c->lost_at = 0;
  c->connected_view = c->record.view.id; /* nobody else acknowledges in it */
  c->counters.promotions++;
  c->recheck = true;
  changed (c);
  say (c, "Primary in view %" PRIu64 "%s", c->record.view.number,
       alone (c) ? ", with the ONLY copy of the data" : "");
  if (c->phase == PHASE_NONE) {
    handshake_abort (c); /* our hello said Secondary */
  } else {
    source_wait (c);
    send_view (c, TL_VIEW, 0, &c->record.uuid, &c->record.view);
  }
}

/* V7: fail all that waits before anything else is applied. */
void
step_down (struct tl_core *c, const char *why)
{
  if (c->role != TL_PRIMARY)
    return;
  c->role = TL_SECONDARY;
  c->lost_at = 0;
  c->leaving = false;
  verify_interrupted (c);
  changed (c);
  if (c->phase == PHASE_NONE)
    handshake_abort (c); /* our hello said Primary */
  requests_fail (c, ESHUTDOWN);
  say (c, "Secondary: %s", why);
}

/* Both views are the same now: does the peer's copy count? */
static void
confirm (struct tl_core *c)
{
  bool same = c->peer.view.number != 0 && c->peer.view.id == c->record.view.id;

  c->peer_member = same && c->peer.member && c->peer.data == TL_COMPLETE &&
                   tl_view_has (&c->record.view, c->peer.node);
  c->peer_stored = c->peer_member;
  if (!same)
    return;
  c->record.peer_view = c->record.view.id;
  if (is_member (c)) {
    c->connected_view = c->record.view.id;
    /* Two complete members differ only in what is on the way. */
    if (c->peer_member)
      c->kept->map_incarnation = c->peer.incarnation;
  }
}

/* The dirty blocks as at most TL_RUNS_MAX runs; where there are more, clean
 * gaps are taken in, which only copies more.
 */
static unsigned
dirty_runs (const struct tl_map *map, struct tl_run *runs)
{
  for (uint64_t gap = 0;; gap = gap * 2 + 1) {
    uint64_t at = tl_map_next (map, 0, true);
    unsigned n = 0;

    while (at < map->blocks) {
      uint64_t end = at + tl_map_run (map, at, map->blocks);

      if (n > 0 && at - (runs[n - 1].first + runs[n - 1].count) <= gap) {
        runs[n - 1].count = end - runs[n - 1].first;
      } else {
        if (n == TL_RUNS_MAX)
          break;
        runs[n++] = (struct tl_run){.first = at, .count = end - at};
      }
      at = end < map->blocks ? tl_map_next (map, end, true) : end;
    }
    if (at >= map->blocks)
      return n;
  }
}

/* Become the target of a peer that is primary, and say so, with the blocks
 * that may differ here.
 */
void
target_ready (struct tl_core *c)
{
  struct tl_run runs[TL_RUNS_MAX];
  struct tl_action *action;
  void *bytes = small (c);
  size_t length;

  c->phase = PHASE_TARGET;
  c->session_view = c->record.view.number;
  length = tl_runs_encode (runs, dirty_runs (&c->dirty, runs), bytes);
  action = send_frame (c, TL_BITMAP, 0);
  action->payload = TL_PAYLOAD_SMALL;
  action->small = bytes;
  action->frame.payload = (uint32_t)length;
  action->frame.checksum = tl_payload_checksum (bytes, length);
  changed (c);
}

/* V2: does an ordinary successor of our view leave us a member that has every
 * acknowledged write?  Only if we were one and no view lies between.
 */
static bool
stays_member (const struct tl_core *c, const struct tl_view *view)
{
  return is_member (c) && view->parent == c->record.view.id &&
         tl_view_has (view, c->node);
}

/* A session has begun, or the view that the peer's hello told is stored. */
void
meet (struct tl_core *c)
{
  const struct tl_view *theirs = &c->peer.view;
  bool serving = c->peer.role == TL_PRIMARY;

  confirm (c);
  if (c->record.view.number == 0 && !serving) {
    /* V3: without a record this node confirms nothing.  It stores a view once
     * there is a primary to be filled from.
     */
    c->phase = PHASE_IDLE;
    return;
  }
  switch (order (c, &c->peer)) {
  case TL_DIVERGED:
    c->diverged = true;
    if (c->kept->data == TL_COMPLETE || !serving)
      break;
    /* Nothing is lost here: take what the primary has. */
    /* fall through */
  case TL_BEHIND:
    step_down (c, text (c, "view %" PRIu64 " of node %s is newer than ours",
                        theirs->number, c->peer.node));
    agree_adopt (c, &c->peer.uuid, theirs, stays_member (c, theirs));
    c->phase = serving ? PHASE_TARGET_WAIT : PHASE_IDLE;
    return;
  case TL_SAME:
    if (c->role == TL_PRIMARY || !serving)
      break;
    target_ready (c);
    return;
  case TL_AHEAD:
    /* A peer that is behind steps down before it does anything else. */
    c->peer.role = TL_SECONDARY;
    serving = false;
    break;
  }

  if (c->role == TL_PRIMARY) {
    source_wait (c);
  } else {
    c->phase = PHASE_IDLE;
    /* V7: the view's primary takes a hello at an equal view. */
    if (!serving && !c->demoted && c->peer_member && is_member (c) &&
        strcmp (c->record.view.primary, c->node) == 0)
      become_primary (c);
  }
}

/* The peer wants to create the volume.  Of two that want to at once, the one
 * with the lower name does.  Nothing is stored yet.
 */
static void
create_asked (struct tl_core *c, const struct tl_uuid *uuid,
              const struct tl_view *view)
{
  bool both = c->agree.stage == STAGE_ASK_PEER && c->agree.kind == KIND_CREATE;

  if (both && strcmp (c->node, c->peer.node) < 0)
    return;
  if (both)
    agree_abort (c, TL_FAILED, "node %s creates the volume at the same time",
                 c->peer.node);
  if (c->record.view.number != 0 || c->kept->data != TL_EMPTY ||
      c->agree.stage != STAGE_IDLE) {
    session_end (c, true, "asked to create a volume that exists");
    return;
  }
  c->yielded = c->now + c->config.deadline;
  send_view (c, TL_VIEW_ACK, 0, uuid, view);
}

/* The peer, as primary, tells a view; or asks, with TL_PROPOSE, to store the
 * one that will make it primary.
 */
void
view_told (struct tl_core *c, uint8_t flags, bool handover,
           const struct tl_uuid *uuid, const struct tl_view *view)
{
  bool create = flags & TL_CREATE, member;

  if (create && (flags & TL_PROPOSE)) {
    create_asked (c, uuid, view);
    return;
  }

  if (c->agree.stage != STAGE_IDLE) {
    if (c->agree.kind != KIND_ADOPT || c->told.waiting) {
      session_end (c, true, "told a view while another is being agreed");
      return;
    }
    c->told.waiting = true;
    c->told.handover = handover;
    c->told.flags = flags;
    c->told.uuid = *uuid;
    c->told.view = *view;
    c->session_view = view->number;
    return;
  }
  if (c->role == TL_PRIMARY ||
      strcmp (view->primary, handover ? c->node : c->peer.node) != 0 ||
      (!tl_uuid_zero (&c->record.uuid) &&
       !tl_uuid_equal (uuid, &c->record.uuid)) ||
      (create && (c->record.view.number != 0 || c->kept->data != TL_EMPTY))) {
    session_end (c, true, "told a view that cannot be ours");
    return;
  }
  c->session_view = view->number;
  if (tl_view_equal (view, &c->record.view)) {
    /* The peer acts as the primary that this view names. */
    c->peer.view = *view;
    c->record.peer_view = view->id;
    if (is_member (c))
      c->connected_view = view->id;
    c->peer.role = TL_PRIMARY;
    c->peer.data = TL_COMPLETE;
    switchover_over (c, TL_DONE, NULL);
    send_view (c, TL_VIEW_ACK, 0, &c->record.uuid, view);
    if (c->phase != PHASE_TARGET)
      target_ready (c);
    return;
  }
  if (view->number <= c->record.view.number && c->kept->data == TL_COMPLETE) {
    session_end (c, true, "told a view that is older than ours");
    return;
  }
  if ((flags & TL_PROPOSE) && (is_member (c) || c->record.view.number == 0)) {
    session_end (c, true,
                 is_member (c) ? "asked to give up a copy that is complete"
                               : "asked to confirm without a record");
    return;
  }
  /* V4: a target becomes a member in the session of its resync only. */
  member = tl_view_has (view, c->node) &&
           (create || (c->kept->data == TL_COMPLETE && c->resynced) ||
            stays_member (c, view));
  agree_adopt (c, uuid, view, member);
  c->agree.acknowledge = true;
  c->agree.create = create;
  c->agree.propose = flags & TL_PROPOSE;
}
