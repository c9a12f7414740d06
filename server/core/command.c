/* Commands of an operator or a cluster engine. */
#include "internal.h"

#include <inttypes.h>
#include <stdio.h>

/* When a command is answered at the latest. */
static uint64_t
give_up (const struct tl_core *c)
{
  return c->now + c->config.deadline + ARBITER_GRACE;
}

/* ---- create ---- */

static void
create (struct tl_core *c, const struct tl_event *event, uint64_t *token)
{
  bool single = event->command.flags & TL_ALONE;
  struct tl_view view;

  if (c->record.view.number != 0) {
    reply (c, token, TL_REFUSED,
           "volume %s exists already, at view %" PRIu64
           ": creating it anew would drop its data",
           c->volume, c->record.view.number);
    return;
  }
  if (c->kept->data != TL_EMPTY) {
    reply (c, token, TL_REFUSED,
           "this RAM holds data of a volume whose state file is missing: put "
           "the state file back, or remove the store to give the data up");
    return;
  }
  if (c->phase != PHASE_NONE && c->peer.view.number != 0) {
    reply (c, token, TL_REFUSED,
           "node %s knows volume %s, at view %" PRIu64
           ": this node is filled from it",
           c->peer.node, c->volume, c->peer.view.number);
    return;
  }
  if (c->phase == PHASE_NONE && !single) {
    reply (c, token, TL_FAILED,
           "the peer is not connected: wait for it, or create --alone");
    return;
  }
  if (c->phase != PHASE_NONE && c->now < c->yielded) {
    reply (c, token, TL_FAILED, "node %s creates the volume at the same time",
           c->peer.node);
    return;
  }
  /* V3: one that the arbiter was asked for before a restart is asked again. */
  if (c->record.proposal.number != 0)
    view = c->record.proposal;
  else
    tl_view_next (&view, &c->record.view, random_id (c), c->node,
                  single ? NULL : c->peer.node);
  agree (c, KIND_CREATE, &view, &event->command.uuid);
  c->agree.token = *token;
  c->agree.give_up = give_up (c);
}

/* ---- promote ---- */

/* May this node be promoted?  A status code, and in WHY the reason. */
int
promote_check (const struct tl_core *c, unsigned flags, char *why,
               size_t why_size)
{
  bool force = flags & TL_FORCE;
  bool session = c->phase != PHASE_NONE;

  if (c->role == TL_PRIMARY) {
    snprintf (why, why_size, "it is Primary already");
    return TL_DONE;
  }
  if (c->record.view.number == 0) {
    snprintf (why, why_size, "the volume was not created: use create");
    return TL_REFUSED;
  }
  if (c->agree.stage != STAGE_IDLE) {
    snprintf (why, why_size, "a view is just being agreed%s%s",
              c->trouble[0] != '\0' ? ": " : "", c->trouble);
    return TL_FAILED;
  }
  if (session && c->peer.role == TL_PRIMARY) {
    snprintf (why, why_size,
              "node %s is Primary and connected: use switchover there",
              c->peer.node);
    return TL_REFUSED;
  }
  if (session && !is_member (c) && c->peer.member &&
      c->peer.view.number >= c->record.view.number) {
    snprintf (why, why_size,
              "node %s is connected and has the data: promote it there",
              c->peer.node);
    return TL_REFUSED;
  }
  if (force) {
    why[0] = '\0';
    return TL_DONE;
  }
  if (c->kept->data != TL_COMPLETE) {
    snprintf (why, why_size,
              "its data is %s: promote the node that has the data, or wait "
              "for the resync",
              tl_disk_name (c->kept->data == TL_EMPTY ? TL_DISK_EMPTY
                                                      : TL_DISK_INCONSISTENT));
    return TL_REFUSED;
  }
  if (!is_member (c) || (session && c->diverged)) {
    snprintf (why, why_size,
              "its data is Outdated: acknowledged writes exist in view %" PRIu64
              " that it never had",
              c->record.view.number);
    return TL_REFUSED;
  }
  why[0] = '\0';
  if (c->config.arbiter || alone (c))
    return TL_DONE;
  /* A peer that knows a view of this volume confirms that there is none
   * beyond ours.
   */
  if (session && c->peer.view.number != 0)
    return TL_DONE;
  if (!(flags & TL_FENCED)) {
    snprintf (why, why_size,
              "its data is Consistent, but the other node may be alive and "
              "acknowledging: power it off, then promote --fenced");
    return TL_REFUSED;
  }
  if (c->connected_view != c->record.view.id) {
    snprintf (why, why_size,
              "it was not connected in view %" PRIu64
              " since it started, so it cannot know that it has everything",
              c->record.view.number);
    return TL_REFUSED;
  }
  return TL_DONE;
}

static void
promote_view (struct tl_core *c, uint64_t token, bool forced)
{
  struct tl_view view;

  tl_view_next (&view, &c->record.view, random_id (c), c->node, NULL);
  agree (c, KIND_PROMOTE, &view, &c->record.uuid);
  c->agree.forced = forced;
  c->agree.token = token;
  c->agree.give_up = give_up (c);
}

static void
promote (struct tl_core *c, const struct tl_event *event, uint64_t *token)
{
  unsigned flags = event->command.flags;
  bool force = false;
  char why[256];
  int status;

  if (c->role == TL_PRIMARY) {
    reply (c, token, TL_DONE, "Primary in view %" PRIu64,
           c->record.view.number);
    return;
  }
  /* Force is used only where nothing less will do. */
  status = promote_check (c, flags & ~TL_FORCE, why, sizeof why);
  if (status != TL_DONE && (flags & TL_FORCE)) {
    force = true;
    status = promote_check (c, flags, why, sizeof why);
  }
  if (status != TL_DONE) {
    reply (c, token, status, "node %s cannot be promoted: %s", c->node, why);
    return;
  }
  if (force) {
    say (c, "promoted by force: acknowledged writes may be missing");
    if (c->phase != PHASE_NONE)
      session_end (c, true, "promoted by force");
    promote_view (c, *token, true);
    return;
  }
  if (c->phase != PHASE_NONE && c->peer_member &&
      strcmp (c->record.view.primary, c->node) != 0) {
    /* The peer, which stepped down, has a complete copy too. */
    send_frame (c, TL_HANDOVER, 0);
    c->handover_token = *token;
    c->handover_by = give_up (c);
    return;
  }
  if ((c->phase != PHASE_NONE && c->peer_member) || alone (c)) {
    /* The view that it stepped down in still names it. */
    become_primary (c);
    reply (c, token, TL_DONE, "Primary in view %" PRIu64,
           c->record.view.number);
    return;
  }
  /* A peer without a record cannot agree; the operator's word stands. */
  if (c->phase != PHASE_NONE && !c->config.arbiter && c->peer.view.number == 0)
    session_end (c, true, "promoted");
  promote_view (c, *token, false);
}

/* A secondary has been without its primary for the deadline.  Only the arbiter
 * lets it, and a primary that lives has asked before.
 */
void
command_auto_promote (struct tl_core *c)
{
  char why[256];

  if (c->now < c->promote_at || c->phase != PHASE_NONE ||
      c->agree.stage != STAGE_IDLE)
    return;
  c->promote_at = NEVER;
  if (c->role == TL_PRIMARY || c->demoted || !c->config.arbiter ||
      promote_check (c, 0, why, sizeof why) != TL_DONE)
    return;
  say (c, "without its primary for the deadline: asking to be promoted");
  if (alone (c))
    become_primary (c);
  else
    promote_view (c, 0, false);
}

/* The peer asks to be given the primary role. */
void
command_handover (struct tl_core *c)
{
  struct tl_view view;

  if (c->role == TL_PRIMARY || c->phase != PHASE_IDLE || !is_member (c) ||
      !c->peer_member || c->agree.stage != STAGE_IDLE) {
    session_end (c, true, "node %s cannot hand over now", c->node);
    return;
  }
  tl_view_next (&view, &c->record.view, random_id (c), c->peer.node, c->node);
  agree (c, KIND_HANDOVER, &view, &c->record.uuid);
}

/* ---- switchover ---- */

static bool
clients_attached (struct tl_core *c, const struct tl_event *event,
                  const char *command, uint64_t *token)
{
  unsigned n = event->command.clients;

  if (n == 0 || (event->command.flags & TL_DISCONNECT))
    return false;
  reply (c, token, TL_REFUSED,
         "%u NBD client%s attached: detach first, or %s --disconnect to fail "
         "their requests",
         n, n == 1 ? " is" : "s are", command);
  return true;
}

static void
switchover (struct tl_core *c, const struct tl_event *event, uint64_t *token)
{
  if (c->role != TL_PRIMARY) {
    reply (c, token, TL_REFUSED, "node %s is Secondary: run it on the Primary",
           c->node);
    return;
  }
  if (clients_attached (c, event, "switchover", token))
    return;
  if (!mirroring (c) || !c->peer_member || !c->peer_stored ||
      c->resync.active) {
    reply (c, token, TL_REFUSED,
           "the partner is not connected and UpToDate: it could not go on "
           "with the data");
    return;
  }
  c->leaving = true;
  c->leaving_since = c->now;
  c->switchover_token = *token;
  /* The step ends with switchover_drained. */
}

/* Nothing is under way any more: give the role away. */
void
switchover_drained (struct tl_core *c)
{
  struct tl_view view;

  if (c->agree.stage != STAGE_IDLE || c->in_flight.count > 0 ||
      c->held.count > 0 || !mirroring (c) || !c->peer_member)
    return;
  tl_view_next (&view, &c->record.view, random_id (c), c->peer.node, c->node);
  agree (c, KIND_HANDOVER, &view, &c->record.uuid);
}

/* The peer acts as primary; or that came to nothing, and where this node is
 * still primary it serves again.
 */
void
switchover_over (struct tl_core *c, int status, const char *why)
{
  c->leaving = false;
  if (c->switchover_token == 0)
    return;
  if (status == TL_DONE)
    reply (c, &c->switchover_token, status,
           "node %s is Primary, after a pause of %" PRIu64 ".%" PRIu64 " ms",
           c->peer.node, (c->now - c->leaving_since) / 1000,
           (c->now - c->leaving_since) / 100 % 10);
  else
    reply (c, &c->switchover_token, status, "%s; node %s is %s", why, c->node,
           tl_role_name (c->role));
}

/* ---- demote, degrade ---- */

static void
demote (struct tl_core *c, const struct tl_event *event, uint64_t *token)
{
  if (c->role != TL_PRIMARY) {
    reply (c, token, TL_DONE, "Secondary");
    return;
  }
  if (clients_attached (c, event, "demote", token))
    return;
  c->demoted = true;
  step_down (c, "demoted");
  if (c->phase != PHASE_NONE)
    session_end (c, true, "demoted");
  reply (c, token, TL_DONE, "Secondary");
}

static void
degrade (struct tl_core *c, const struct tl_event *event, uint64_t *token)
{
  struct tl_view view;

  if (!(event->command.flags & TL_FENCED)) {
    reply (c, token, TL_USAGE,
           "degrade asserts that the other machine is off: degrade --fenced");
    return;
  }
  if (c->role != TL_PRIMARY) {
    reply (c, token, TL_REFUSED,
           "node %s is Secondary: degrade lets a Primary go on alone", c->node);
    return;
  }
  if (alone (c)) {
    reply (c, token, TL_DONE, "alone in view %" PRIu64, c->record.view.number);
    return;
  }
  if (c->phase != PHASE_NONE) {
    reply (c, token, TL_REFUSED, "node %s is connected", c->peer.node);
    return;
  }
  tl_view_next (&view, &c->record.view, random_id (c), c->node, NULL);
  agree (c, KIND_ALONE, &view, &c->record.uuid);
  c->agree.token = *token;
  c->agree.give_up = give_up (c);
}

/* ---- discard, forget-peer ---- */

static void
discard (struct tl_core *c, uint64_t *token)
{
  if (!c->standalone) {
    reply (c, token, TL_REFUSED,
           "node %s is not StandAlone: there is nothing to give up. A split "
           "brain is ended on the node whose data is to be lost",
           c->node);
    return;
  }
  agree_record (c, KIND_DISCARD);
  c->agree.token = *token;
  c->agree.give_up = give_up (c);
}

static void
forget_peer (struct tl_core *c, uint64_t *token)
{
  if (c->record.peer[0] == '\0') {
    reply (c, token, TL_DONE, "no peer is known");
    return;
  }
  if (c->phase != PHASE_NONE) {
    reply (c, token, TL_REFUSED, "node %s is connected", c->peer.node);
    return;
  }
  if (tl_view_has (&c->record.view, c->record.peer)) {
    reply (c, token, TL_REFUSED,
           "node %s is a member: it may have acknowledged writes. Go on "
           "without it first: degrade --fenced, or promote",
           c->record.peer);
    return;
  }
  agree_record (c, KIND_FORGET);
  c->agree.token = *token;
  c->agree.give_up = give_up (c);
}

/* ---- verify ---- */

static void
verify (struct tl_core *c, uint64_t *token)
{
  if (c->role != TL_PRIMARY) {
    reply (c, token, TL_FAILED, "node %s is Secondary: run it on the Primary",
           c->node);
  } else if (!mirroring (c) || !c->peer_member) {
    reply (c, token, TL_FAILED,
           "the partner is not connected and UpToDate: there is nothing to "
           "compare with");
  } else if (c->verify.active) {
    reply (c, token, TL_FAILED, "a verify is under way already");
  } else {
    verify_start (c);
    reply (c, token, TL_DONE, "comparing both copies: see status");
  }
}

static void
run (struct tl_core *c, const struct tl_event *event, uint64_t *token)
{
  if (c->agree.stage != STAGE_IDLE) {
    reply (c, token, TL_FAILED, "a view is just being agreed%s%s: try again",
           c->trouble[0] != '\0' ? ": " : "", c->trouble);
    return;
  }
  switch (event->command.command) {
  case TL_CMD_CREATE:
    create (c, event, token);
    break;
  case TL_CMD_PROMOTE:
    promote (c, event, token);
    break;
  case TL_CMD_DEMOTE:
    demote (c, event, token);
    break;
  case TL_CMD_DEGRADE:
    degrade (c, event, token);
    break;
  case TL_CMD_SWITCHOVER:
    switchover (c, event, token);
    break;
  case TL_CMD_DISCARD:
    discard (c, token);
    break;
  case TL_CMD_FORGET_PEER:
    forget_peer (c, token);
    break;
  case TL_CMD_VERIFY:
    verify (c, token);
    break;
  }
}

void
command (struct tl_core *c, const struct tl_event *event)
{
  uint64_t token = event->command.token;

  if (c->stopped) {
    reply (c, &token, TL_FAILED, "the node is shutting down");
    return;
  }
  if (c->agree.token != 0 || c->handover_token != 0 || c->create_token != 0 ||
      c->switchover_token != 0 || c->waiting.token != 0) {
    reply (c, &token, TL_FAILED, "another command is under way: try again");
    return;
  }
  if (c->agree.stage != STAGE_IDLE) {
    c->waiting = event->command;
    c->waiting_by = give_up (c);
    return;
  }
  run (c, event, &token);
}

/* The agreement that a command waited for has ended. */
void
command_waiting (struct tl_core *c)
{
  struct tl_event event = {.type = TL_EV_COMMAND, .command = c->waiting};

  if (c->waiting.token == 0 || c->agree.stage != STAGE_IDLE)
    return;
  c->waiting.token = 0;
  run (c, &event, &event.command.token);
}

void
command_timers (struct tl_core *c)
{
  if (c->waiting.token != 0 && c->now >= c->waiting_by)
    reply (c, &c->waiting.token, TL_FAILED,
           "a view is just being agreed%s%s: try again",
           c->trouble[0] != '\0' ? ": " : "", c->trouble);
  if (c->switchover_token != 0 &&
      c->now >= c->leaving_since + c->config.deadline + ARBITER_GRACE) {
    if (c->agree.stage == STAGE_IDLE)
      c->leaving = false;
    reply (c, &c->switchover_token, TL_TIMED_OUT,
           "node %s is not Primary within the deadline; node %s is %s",
           c->peer.node, c->node, tl_role_name (c->role));
  }
  if (c->handover_token != 0 && c->now >= c->handover_by)
    reply (c, &c->handover_token, TL_TIMED_OUT,
           "node %s did not hand over within the deadline", c->peer.node);
  if (c->create_token != 0 && c->now >= c->create_by)
    reply (c, &c->create_token, TL_TIMED_OUT,
           "created, but node %s did not join within the deadline: the node "
           "goes on trying",
           c->peer.node);
}
