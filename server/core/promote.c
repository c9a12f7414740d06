/* Who becomes primary, and on whose word: rule V2 of design.md, and the planned
 * move of the role.
 */
#include "internal.h"

#include <inttypes.h>
#include <stdio.h>

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
    snprintf (why, why_size, "a view is just being agreed%s%.200s",
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
  if (c->connected_view != c->record.view.id) {
    snprintf (why, why_size,
              "it was not connected in view %" PRIu64
              " since it started, so it cannot know that it has everything: "
              "start the other node, or promote --force if that lost its data",
              c->record.view.number);
    return TL_REFUSED;
  }
  if (!(flags & TL_FENCED)) {
    snprintf (why, why_size,
              "its data is Consistent, but the other node may be alive and "
              "acknowledging: power it off, then promote --fenced");
    return TL_REFUSED;
  }
  return TL_DONE;
}

static void
promote_view (struct tl_core *c, uint64_t token, bool forced)
{
  agree_next (c, KIND_PROMOTE, c->node, NULL);
  c->agree.forced = forced;
  c->agree.token = token;
  c->agree.give_up = command_limit (c);
}

void
command_promote (struct tl_core *c, const struct tl_event *event,
                 uint64_t *token)
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
    session_end (c, true, "promoted by force");
    promote_view (c, *token, true);
    return;
  }
  if (c->phase != PHASE_NONE && c->peer_member &&
      strcmp (c->record.view.primary, c->node) != 0) {
    /* The peer, which stepped down, has a complete copy too. */
    send_frame (c, TL_HANDOVER, 0);
    c->handover_token = *token;
    c->handover_by = command_limit (c);
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
  if (!c->config.arbiter && c->peer.view.number == 0)
    session_end (c, true, "promoted");
  promote_view (c, *token, false);
}

/* A secondary has been without a primary for the deadline.  Only the arbiter
 * lets it, and a primary that lives has asked before.  A peer that is connected
 * and could serve too was demoted by an operator, or serves at once (V7).
 */
void
command_auto_promote (struct tl_core *c)
{
  bool session = c->phase != PHASE_NONE;
  char why[256];

  if (c->now < c->promote_at || c->agree.stage != STAGE_IDLE)
    return;
  c->promote_at = NEVER;
  if (c->role == TL_PRIMARY || c->demoted || !c->config.arbiter ||
      (session && c->peer_member) ||
      promote_check (c, 0, why, sizeof why) != TL_DONE)
    return;
  if (c->trouble[0] == '\0')
    say (c, "without a primary for the deadline: asking to be promoted");
  promote_view (c, 0, false);
}

/* The peer asks to be given the primary role. */
void
command_handover (struct tl_core *c)
{
  if (c->role == TL_PRIMARY || c->phase != PHASE_IDLE || !is_member (c) ||
      !c->peer_member || c->agree.stage != STAGE_IDLE) {
    session_end (c, true, "node %s cannot hand over now", c->node);
    return;
  }
  agree_next (c, KIND_HANDOVER, c->peer.node, c->node);
}

/* ---- Switchover ---- */

void
command_switchover (struct tl_core *c, const struct tl_event *event,
                    uint64_t *token)
{
  if (c->role != TL_PRIMARY) {
    reply (c, token, TL_REFUSED, "node %s is Secondary: run it on the Primary",
           c->node);
    return;
  }
  if (command_blocked (c, event, "switchover", token))
    return;
  if (!mirroring (c) || !c->peer_member || !c->peer_stored ||
      c->resync.active) {
    reply (c, token, TL_REFUSED,
           "the partner is not connected and UpToDate: it could not go on "
           "with the data");
    return;
  }
  if (c->verify.active) {
    reply (c, token, TL_REFUSED,
           "a verify is under way: a copy that it finds damaged must not "
           "become the one that counts. Wait for its end");
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
  if (c->agree.stage != STAGE_IDLE || c->in_flight.count > 0 ||
      c->held.count > 0 || !mirroring (c) || !c->peer_member)
    return;
  agree_next (c, KIND_HANDOVER, c->peer.node, c->node);
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
