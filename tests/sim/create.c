/* How a volume is born, and who tries that again when it should not be. */
#include "sim.h"

/* A create that would be foolish in earnest: every record of the volume is
 * lost.  It may be tried where the other node still has RAM that says so.
 */
bool
create_would_lose (struct sim *sim, struct node *node)
{
  const struct node *other = node_other (sim, node);

  return schedule_newest (sim)->number == 0 &&
         !(sim->ram_kept && other->alive && other->kept.data == TL_COMPLETE &&
           node_connected (sim, node));
}

/* Does a create wait that would be carried out if NODE's record were lost too?
 */
bool
create_waits (struct sim *sim, struct node *node)
{
  if (node_other (sim, node)->record.view.number != 0)
    return false;
  for (unsigned i = 0; i < COMMANDS; i++)
    if (sim->schedule.commands[i].used &&
        sim->schedule.commands[i].command == TL_CMD_CREATE)
      return true;
  return false;
}

/* NODE has started and knows no volume: an operator creates it anew. */
void
create_anew (struct sim *sim, struct node *node)
{
  if (sim->schedule.stage == HEAL_NO && sim->schedule.created &&
      !node->has_record && rng_percent (&sim->rng, 40))
    operators_send (sim, node, TL_CMD_CREATE, 0,
                    rng_below (&sim->rng, sim->deadline));
}

/* An operator makes the volume, as soon as that can be done. */
void
create_volume (struct sim *sim)
{
  struct schedule *schedule = &sim->schedule;
  struct node *node = &sim->nodes[schedule->creator];
  struct node *other = node_other (sim, node);

  if (!node->alive)
    return;
  if (node_status (sim, node)->view.number != 0 ||
      (other->alive && node_status (sim, other)->view.number != 0)) {
    schedule->created = true;
    schedule->created_at = sim->now;
    return;
  }
  if (schedule->alone)
    operators_send (sim, node, TL_CMD_CREATE, TL_ALONE, 0);
  else if (node_connected (sim, node) || rng_percent (&sim->rng, 5)) {
    operators_send (sim, node, TL_CMD_CREATE, 0, 0);
    if (sim->schedule.stage == HEAL_NO && rng_percent (&sim->rng, 3)) {
      fault_stuck (sim, other);
      if (rng_percent (&sim->rng, 70)) /* this one for not quite so long */
        node->disk_stuck_until =
            sim->now + sim->deadline + rng_below (&sim->rng, 1000 * MS);
    }

    /* Two operators have the same idea. */
    if (node_connected (sim, node) && node_connected (sim, other) &&
        rng_percent (&sim->rng, 5))
      operators_send (sim, other, TL_CMD_CREATE, 0,
                      rng_below (&sim->rng, 2 * MS));
  }
}
