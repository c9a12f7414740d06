/* The faults that strike a pair while its machines stay on, one function each:
 * nodes that stop for a while, in whole or in part, the links, the arbiter and
 * the clocks.
 */
#include "sim.h"

/* How long a disk or the arbiter fails: at times for longer than an operator
 * waits for an answer.
 */
static uint64_t
outage (struct sim *sim)
{
  uint64_t most = sim->deadline * 2;

  if (rng_percent (&sim->rng, 15))
    most = sim->deadline * 4 + 3000 * MS;
  return rng_below (&sim->rng, most);
}

static uint64_t
span (struct sim *sim, unsigned divisor)
{
  return rng_between (&sim->rng, sim->deadline / divisor, sim->deadline * 3);
}

/* The whole process stops for a while. */
void
fault_freeze (struct sim *sim, struct node *node)
{
  uint64_t time = span (sim, 10);

  if (!node->alive || node->stopping || node->frozen_until > sim->now)
    return;
  sim_count (sim, T_FREEZES);
  node->frozen_until = sim->now + time;

  /* Its clients' requests may be faster than what else has piled up. */
  if (rng_percent (&sim->rng, 60))
    sim_at (sim, node->frozen_until, K_THAW, NULL, (uint64_t)node->index,
            node->life);
  TRACE (sim, "fault: %s is frozen for %.0f ms", node->name,
         (double)time / 1000);
}

/* ... in the middle of one of its next steps: it has decided, and not yet
 * acted, or not yet answered.
 */
void
fault_halt (struct sim *sim, struct node *node)
{
  if (!node->alive || node->stopping || node->frozen_until > sim->now ||
      node->doomed)
    return;
  node->halting = (unsigned)rng_between (&sim->rng, 1, 40);
}

/* Nothing that the peer sends is looked at, and the rest of the node goes on:
 * its own heartbeats leave in time.
 */
void
fault_deafen (struct sim *sim, struct node *node)
{
  uint64_t time = span (sim, 10);

  if (!node->alive)
    return;
  sim_count (sim, T_APPLY_FROZEN);
  node->deaf_until = sim->now + time;
  TRACE (sim, "fault: the apply path of %s is frozen for %.0f ms", node->name,
         (double)time / 1000);
}

/* All that goes between the nodes takes longer; often by almost as much as the
 * deadline allows, at times by more.
 */
void
fault_slow (struct sim *sim)
{
  uint64_t time = span (sim, 2);

  sim_count (sim, T_SLOW);
  sim->network.slow_until = sim->now + 2 * time;
  sim->network.slow_by = rng_below (&sim->rng, sim->deadline * 6 / 10);
  TRACE (sim, "fault: the link is slow by %.0f ms for %.0f ms",
         (double)sim->network.slow_by / 1000, (double)time / 500);
}

void
fault_link (struct sim *sim, unsigned directions)
{
  uint64_t time = span (sim, 20);

  sim_count (sim, directions == 3 ? T_LINK_DOWN : T_ONE_WAY);
  TRACE (sim, "fault: link down for %.0f ms, direction %u", (double)time / 1000,
         directions);
  network_down (sim, directions, sim->now + time);
  if (rng_percent (&sim->rng, 40))
    network_cut (sim, -1);
}

/* Every link, one direction after the other, stops, and they come back in
 * another order: between the nodes, and from each of them to the arbiter.  What
 * is on such a direction meanwhile is kept by the connection, or lost to it.
 */
void
fault_swizzle (struct sim *sim)
{
  struct rng *rng = &sim->rng;
  uint64_t stops = sim->now, back[2 * NODES];
  unsigned order[2 * NODES];
  unsigned n = sim->with_arbiter ? 2 * NODES : NODES;

  for (unsigned i = 0; i < n; i++)
    order[i] = i;
  for (unsigned i = n; i-- > 1;) {
    unsigned k = (unsigned)rng_below (rng, i + 1), link = order[i];

    order[i] = order[k];
    order[k] = link;
  }
  sim_count (sim, T_SWIZZLES);
  TRACE (sim, "fault: links stop one after the other");
  for (unsigned i = 0; i < n; i++)
    back[i] = span (sim, 10);
  for (unsigned i = 0; i < n; i++) {
    bool loses = rng_percent (rng, 30);

    sim_at (sim, stops, K_LINK, NULL, order[i] | (loses ? 8u : 0u),
            stops + sim->deadline / 4 + back[i]);
    stops += rng_below (rng, sim->deadline / 4);
  }
}

/* One link of a swizzle stops, until UNTIL. */
void
fault_link_stops (struct sim *sim, unsigned link, uint64_t until)
{
  unsigned node = link % NODES;

  if (sim->schedule.stage != HEAL_NO)
    return;
  if ((link & 7) >= NODES) {
    TRACE (sim, "fault: %s does not reach the arbiter", sim->nodes[node].name);
    sim_count (sim, T_ARBITER_CUT);
    sim->arbiter.cut_until[node] = until;
    return;
  }
  TRACE (sim, "fault: what %s sends does not arrive%s", sim->nodes[node].name,
         link & 8 ? ", and is lost" : "");
  sim_count (sim, T_ONE_WAY);
  network_down (sim, 1u << node, until);
  if (link & 8) {
    sim_count (sim, T_ONE_WAY_LOSS);
    network_lose (sim, (int)node);
  }
}

/* The monotonic clock of a node jumps ahead, by seconds or hours. */
void
fault_clock (struct sim *sim, struct node *node)
{
  static const uint64_t most[] = {1, 10, 3600, 24 * 3600};
  uint64_t by =
      rng_between (&sim->rng, 1, most[rng_below (&sim->rng, 4)] * 1000);

  if (!node->alive)
    return;
  sim_count (sim, T_CLOCK_JUMPS);
  TRACE (sim, "fault: the clock of %s jumps by %llu ms", node->name,
         (unsigned long long)by);
  node->clock += by * MS;
  executor_arm (sim, node);
}

void
fault_disk (struct sim *sim, struct node *node)
{
  uint64_t until = sim->now + outage (sim);

  if (rng_percent (&sim->rng, 40)) {
    node->disk_slow_until = until;
    TRACE (sim, "fault: disk of %s is slow", node->name);
  } else {
    node->disk_bad_until = until;
    TRACE (sim, "fault: disk of %s is bad", node->name);
  }
}

/* A disk hangs for longer than an operator waits for an answer, and nothing
 * else happens meanwhile.
 */
void
fault_stuck (struct sim *sim, struct node *node)
{
  uint64_t time = sim->deadline + rng_between (&sim->rng, 1100 * MS, 1500 * MS);

  sim_count (sim, T_DISKS_STUCK);
  node->disk_stuck_until = sim->now + time;
  sim->schedule.quiet_until = sim->now + time + 100 * MS;
  TRACE (sim, "fault: disk of %s hangs for %.0f ms", node->name,
         (double)time / 1000);
}

void
fault_arbiter (struct sim *sim)
{
  if (!sim->with_arbiter)
    return;
  if (rng_percent (&sim->rng, 40)) {
    sim_count (sim, T_ARBITER_SLOW);
    sim->arbiter.slow_until = sim->now + outage (sim);
    TRACE (sim, "fault: the arbiter is slow");
    return;
  }
  if (rng_percent (&sim->rng, 30)) {
    sim->arbiter.astray_until =
        sim->now + rng_below (&sim->rng, sim->deadline * 2);
    TRACE (sim, "fault: the arbiter looks at another record");
    return;
  }
  sim_count (sim, T_ARBITER_DOWN);
  sim->arbiter.down_until = sim->now + outage (sim);
  TRACE (sim, "fault: the arbiter is down");
}
