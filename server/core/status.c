/* What a node is, as rules and as status shows it. */
#include "internal.h"

#include <inttypes.h>
#include <stdio.h>

/* Does the view that this node has stored name nobody else? */
bool
alone (const struct tl_core *c)
{
  return c->record.view.n_members == 1 &&
         tl_view_has (&c->record.view, c->node);
}

/* Does this node's RAM hold every write that was acknowledged in the view it
 * has stored?
 */
bool
is_member (const struct tl_core *c)
{
  return c->kept->data == TL_COMPLETE &&
         tl_view_has (&c->record.view, c->node) &&
         c->record.incarnation == c->kept->incarnation;
}

/* What the data is as far as anybody can tell: without a record of a view, kept
 * RAM is no more than empty.
 */
enum tl_data
known_data (const struct tl_core *c)
{
  return c->record.view.number == 0 ? TL_EMPTY : (enum tl_data)c->kept->data;
}

/* Is every write sent to the peer? */
bool
mirroring (const struct tl_core *c)
{
  return c->phase == PHASE_SOURCE;
}

const char *
tl_role_name (enum tl_role role)
{
  return role == TL_PRIMARY ? "Primary" : "Secondary";
}

const char *
tl_disk_name (enum tl_disk disk)
{
  static const char *const names[] = {
      [TL_DISK_UNKNOWN] = "DUnknown",          [TL_DISK_EMPTY] = "Empty",
      [TL_DISK_INCONSISTENT] = "Inconsistent", [TL_DISK_OUTDATED] = "Outdated",
      [TL_DISK_CONSISTENT] = "Consistent",     [TL_DISK_UPTODATE] = "UpToDate",
  };

  return names[disk];
}

const char *
tl_link_name (enum tl_link link)
{
  static const char *const names[] = {
      [TL_LINK_STANDALONE] = "StandAlone", [TL_LINK_CONNECTING] = "Connecting",
      [TL_LINK_CONNECTED] = "Connected",   [TL_LINK_SYNCSOURCE] = "SyncSource",
      [TL_LINK_SYNCTARGET] = "SyncTarget",
  };

  return names[link];
}

const char *
tl_policy_name (enum tl_policy policy)
{
  static const char *const names[] = {
      [TL_POLICY_ERROR] = "error",
      [TL_POLICY_ARBITER] = "arbiter",
      [TL_POLICY_FREEZE] = "freeze",
      [TL_POLICY_CONTINUE] = "continue",
  };

  return names[policy];
}

static enum tl_disk
disk (const struct tl_core *c)
{
  if (known_data (c) == TL_EMPTY)
    return TL_DISK_EMPTY;
  if (c->kept->data == TL_INCONSISTENT)
    return TL_DISK_INCONSISTENT;
  if (!is_member (c))
    return c->phase == PHASE_TARGET && c->resynced ? TL_DISK_CONSISTENT
                                                   : TL_DISK_OUTDATED;
  if (c->role == TL_PRIMARY || alone (c) || c->phase == PHASE_TARGET ||
      (c->phase == PHASE_IDLE && c->peer_member))
    return TL_DISK_UPTODATE;
  return TL_DISK_CONSISTENT;
}

static enum tl_disk
peer_disk (const struct tl_core *c)
{
  if (c->phase == PHASE_NONE)
    return TL_DISK_UNKNOWN;
  if (c->peer.data == TL_EMPTY)
    return c->resync.active && c->phase == PHASE_SOURCE ? TL_DISK_INCONSISTENT
                                                        : TL_DISK_EMPTY;
  if (c->peer.data == TL_INCONSISTENT)
    return TL_DISK_INCONSISTENT;
  if (c->peer.role == TL_PRIMARY || (c->peer_member && c->peer_stored))
    return TL_DISK_UPTODATE;
  if (c->resync.active && c->phase == PHASE_SOURCE)
    return TL_DISK_INCONSISTENT;
  return c->resync.done || c->peer_member ? TL_DISK_CONSISTENT
                                          : TL_DISK_OUTDATED;
}

static enum tl_link
link_state (const struct tl_core *c)
{
  if (c->standalone)
    return TL_LINK_STANDALONE;
  if (c->phase == PHASE_NONE)
    return TL_LINK_CONNECTING;
  if (c->resync.active)
    return c->phase == PHASE_SOURCE ? TL_LINK_SYNCSOURCE : TL_LINK_SYNCTARGET;
  return TL_LINK_CONNECTED;
}

static unsigned
copies (const struct tl_core *c)
{
  if (!is_member (c))
    return c->phase != PHASE_NONE && c->peer.role == TL_PRIMARY ? 1 : 0;
  if (c->phase == PHASE_NONE || c->record.view.n_members < 2)
    return 1;
  if (c->role == TL_PRIMARY)
    return c->peer_member && c->peer_stored && mirroring (c) ? 2 : 1;
  if (c->phase == PHASE_TARGET)
    return 2;
  return c->peer_member ? 2 : 1;
}

static void
suspended (const struct tl_core *c, struct tl_status *s)
{
  s->suspended =
      c->role == TL_PRIMARY &&
      (c->leaving || (!alone (c) && !(mirroring (c) && c->peer_member)));
  if (!s->suspended)
    return;
  if (c->leaving)
    snprintf (s->suspended_reason, sizeof s->suspended_reason,
              "switchover: requests fail, those under way are waited for");
  else if (c->agree.stage != STAGE_IDLE)
    snprintf (s->suspended_reason, sizeof s->suspended_reason,
              "view %" PRIu64 " is not agreed yet%s%.180s",
              c->agree.view.number, c->trouble[0] != '\0' ? ": " : "",
              c->trouble);
  else if (c->phase != PHASE_NONE)
    snprintf (s->suspended_reason, sizeof s->suspended_reason,
              "node %s is connecting", c->peer.node);
  else if (c->config.policy == TL_POLICY_FREEZE)
    snprintf (s->suspended_reason, sizeof s->suspended_reason,
              "the partner is away: requests wait until it is back, or until "
              "degrade --fenced");
  else
    snprintf (s->suspended_reason, sizeof s->suspended_reason,
              "the partner is away: writes fail after the deadline until it "
              "is back, or until degrade --fenced");
}

void
tl_core_status (const struct tl_core *c, uint64_t now, struct tl_status *s)
{
  *s = c->counters;
  s->role = c->role;
  s->disk = disk (c);
  s->link = link_state (c);
  memcpy (s->peer, c->record.peer, sizeof s->peer);
  s->peer_known = c->phase != PHASE_NONE;
  s->peer_role = (enum tl_role)c->peer.role;
  s->peer_disk = peer_disk (c);
  s->uuid = c->record.uuid;
  s->view = c->record.view;
  s->copies = copies (c);
  suspended (c, s);
  s->may_promote = promote_check (c, 0, s->may_promote_reason,
                                  sizeof s->may_promote_reason) == TL_DONE;
  s->out_of_sync = c->dirty.count * TL_BLOCK;
  if (c->resync.active && c->phase == PHASE_SOURCE) {
    s->resync_total = c->resync.total * TL_BLOCK;
    s->resync_done = c->resync.total > c->dirty.count
                         ? (c->resync.total - c->dirty.count) * TL_BLOCK
                         : 0;
    s->resync_started = c->resync.started;
  }
  s->verify_active = c->verify.active;
  s->verify_interrupted = c->verify.interrupted;
  s->verify_checked = c->verify.checked * TL_BLOCK;
  s->verify_different = c->verify.different * TL_BLOCK;
  s->verify_ended = c->verify.ended;
  s->in_flight = c->in_flight.count + c->held.count;
  s->changed = c->changed;
  s->heard = c->heard;
  memcpy (s->disconnect_reason, c->disconnect_reason,
          sizeof s->disconnect_reason);
  memcpy (s->trouble, c->trouble, sizeof s->trouble);
  (void)now;
}

/* May an NBD client be let in? */
int
tl_core_admit (const struct tl_core *c, char *why, size_t why_size)
{
  if (c->stopped) {
    snprintf (why, why_size, "node %s is shutting down", c->node);
    return -1;
  }
  if (c->role == TL_PRIMARY)
    return 0;
  if (c->record.view.number == 0)
    snprintf (why, why_size,
              "volume %s was not created yet: run twinlog create", c->volume);
  else if (c->phase != PHASE_NONE && c->peer.role == TL_PRIMARY)
    snprintf (why, why_size,
              "node %s is Secondary: node %s is Primary, attach there", c->node,
              c->peer.node);
  else
    snprintf (why, why_size,
              "node %s is Secondary and its data is %s: see twinlog status, "
              "and twinlog promote",
              c->node, tl_disk_name (disk (c)));
  return -1;
}
