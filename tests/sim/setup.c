/* How the pair of a seed is configured, and which faults are to its taste. */
#include "sim.h"

#include <string.h>

/* Who decides when a partner is lost, and may it be overruled? */
static void
protect (struct sim *sim)
{
  struct rng *rng = &sim->rng;

  sim->with_arbiter = rng_percent (rng, 50);
  sim->policy = TL_POLICY_ERROR;
  if (sim->with_arbiter) {
    sim_count (sim, T_WITH_ARBITER);
    if (rng_percent (rng, 90))
      sim->policy = TL_POLICY_ARBITER;
  } else {
    unsigned draw = (unsigned)rng_below (rng, 100);

    if (draw < 10)
      sim->policy = TL_POLICY_FREEZE;
    else if (draw < 20)
      sim->policy = TL_POLICY_CONTINUE;
  }
  if (sim->policy == TL_POLICY_FREEZE)
    sim_count (sim, T_WITH_FREEZE);
  if (sim->policy == TL_POLICY_CONTINUE)
    sim_count (sim, T_WITH_CONTINUE);
  sim->forceful = rng_percent (rng, 6);
  if (sim->forceful)
    sim_count (sim, T_WITH_FORCE);
  sim->forks = sim->forceful || sim->policy == TL_POLICY_CONTINUE;
}

static void
configure (struct sim *sim)
{
  struct rng *rng = &sim->rng;
  static const uint64_t deadlines[] = {200 * MS, 300 * MS, 500 * MS, 1000 * MS};
  static const uint64_t delays[] = {200, MS, 3 * MS, 10 * MS};
  static const uint64_t disks[] = {500, 5 * MS, 30 * MS};

  sim->blocks = (unsigned)rng_between (rng, 16, BLOCKS_MAX);
  sim->size = (uint64_t)sim->blocks * TL_BLOCK;
  protect (sim);
  sim->deadline = deadlines[rng_below (rng, 4)];
  sim->network.delay_min = 20;
  sim->network.delay_max = delays[rng_below (rng, 4)];
  sim->network.corrupt = rng_percent (rng, 15) ? 40 : 0;
  sim->network.strange = rng_percent (rng, 20) ? 10 : 0;
  sim->disk_delay = disks[rng_below (rng, 3)];
  sim->disk_failing = (unsigned)rng_between (rng, 0, 50);
  sim->ram_kept = rng_percent (rng, 35);
  sim->resync_rate = 0;
  if (rng_percent (rng, 20)) {
    sim_count (sim, T_WITH_RATE);
    sim->resync_rate = UINT64_C (1) << rng_between (rng, 18, 24);
  }
  sim->loop_late = 20;
  sim->loop_late_by = 2 * MS;
  if (rng_percent (rng, sim->resync_rate ? 50 : 5)) {
    sim->loop_late = 70;
    sim->loop_late_by = 12 * MS;
  }
  sim->reads_local = sim->with_arbiter && rng_percent (rng, 12);
  if (sim->reads_local)
    sim_count (sim, T_WITH_LOCAL_READS);
  sim->auto_promote = sim->with_arbiter && rng_percent (rng, 30);
  if (sim->auto_promote)
    sim_count (sim, T_WITH_AUTO_PROMOTE);
  sim->forgetful =
      rng_percent (rng, 6) ? (unsigned)rng_between (rng, 5, 50) : 0;
  sim->arbiter.unknown = rng_percent (rng, 50) ? 20 : 2;
}

static void
weigh (struct sim *sim)
{
  struct schedule *schedule = &sim->schedule;
  static const unsigned usual[FAULTS] = {
      [F_NOTHING] = 20,  [F_CRASH_PRIMARY] = 12, [F_CRASH_SECONDARY] = 8,
      [F_STOP] = 3,      [F_CUT] = 12,           [F_DOWN] = 8,
      [F_ONE_WAY] = 6,   [F_FREEZE] = 5,         [F_DISK] = 7,
      [F_ARBITER] = 6,   [F_MEDDLE] = 10,        [F_PAUSE] = 6,
      [F_TAKEOVER] = 10, [F_HALT] = 6,           [F_DEAFEN] = 4,
      [F_SLOW] = 3,      [F_SWIZZLE] = 4,        [F_CLOCK] = 3,
  };

  memcpy (schedule->weights, usual, sizeof usual);
  if (sim->policy == TL_POLICY_CONTINUE)
    schedule->weights[F_TAKEOVER] *= 5;
  if (sim->forceful)
    schedule->weights[F_MEDDLE] *= 3;

  /* Each seed has its own taste: some faults often, some never. */
  for (unsigned i = 0; i < FAULTS; i++) {
    if (rng_percent (&sim->rng, 20))
      schedule->weights[i] *= 4;
    else if (rng_percent (&sim->rng, 15) && i != F_CRASH_PRIMARY)
      schedule->weights[i] = 0;
  }
}

void
schedule_reset (struct sim *sim)
{
  struct schedule *schedule = &sim->schedule;
  struct rng *rng = &sim->rng;

  memset (schedule, 0, sizeof *schedule);
  configure (sim);
  weigh (sim);
  schedule->events_wanted = rng_between (rng, 1000, 1800);
  schedule->pace = rng_between (rng, 30 * MS, 120 * MS);
  if (rng_below (rng, 1000) < 6) {
    /* A long life, with more views than a history has room for. */
    schedule->events_wanted *= 14;
    schedule->pace /= 2;
  }
  schedule->creator = (int)rng_below (rng, NODES);
  schedule->alone = rng_percent (rng, 10);
  schedule->early = rng_percent (rng, 5);
  schedule->aim = (unsigned)rng_between (rng, 0, 5);
  schedule->reckless = rng_percent (rng, 4);
  schedule->demote_next = -1;
  for (int i = 0; i < NODES; i++) {
    node_init (sim, i);
    sim_at (sim, rng_below (rng, 30 * MS), K_RESTART, NULL, (uint64_t)i, 0);
  }
  sim_at (sim, 20 * MS, K_SCHEDULE, NULL, 0, 0);
}
