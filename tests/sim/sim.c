/* One run: set up, take what happens next, until the end or a violation. */
#include "sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void
sim_violate (struct sim *sim, const char *format, ...)
{
  va_list args;

  if (sim->violated)
    return;
  sim->violated = true;
  va_start (args, format);
  vsnprintf (sim->violation, sizeof sim->violation, format, args);
  va_end (args);
  TRACE (sim, "VIOLATION: %s", sim->violation);
}

/* Something for a node: is the process that it is meant for still there, and
 * does it run?  What a frozen one would get waits for it.
 */
static bool
reaches (struct sim *sim, const struct entry *entry)
{
  struct node *node = &sim->nodes[entry->node];

  if (!node->alive || node->life != entry->life)
    return false;

  uint64_t until = node->frozen_until;

  /* What the peer has sent, and the answer to it. */
  if ((entry->kind == K_ARRIVE || entry->kind == K_FIN ||
       entry->kind == K_BATCH_END) &&
      node->deaf_until > until)
    until = node->deaf_until;
  if (until <= sim->now && (!node->halted || entry->kind == K_RESUME))
    return true;

  struct entry again = *entry;

  again.time = until;
  queue_push (&sim->queue, &again);
  return false;
}

static void
dispatch (struct sim *sim, const struct entry *entry)
{
  struct node *node = entry->node >= 0 ? &sim->nodes[entry->node] : NULL;
  struct tl_event event = {.type = TL_EV_BATCH_END};

  switch (entry->kind) {
  case K_WAKE:
    node_wake (sim, node, entry->a);
    break;
  case K_CONNECTED:
    network_connected (sim, entry->a, entry->b);
    break;
  case K_DIAL:
    network_dial_arrives (sim, (int)entry->a, (uint32_t)entry->b);
    break;
  case K_DIAL_FAILED:
    network_dial_failed (sim, node, "connection refused");
    break;
  case K_ARRIVE:
    wire_arrive (sim, entry->a, entry->b, entry->c);
    break;
  case K_FIN:
    network_fin (sim, entry->a, entry->b);
    break;
  case K_BATCH_END:
    node_step (sim, node, &event);
    break;
  case K_STORED:
    disk_stored (sim, node, entry->a != 0);
    break;
  case K_QUESTION:
    arbiter_question (sim, entry->a);
    break;
  case K_ANSWER:
    arbiter_answer (sim, entry->a, entry->b != 0);
    break;
  case K_CLIENT:
    clients_tick (sim, entry->a);
    break;
  case K_THAW:
    node = &sim->nodes[entry->a];
    if (node->alive && node->life == entry->b)
      clients_thaw (sim, node);
    break;
  case K_COMMAND:
    operators_command (sim, node, (enum tl_command)entry->a,
                       (unsigned)entry->b);
    break;
  case K_RESTART:
    node = &sim->nodes[entry->a];
    if (!node->alive && node->life == entry->b) {
      if (!disk_load (sim, node)) {
        sim_at (sim, sim->now + rng_below (&sim->rng, sim->deadline), K_RESTART,
                NULL, (uint64_t)node->index, node->life);
        break;
      }
      if (node->life > 0)
        sim_count (sim, T_RESTARTS);
      node_start (sim, node);
    }
    break;
  case K_SCHEDULE:
    schedule_tick (sim);
    break;
  case K_TAKEOVER:
    schedule_takeover (sim, node);
    break;
  case K_STRIKE:
    node = &sim->nodes[entry->a];
    if (node->life == entry->b)
      schedule_strike (sim, node);
    break;
  case K_LINK:
    fault_link_stops (sim, (unsigned)entry->a, entry->b);
    break;
  case K_RESUME:
    node_resume (sim, node);
    break;
  case K_GONE:
    node_gone (sim, node);
    break;
  case K_HEAL:
    heal_tick (sim);
    break;
  }
}

static void
end (struct sim *sim)
{
  uint64_t resyncs = sim->resyncs, full = sim->resyncs_full;

  for (unsigned i = 0; i < NODES; i++) {
    struct node *node = &sim->nodes[i];

    if (node->alive && !sim->violated) {
      resyncs += node_status (sim, node)->resyncs;
      full += node_status (sim, node)->resyncs_full;
    }
    tl_core_free (node->core);
    node->core = NULL;
    free (node->halted);
    node->halted = NULL;
    node->alive = false;
    ram_lose (sim, node);
  }
  sim->totals[T_RESYNCS_FULL] += full;
  sim->totals[T_RESYNCS_PARTIAL] += resyncs - full;
  sim->totals[T_EVENTS] += sim->events;
  sim->totals[T_TIME] += sim->now; /* microseconds, until it is printed */
  sim->totals[T_STEPS] += sim->steps;
  sim_count (sim, T_SEEDS);
  if (sim->oracle.promotions)
    sim_count (sim, T_WITH_PROMOTION);
  if (resyncs)
    sim_count (sim, T_WITH_RESYNC);
  if (sim->oracle.promotions && resyncs)
    sim_count (sim, T_WITH_BOTH);
}

/* Run one seed.  SIM keeps memory from one run to the next; afterwards
 * sim->violated and sim->violation tell how it went.
 */
void
sim_run (struct sim *sim, uint64_t seed)
{
  struct entry entry;

  sim->seed = seed;
  rng_seed (&sim->rng, seed);
  sim->now = sim->events = sim->steps = 0;
  sim->resyncs = sim->resyncs_full = 0;
  sim->violated = false;
  queue_reset (&sim->queue);
  network_reset (sim);
  arbiter_reset (sim);
  schedule_reset (sim);
  oracle_reset (sim);
  clients_reset (sim);
  TRACE (sim, "seed %llu: %u blocks, %s, policy %s, deadline %llu ms",
         (unsigned long long)seed, sim->blocks,
         sim->with_arbiter ? "arbiter" : "no arbiter",
         tl_policy_name (sim->policy),
         (unsigned long long)(sim->deadline / MS));
  while (!sim->violated && sim->schedule.stage != HEAL_DONE &&
         queue_pop (&sim->queue, &entry)) {
    sim->now = entry.time;
    if (entry.node >= 0 && !reaches (sim, &entry))
      continue;
    if (network_held (sim, &entry))
      continue;
    if (entry.kind != K_WAKE ||
        entry.a == sim->nodes[entry.node].wake_generation)
      sim->events++;
    dispatch (sim, &entry);
  }
  end (sim);
}
