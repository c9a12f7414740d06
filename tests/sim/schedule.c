/* The schedule of a seed: which faults happen when.  They are steered so that a
 * complete copy is left most of the time: a run in which both copies are lost
 * early shows little.
 */
#include "sim.h"

/* ---- What is known of copies ---- */

/* The newest view that anything durable knows. */
const struct tl_view *
schedule_newest (struct sim *sim)
{
  const struct tl_view *newest = &sim->nodes[0].record.view;

  if (sim->nodes[1].record.view.number > newest->number)
    newest = &sim->nodes[1].record.view;
  if (sim->arbiter.exists && sim->arbiter.view.number > newest->number)
    newest = &sim->arbiter.view;
  return newest;
}

/* May this node's copy serve, as far as one can see from outside? */
bool
schedule_entitled (struct sim *sim, struct node *node)
{
  if (!node->alive || node_status (sim, node)->disk < TL_DISK_OUTDATED)
    return false;
  return tl_view_has (schedule_newest (sim), node->name) &&
         node->record.view.number != 0 &&
         node_status (sim, node)->disk > TL_DISK_OUTDATED;
}

/* ---- Faults ---- */

void
schedule_crash (struct sim *sim, struct node *node, const char *how,
                bool ram_lost)
{
  struct rng *rng = &sim->rng;
  uint64_t off = rng_between (rng, 5 * MS, sim->deadline * 2);

  sim_count (sim, sim->ram_kept && !ram_lost ? T_KILLS : T_CRASHES);
  node_kill (sim, node, how, ram_lost);
  if (rng_percent (rng, 20))
    off = rng_between (rng, MS, 20 * MS);
  sim_at (sim, sim->now + off, K_RESTART, NULL, (uint64_t)node->index,
          node->life);
}

/* The process goes and the RAM stays; often in the middle of a step. */
static void
kill_process (struct sim *sim, struct node *node, bool stop)
{
  if (stop) {
    sim_count (sim, T_STOPS);
    node_stop (sim, node);
    sim_at (sim, sim->now + rng_between (&sim->rng, 5 * MS, sim->deadline),
            K_RESTART, NULL, (uint64_t)node->index, node->life);
  } else if (rng_percent (&sim->rng, 60)) {
    node->doomed = true;
  } else {
    schedule_crash (sim, node, "crashes", false);
  }
}

/* Crash or stop NODE, unless that would take the last good copy; in some seeds
 * even then.
 */
static void
lose (struct sim *sim, struct node *node, bool stop)
{
  struct node *other = node_other (sim, node);

  if (!node->alive || (!sim->schedule.created && !sim->schedule.early) ||
      node->stopping || (stop && node->frozen_until > sim->now))
    return;
  if (sim->ram_kept && (stop || rng_percent (&sim->rng, 70))) {
    kill_process (sim, node, stop);
    return;
  }
  if (!schedule_entitled (sim, other) &&
      !(sim->schedule.reckless && rng_percent (&sim->rng, 10)))
    return;
  if (!stop) {
    schedule_crash (sim, node, "crashes", true);
    return;
  }
  sim_count (sim, T_STOPS);
  node_stop (sim, node);
  sim_at (sim, sim->now + rng_between (&sim->rng, 5 * MS, sim->deadline),
          K_RESTART, NULL, (uint64_t)node->index, node->life);
}

/* The primary lives but cannot be reached, and the other node is promoted: the
 * arbiter decides between them.  With the policy `continue` nobody does: it is
 * believed to be off, and is not.
 */
void
schedule_takeover (struct sim *sim, struct node *primary)
{
  struct node *other = node_other (sim, primary);
  struct rng *rng = &sim->rng;

  if (sim->schedule.stage != HEAL_NO || !node_primary (sim, primary) ||
      !other->alive)
    return;
  sim_count (sim, T_TAKEOVERS);
  switch (rng_below (rng, 5)) {
  case 0:
    fault_freeze (sim, primary);
    break;
  case 1:
    fault_halt (sim, primary);
    break;
  case 2:
    network_cut (sim, primary->index);
    break;
  case 3:
    fault_link (sim, 3);
    break;
  default:
    fault_link (sim, (unsigned)rng_between (rng, 1, 2));
    break;
  }
  for (unsigned i = 0; i < 4; i++)
    operators_send (sim, other, TL_CMD_PROMOTE,
                    sim->with_arbiter ? 0 : TL_FENCED,
                    i * sim->deadline / 2 + rng_below (rng, sim->deadline / 4));
}

/* Prepare one.  Often those who write have turned away before, and only a
 * reader is left to be told stale content.
 */
static void
take_over (struct sim *sim, struct node *primary)
{
  uint64_t delay = 0;

  if ((!sim->with_arbiter && sim->policy != TL_POLICY_CONTINUE) ||
      !node_primary (sim, primary))
    return;
  if (rng_percent (&sim->rng, 50)) {
    delay = rng_between (&sim->rng, 10 * MS, 60 * MS);
    clients_avoid (sim, primary, sim->now + 2 * sim->deadline);
  }
  sim_at (sim, sim->now + delay, K_TAKEOVER, primary, 0, 0);
}

/* NODE has just done something after which a fault is most telling: in a
 * resync, while a view is told or agreed.  Aim at that moment, sometimes.
 */
void
schedule_notice (struct sim *sim, struct node *node)
{
  if (sim->schedule.stage == HEAL_NO &&
      rng_percent (&sim->rng, sim->schedule.aim))
    sim_at (sim, sim->now + rng_below (&sim->rng, 12 * MS), K_STRIKE, NULL,
            (uint64_t)node->index, node->life);
}

void
schedule_strike (struct sim *sim, struct node *node)
{
  struct node *other = node_other (sim, node);

  if (sim->schedule.stage != HEAL_NO || !node->alive)
    return;
  sim_count (sim, T_AIMED);
  switch (rng_below (&sim->rng, 8)) {
  case 0:
    lose (sim, node, rng_percent (&sim->rng, 20));
    break;
  case 1:
    lose (sim, other, rng_percent (&sim->rng, 20));
    break;
  case 2:
    network_cut (sim, rng_percent (&sim->rng, 50) ? -1 : node->index);
    break;
  case 3:
    fault_link (sim, (unsigned)rng_between (&sim->rng, 1, 3));
    break;
  case 4:
    fault_disk (sim, rng_percent (&sim->rng, 50) ? node : other);
    break;
  case 5:
    fault_halt (sim, node);
    break;
  case 6:
    fault_swizzle (sim);
    break;
  default:
    operators_meddle (sim);
    break;
  }
}

static enum fault
choose (struct sim *sim)
{
  const unsigned *weights = sim->schedule.weights;
  unsigned sum = 0;

  for (unsigned i = 0; i < FAULTS; i++)
    sum += weights[i];

  unsigned pick = (unsigned)rng_below (&sim->rng, sum);

  for (unsigned i = 0; i < FAULTS; i++) {
    if (pick < weights[i])
      return (enum fault)i;
    pick -= weights[i];
  }
  return F_NOTHING;
}

static void
strike (struct sim *sim)
{
  struct rng *rng = &sim->rng;
  struct node *primary =
      node_primary (sim, &sim->nodes[0]) ? &sim->nodes[0] : &sim->nodes[1];
  struct node *any = &sim->nodes[rng_below (rng, NODES)];

  enum fault fault = choose (sim);

  /* A run without a promotion shows little: get to one. */
  if (sim->oracle.promotions == 0 &&
      sim->events > sim->schedule.events_wanted / 2)
    fault = schedule_entitled (sim, node_other (sim, primary)) ? F_CRASH_PRIMARY
                                                               : F_NOTHING;
  switch (fault) {
  case F_CRASH_PRIMARY:
    lose (sim, primary, false);
    break;
  case F_CRASH_SECONDARY:
    lose (sim, node_other (sim, primary), false);
    break;
  case F_STOP:
    lose (sim, any, true);
    break;
  case F_CUT:
    network_cut (sim, -1);
    break;
  case F_DOWN:
    fault_link (sim, 3);
    break;
  case F_ONE_WAY:
    fault_link (sim, (unsigned)rng_between (rng, 1, 2));
    break;
  case F_FREEZE:
    fault_freeze (sim, any);
    break;
  case F_DISK:
    fault_disk (sim, any);
    break;
  case F_ARBITER:
    fault_arbiter (sim);
    break;
  case F_HALT:
    fault_halt (sim, any);
    break;
  case F_DEAFEN:
    fault_deafen (sim, any);
    break;
  case F_SLOW:
    fault_slow (sim);
    break;
  case F_SWIZZLE:
    fault_swizzle (sim);
    break;
  case F_CLOCK:
    fault_clock (sim, any);
    break;
  case F_MEDDLE:
    operators_meddle (sim);
    break;
  case F_PAUSE:
    sim->clients.paused_until = sim->now + rng_below (rng, 100 * MS);
    break;
  case F_TAKEOVER:
    take_over (sim, primary);
    break;
  default:
    break;
  }
}

void
schedule_tick (struct sim *sim)
{
  struct schedule *schedule = &sim->schedule;
  struct rng *rng = &sim->rng;

  if (schedule->stage != HEAL_NO)
    return;
  if (sim->events >= schedule->events_wanted &&
      (sim->oracle.promotions > 0 ||
       sim->events >= 2 * schedule->events_wanted)) {
    heal_begin (sim);
    return;
  }
  sim_at (sim,
          sim->now + rng_between (rng, schedule->pace / 4, schedule->pace * 2),
          K_SCHEDULE, NULL, 0, 0);
  operators_check (sim);
  oracle_check_claims (sim);
  if (schedule->quiet_until > sim->now)
    return;
  operators_manage (sim);
  if (!sim->violated)
    reconcile (sim);
  if (!sim->violated && (schedule->created || schedule->early))
    strike (sim);
}
