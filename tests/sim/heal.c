/* The end of a run: all faults cease, the machines run, the cluster manager
 * does its work.  Where a good copy is left, service must come back, both
 * copies must become equal byte for byte, and every block must read.  Where
 * none is left, no node may serve.
 */
#include "sim.h"

#include <stdio.h>
#include <string.h>

#define TICK (20 * MS)

void
heal_begin (struct sim *sim)
{
  struct schedule *schedule = &sim->schedule;

  TRACE (sim, "---- all faults cease ----");
  schedule->stage = HEAL_RESTORE;
  schedule->heal_since = sim->now;
  schedule->heal_until = sim->now + 33 * sim->deadline + 3000 * MS;
  sim->network.corrupt = sim->network.strange = 0;
  sim->arbiter.down_until = sim->arbiter.slow_until = sim->now;
  sim->arbiter.astray_until = sim->now;
  sim->network.slow_until = sim->now;
  sim->arbiter.unknown = 0;
  for (unsigned i = 0; i < NODES; i++) {
    sim->nodes[i].disk_bad_until = sim->nodes[i].disk_slow_until = sim->now;
    sim->nodes[i].disk_stuck_until = sim->now;
    sim->nodes[i].halting = 0;
    sim->arbiter.cut_until[i] = sim->now;
  }
  sim->clients.paused_until = sim->now;
  sim->nodes[0].doomed = sim->nodes[1].doomed = false;
  sim_at (sim, sim->now + TICK, K_HEAL, NULL, 0, 0);
}

static struct node *
serving (struct sim *sim)
{
  char why[256];

  for (unsigned i = 0; i < NODES; i++) {
    struct node *node = &sim->nodes[i];

    if (node->alive && tl_core_admit (node->core, why, sizeof why) == 0 &&
        !node_status (sim, node)->suspended)
      return node;
  }
  return NULL;
}

static bool
in_step (struct sim *sim)
{
  for (unsigned i = 0; i < NODES; i++) {
    struct node *node = &sim->nodes[i];

    if (!node->alive || node->frozen_until > sim->now ||
        node->deaf_until > sim->now || sim->network.down_until[i] > sim->now)
      return false;

    const struct tl_status *status = node_status (sim, node);

    if (status->disk != TL_DISK_UPTODATE || status->link != TL_LINK_CONNECTED)
      return false;
  }
  return true;
}

static void
describe (struct sim *sim, char *text, size_t size)
{
  size_t used = 0;

  for (unsigned i = 0; i < NODES && used < size; i++) {
    struct node *node = &sim->nodes[i];

    if (!node->alive) {
      used +=
          (size_t)snprintf (text + used, size - used, "%s: off; ", node->name);
      continue;
    }

    const struct tl_status *st = node_status (sim, node);

    used += (size_t)snprintf (
        text + used, size - used, "%s: %s %s %s %s out-of-sync %llu%s%s%s; ",
        node->name, tl_role_name (st->role), tl_disk_name (st->disk),
        tl_link_name (st->link), sim_view_text (&st->view),
        (unsigned long long)st->out_of_sync,
        st->suspended ? ", suspended: " : "", st->suspended_reason,
        st->may_promote ? ", may promote" : st->may_promote_reason);
  }
}

/* Does NODE hold, without a break, a copy that may serve in view NEWEST?  Where
 * there is no arbiter it must have shared its view with the peer, or have been
 * its primary, to know that it has everything.
 */
static bool
good_copy (const struct sim *sim, const struct node *node,
           const struct tl_view *newest)
{
  const struct tl_record *record = &node->record;

  if (!node->alive || record->incarnation != node->incarnation ||
      !tl_view_has (newest, node->name))
    return false;

  /* Its view was stored, by the creation of the volume or a promotion by force,
   * and its process ended before its data had come to count in it.
   */
  if ((sim->forks || node->unacted) && sim->ram_kept &&
      node->kept.data != TL_COMPLETE)
    return false;
  if (!sim->with_arbiter && node->connected_view != record->view.id &&
      node->primary_view != record->view.id)
    return false;
  return record->view.id == newest->id || record->view.id == newest->parent;
}

/* Both machines have run for a good while, and there is nothing to serve. */
static bool
hopeless (struct sim *sim)
{
  const struct tl_view *newest = schedule_newest (sim);
  uint64_t settled = 6 * sim->deadline + 3000 * MS;

  for (unsigned i = 0; i < NODES; i++) {
    struct node *node = &sim->nodes[i];

    if (!node->alive || sim->now < node->born + settled ||
        sim->now < node->frozen_until + settled ||
        sim->now < node->deaf_until + settled ||
        sim->now < sim->network.down_until[i] + settled ||
        node_primary (sim, node) || good_copy (sim, node, newest))
      return false;
  }
  return sim->now > sim->schedule.heal_since + settled;
}

/* Service did not come back, or the copies did not meet, in all that time. */
static void
give_up (struct sim *sim)
{
  const struct tl_view *newest = schedule_newest (sim);
  struct node *node = serving (sim);
  char text[512];

  sim->schedule.stage = HEAL_DONE;
  describe (sim, text, sizeof text);
  if (sim->oracle.era == 0 && !node) {
    /* Nobody ever became primary: there was nothing to be acknowledged. */
    sim_count (sim, T_NOT_CREATED);
    return;
  }
  if (node || good_copy (sim, &sim->nodes[0], newest) ||
      good_copy (sim, &sim->nodes[1], newest)) {
    sim_violate (sim, "does not heal: %s", text);
    return;
  }
  TRACE (sim, "all copies are lost: %s", text);
  sim_count (sim, T_LOST);
}

static void
compare (struct sim *sim)
{
  for (unsigned i = 0; i < NODES; i++)
    tl_store_read (sim->nodes[i].store, 0, sim->size, sim->scratch[i]);
  for (uint64_t at = 0; at < sim->size; at += SECTOR)
    if (memcmp (sim->scratch[0] + at, sim->scratch[1] + at, SECTOR) != 0) {
      sim_violate (sim, "G6: the stores differ after healing, sector %llu",
                   (unsigned long long)(at / SECTOR));
      return;
    }
}

/* Is what each node shows of the other so?  If not, and REPORT, a violation. */
static bool
status_agrees (struct sim *sim, bool report)
{
  for (unsigned i = 0; i < NODES; i++) {
    struct node *node = &sim->nodes[i], *other = node_other (sim, node);
    const struct tl_status *mine = node_status (sim, node);
    const struct tl_status *theirs = node_status (sim, other);

    if (mine->peer_known && mine->peer_role == theirs->role &&
        mine->peer_disk == theirs->disk && mine->copies == 2)
      continue;
    if (report)
      sim_violate (sim,
                   "status: %s shows its peer as %s %s and %u copies; "
                   "%s is %s %s",
                   node->name, tl_role_name (mine->peer_role),
                   tl_disk_name (mine->peer_disk), mine->copies, other->name,
                   tl_role_name (theirs->role), tl_disk_name (theirs->disk));
    return false;
  }
  return true;
}

/* What was on the way when the faults ceased, or was held up, has ended the
 * session: begin again, but not without end.
 */
static void
restore_again (struct sim *sim)
{
  struct schedule *schedule = &sim->schedule;

  schedule->stage = HEAL_RESTORE;
  schedule->final_next = schedule->final_failed = 0;
  if (++schedule->restored > 3)
    sim_violate (sim, "does not serve for long after healing");
}

static void
read_all (struct sim *sim)
{
  struct schedule *schedule = &sim->schedule;
  struct node *node = serving (sim);

  if (!node || schedule->final_failed) {
    restore_again (sim);
    return;
  }
  while (schedule->final_next < sim->blocks && !sim->violated &&
         clients_final_read (sim, node, schedule->final_next))
    schedule->final_next++;
  if (schedule->final_next == sim->blocks && schedule->final_reads == 0 &&
      schedule->final_failed == 0) {
    bool late = sim->now > schedule->heal_until - TICK;

    /* A word of the other may still be under way. */
    if (!status_agrees (sim, late))
      return;
    compare (sim);
    sim_count (sim, T_EQUAL);
    schedule->stage = HEAL_VERIFY;
    operators_send (sim, node, TL_CMD_VERIFY, 0, 0);
  }
}

/* A byte of the secondary's store changes by itself, or one in each of some
 * adjacent blocks.
 */
static void
rot (struct sim *sim, struct node *node)
{
  uint64_t at = rng_below (&sim->rng, sim->size);
  uint64_t blocks = rng_between (&sim->rng, 1, 3);
  unsigned char byte;

  for (; blocks > 0 && at < sim->size; blocks--, at += TL_BLOCK) {
    tl_store_read (node->store, at, 1, &byte);
    byte ^= 0x10;
    tl_store_write (node->store, at, 1, &byte);
    sim->schedule.rotten += TL_BLOCK;
    TRACE (sim, "fault: byte %llu of %s's store changes",
           (unsigned long long)at, node->name);
  }
}

/* A verify was asked for: has it ended, and with what it should find?  It is
 * put off while the node waits for a disk that is slow.
 */
static void
verify (struct sim *sim)
{
  struct schedule *schedule = &sim->schedule;
  struct node *node = serving (sim);
  uint64_t expected = schedule->rotten;

  if (!node) {
    restore_again (sim);
    return;
  }

  const struct tl_status *status = node_status (sim, node);

  if (operators_wait (sim) || status->verify_active || !in_step (sim) ||
      status->out_of_sync != 0)
    return;
  if (status->verify_interrupted && schedule->stage == HEAL_VERIFY) {
    restore_again (sim);
    return;
  }
  if (schedule->put_off) {
    operators_command (sim, node, TL_CMD_VERIFY, 0);
    return;
  }
  if (status->verify_ended == 0 || status->verify_interrupted ||
      status->verify_checked != sim->size ||
      status->verify_different != expected) {
    sim_violate (sim,
                 "G6: verify compared %llu bytes and found %llu different, "
                 "not %llu",
                 (unsigned long long)status->verify_checked,
                 (unsigned long long)status->verify_different,
                 (unsigned long long)expected);
    return;
  }
  compare (sim);
  if (schedule->stage == HEAL_VERIFY && rng_percent (&sim->rng, 30)) {
    sim_count (sim, T_ROTTEN);
    schedule->stage = HEAL_ROT;
    rot (sim, node_other (sim, node));
    operators_command (sim, node, TL_CMD_VERIFY, 0);
    return;
  }
  schedule->stage = HEAL_DONE;
}

void
heal_tick (struct sim *sim)
{
  struct schedule *schedule = &sim->schedule;

  schedule->heal_tries++;
  operators_check (sim);
  oracle_check_claims (sim);
  if (!sim->violated)
    reconcile (sim);
  if (schedule->stage == HEAL_READ)
    read_all (sim);
  else if (schedule->stage > HEAL_READ)
    verify (sim);
  else if (serving (sim) && in_step (sim)) {
    sim->clients.paused_until = UINT64_MAX;
    if (sim->clients.outstanding == 0 && !operators_wait (sim) &&
        node_status (sim, &sim->nodes[0])->out_of_sync == 0 &&
        node_status (sim, &sim->nodes[1])->out_of_sync == 0)
      schedule->stage = HEAL_READ;
  } else if (schedule->heal_tries % 4 == 0) {
    operators_manage (sim);
  }
  if (sim->violated || schedule->stage == HEAL_DONE)
    return;
  if ((sim->now > schedule->heal_until || hopeless (sim)) &&
      !(hopeless (sim) && reconcile_by_force (sim))) {
    give_up (sim);
    return;
  }
  sim_at (sim, sim->now + TICK, K_HEAL, NULL, 0, 0);
}
