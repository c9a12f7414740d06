/* A node's life: start, steps, death.  RAM (core and store) dies with it; the
 * record on its disk does not.
 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void
node_init (struct sim *sim, int index)
{
  struct node *node = &sim->nodes[index];

  memset (node, 0, sizeof *node);
  node->index = index;
  node->name = index == 0 ? "a" : "b";
}

/* For verify: the checksum of a block as the store has it. */
static uint64_t
sum (void *opaque, uint64_t block)
{
  struct node *node = opaque;
  unsigned char bytes[TL_BLOCK];

  tl_store_read (node->store, block * TL_BLOCK, TL_BLOCK, bytes);
  return tl_payload_checksum (bytes, TL_BLOCK);
}

void
node_start (struct sim *sim, struct node *node)
{
  node->alive = true;
  node->life++;
  node->born = sim->now;
  node->clock = rng_between (&sim->rng, 1, UINT64_C (1) << 40);
  node->frozen_until = 0;
  node->storing = node->asking = node->dialling = false;
  node->wake = node->wanted = UINT64_MAX;
  node->spins = 0;
  node->next_conn = 0;
  node->admits = false;
  node->primary_view = node->connected_view = node->hello_view = 0;
  node->counts = false;
  node->stored_number = node->record.view.number;
  node->stored_id = node->record.view.id;
  node->first = node->last = NULL;
  node->doomed = false;
  node->deaf_until = 0;
  node->stopping = false;
  node->halting = 0;
  ram_open (sim, node);

  struct tl_core_config config = {
      .volume = "slog0",
      .node = node->name,
      .size = sim->size,
      .arbiter = sim->with_arbiter,
      .policy = sim->policy,
      .deadline = sim->deadline,
      .auto_promote = sim->auto_promote,
      .reads_local = sim->reads_local,
      .resync_rate = sim->resync_rate,
      .incarnation = node->incarnation,
      .kept = sim->ram_kept ? &node->kept : NULL,
      .kept_map = sim->ram_kept ? node->kept_map : NULL,
      .allocated = tl_store_allocated (node->store),
      .sum = sum,
      .sum_opaque = node,
  };

  node->core = tl_core_new (&config, node->has_record ? &node->record : NULL);
  if (!node->core) {
    fputs ("twinlog-sim: out of memory\n", stderr);
    _exit (3);
  }
  node->epoch = tl_core_epoch (node->core);
  TRACE (sim, "%s: starts, life %u, record %s", node->name, node->life,
         node->has_record ? sim_view_text (&node->record.view) : "none");

  struct tl_event event = {.type = TL_EV_START};

  node_step (sim, node, &event);
  create_anew (sim, node);
}

/* The node is gone from one moment to the next. */
static void
gone (struct sim *sim, struct node *node, bool orderly, bool ram_lost)
{
  const struct tl_status *status = node_status (sim, node);

  sim->resyncs += status->resyncs;
  sim->resyncs_full += status->resyncs_full;

  if (node->store)
    node->died_member = node_member (node);

  /* Where the RAM outlives the process, what takes both is the power. */
  disk_crash (sim, node,
              ram_lost && (sim->ram_kept || rng_percent (&sim->rng, 50)));
  free (node->halted);
  node->halted = NULL;
  node->alive = false;
  node->died = sim->now;
  network_node_died (sim, node, orderly);
  operators_node_died (sim, node);
  clients_node_died (sim, node);
  tl_core_free (node->core);
  node->core = NULL;
  if (ram_lost || !sim->ram_kept)
    ram_lose (sim, node);
}

void
node_kill (struct sim *sim, struct node *node, const char *how, bool ram_lost)
{
  TRACE (sim, "fault: %s %s%s", node->name, how,
         sim->ram_kept && !ram_lost ? ", its RAM is kept" : "");
  gone (sim, node, false, ram_lost);
}

void
node_stop (struct sim *sim, struct node *node)
{
  struct tl_event event = {.type = TL_EV_STOP};

  TRACE (sim, "%s: is told to stop", node->name);
  node->doomed = false;
  node->halting = 0;
  node->stopping = true;
  node_step (sim, node, &event);
  if (sim->violated)
    return;
  if (node->first)
    sim_violate (sim, "%s stops and leaves %s waiting", node->name,
                 sim_op_text (node->first));
  /* Until the process has ended it answers. */
  if (rng_percent (&sim->rng, 50))
    node_gone (sim, node);
  else
    sim_at (sim, sim->now + rng_below (&sim->rng, 4 * MS), K_GONE, node, 0, 0);
}

void
node_gone (struct sim *sim, struct node *node)
{
  gone (sim, node, true, false);
}

/* The process dies in the middle of this step: some of what it was to do is
 * done, and nobody is answered.
 */
static void
die_halfway (struct sim *sim, struct node *node, const struct tl_event *event)
{
  sim->update.n = rng_percent (&sim->rng, 30)
                      ? 0
                      : (unsigned)rng_below (&sim->rng, sim->update.n + 1);
  sim->update.done = NULL;
  executor_run (sim, node, event);
  if (!sim->violated)
    schedule_crash (sim, node, "crashes in this step", false);
}

/* A step that others wait for is not torn apart. */
static bool
may_halt (const struct tl_event *event)
{
  return event->type != TL_EV_START && event->type != TL_EV_STOP &&
         event->type != TL_EV_COMMAND;
}

/* The process is stopped in the middle of this step. */
static void
halt (struct sim *sim, struct node *node, const struct tl_event *event)
{
  unsigned n = sim->update.n;
  struct halted *halted = malloc (sizeof *halted);

  if (!halted)
    abort ();
  sim_count (sim, T_HALTS);
  halted->next = rng_percent (&sim->rng, 50)
                     ? n /* and only the answers are missing */
                     : (unsigned)rng_below (&sim->rng, n + 1);
  halted->update = sim->update;
  halted->event = *event;
  if (event->type == TL_EV_FRAME) {
    halted->frame = *event->frame.frame;
    halted->event.frame.frame = &halted->frame;
    if (event->frame.payload)
      memcpy (halted->payload, event->frame.payload, halted->frame.payload);
    halted->event.frame.payload = halted->payload;
  }
  /* A connection that ends takes what came on it along. */
  executor_act (sim, node, &halted->event, 0, halted->next);
  node->halted = halted;
  node->frozen_until =
      sim->now + rng_between (&sim->rng, sim->deadline / 10, sim->deadline * 3);
  sim_at (sim, node->frozen_until, K_RESUME, node, 0, 0);
  TRACE (sim, "fault: %s is frozen in the middle of this step for %.0f ms",
         node->name, (double)(node->frozen_until - sim->now) / 1000);
}

void
node_resume (struct sim *sim, struct node *node)
{
  struct halted *halted = node->halted;

  TRACE (sim, "%s: goes on with its step", node->name);
  node->halted = NULL;
  sim->update = halted->update;
  executor_act (sim, node, &halted->event, halted->next, sim->update.n);
  executor_answer (sim, node);
  free (halted);
  if (!sim->violated)
    oracle_after_step (sim, node);
}

void
node_step (struct sim *sim, struct node *node, struct tl_event *event)
{
  if (sim->violated || !node->alive)
    return;
  event->now = sim->now + node->clock;
  event->random = rng_next (&sim->rng);
  sim->steps++;
  node->status_valid = false;
  tl_core_step (node->core, event, &sim->update);
  if (sim->forks)
    history_enter (sim, node);
  if (node->doomed) {
    die_halfway (sim, node, event);
    return;
  }
  if (node->halting > 0 && --node->halting == 0 && may_halt (event)) {
    halt (sim, node, event);
    return;
  }
  executor_run (sim, node, event);
  if (!sim->violated)
    oracle_after_step (sim, node);
}

void
node_wake (struct sim *sim, struct node *node, uint64_t generation)
{
  struct tl_event event = {.type = TL_EV_TIME};

  if (generation != node->wake_generation)
    return;
  node->spins = node->last_wake == sim->now ? node->spins + 1 : 0;
  node->last_wake = sim->now;
  node->wake = UINT64_MAX;
  if (node->spins > 2000) {
    sim_violate (sim, "%s asks to be woken at once without end", node->name);
    return;
  }
  TRACE (sim, "%s: time", node->name);
  node_step (sim, node, &event);
}

/* Does the node's record count its RAM as a member?  Where the RAM is lost: did
 * it when that happened?
 */
bool
node_member (const struct node *node)
{
  return node->store ? node->record.incarnation == node->incarnation
                     : node->died_member;
}

const struct tl_status *
node_status (struct sim *sim, struct node *node)
{
  if (!node->status_valid) {
    tl_core_status (node->core, sim->now + node->clock, &node->status);
    node->status_valid = true;
    if (node->status.changed != tl_core_changed (node->core))
      sim_violate (sim, "%s shows a change of %llu at %llu", node->name,
                   (unsigned long long)tl_core_changed (node->core),
                   (unsigned long long)node->status.changed);
  }
  return &node->status;
}

bool
node_primary (struct sim *sim, struct node *node)
{
  return node->alive && node_status (sim, node)->role == TL_PRIMARY;
}

bool
node_connected (struct sim *sim, struct node *node)
{
  return node->alive && node_status (sim, node)->link >= TL_LINK_CONNECTED;
}
