/* Commands of an operator or a cluster engine. */
#include "internal.h"

#include <inttypes.h>
#include <stdio.h>

/* When a command is answered at the latest. */
uint64_t
command_limit (const struct tl_core *c)
{
  return c->now + c->config.deadline + ARBITER_GRACE;
}

/* ---- create ---- */

/* The connection may just be made, or replaced by another. */
static bool
waits_for_peer (const struct tl_core *c, const struct tl_operation *command)
{
  return command->command == TL_CMD_CREATE && !(command->flags & TL_ALONE) &&
         c->phase == PHASE_NONE && c->record.view.number == 0 &&
         c->kept->data == TL_EMPTY;
}

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
           "the peer did not connect within the deadline: start it, or create "
           "--alone");
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
  c->agree.give_up = command_limit (c);
}

/* ---- demote, degrade ---- */

bool
command_blocked (struct tl_core *c, const struct tl_event *event,
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
demote (struct tl_core *c, const struct tl_event *event, uint64_t *token)
{
  if (c->role != TL_PRIMARY) {
    reply (c, token, TL_DONE, "Secondary");
    return;
  }
  if (command_blocked (c, event, "demote", token))
    return;
  c->demoted = true;
  step_down (c, "demoted");
  session_end (c, true, "demoted");
  reply (c, token, TL_DONE, "Secondary");
}

static void
degrade (struct tl_core *c, const struct tl_event *event, uint64_t *token)
{
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
  agree_next (c, KIND_ALONE, c->node, NULL);
  c->agree.token = *token;
  c->agree.give_up = command_limit (c);
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
  c->agree.give_up = command_limit (c);
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
  c->agree.give_up = command_limit (c);
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
    command_promote (c, event, token);
    break;
  case TL_CMD_DEMOTE:
    demote (c, event, token);
    break;
  case TL_CMD_DEGRADE:
    degrade (c, event, token);
    break;
  case TL_CMD_SWITCHOVER:
    command_switchover (c, event, token);
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
  if (c->agree.stage != STAGE_IDLE || waits_for_peer (c, &event->command)) {
    c->waiting = event->command;
    c->waiting_by = command_limit (c);
    return;
  }
  run (c, event, &token);
}

/* Runs the command that waits once the agreement has ended, or the peer is
 * connected, that it waited for, or its time is up. */
void
command_waiting (struct tl_core *c)
{
  struct tl_event event;

  if (c->waiting.token == 0)
    return;
  if (c->now < c->waiting_by &&
      (c->agree.stage != STAGE_IDLE || waits_for_peer (c, &c->waiting)))
    return;
  event.type = TL_EV_COMMAND;
  event.command = c->waiting;
  c->waiting.token = 0;
  run (c, &event, &event.command.token);
}

void
command_timers (struct tl_core *c)
{
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
