/* What only an operator may do: end a split brain by naming the node whose data
 * is given up, and bring service back by force where no good copy is left.
 */
#include "sim.h"

static bool
standalone (struct sim *sim, struct node *node)
{
  return node->alive && node->frozen_until <= sim->now &&
         node_status (sim, node)->link == TL_LINK_STANDALONE;
}

/* Both nodes hold still: discard one of them. */
void
reconcile (struct sim *sim)
{
  struct node *a = &sim->nodes[0], *b = &sim->nodes[1];
  struct schedule *schedule = &sim->schedule;

  if (!standalone (sim, a) && !standalone (sim, b)) {
    schedule->split_since = 0;
    return;
  }
  if (schedule->split_since == 0) {
    schedule->split_since = sim->now;
    schedule->loser = (int)rng_below (&sim->rng, NODES);
    sim_count (sim, T_SPLIT_BRAINS);
    if (!sim->forks)
      sim_violate (sim, "G3: split brain, and nobody had asked for it");
  }
  if (standalone (sim, a) && standalone (sim, b)) {
    if (schedule->stage == HEAL_NO && rng_percent (&sim->rng, 50))
      return;
    operators_send (sim, &sim->nodes[schedule->loser], TL_CMD_DISCARD, 0, 0);
    return;
  }
  if (schedule->stage != HEAL_NO && a->alive && b->alive &&
      sim->now > schedule->split_since + 6 * sim->deadline + 12000 * MS &&
      sim->now > schedule->heal_since + 6 * sim->deadline + 12000 * MS &&
      sim->now > a->born + 6 * sim->deadline + 12000 * MS &&
      sim->now > b->born + 6 * sim->deadline + 12000 * MS)
    sim_violate (sim, "%s is StandAlone and %s does not see why",
                 standalone (sim, a) ? a->name : b->name,
                 standalone (sim, a) ? b->name : a->name);
}

/* Nothing is left that may serve.  Where operators use force, they do so now:
 * then service must come back.
 */
bool
reconcile_by_force (struct sim *sim)
{
  struct schedule *schedule = &sim->schedule;
  struct node *best = NULL;

  if (!sim->forceful || schedule->forced)
    return false;
  for (unsigned i = 0; i < NODES; i++) {
    struct node *node = &sim->nodes[i];

    if (node->alive && node_status (sim, node)->view.number != 0 &&
        (!best ||
         node_status (sim, node)->disk > node_status (sim, best)->disk))
      best = node;
  }
  if (!best)
    return false;
  schedule->forced = true;
  schedule->heal_since = sim->now;
  schedule->heal_until = sim->now + 33 * sim->deadline + 3000 * MS;
  operators_send (sim, best, TL_CMD_PROMOTE, TL_FORCE, 0);
  return true;
}
