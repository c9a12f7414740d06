/* The disk with a node's state file, as server/state uses it: the new record is
 * written beside the old one, renamed over it, and made durable.  So there is
 * the old record or the new one and never a mix; but what a process reads back
 * after a failure, or a crash between the last two, may not be durable yet, and
 * a power cut may bring the old one back.  Operators have accidents too.
 */
#include "sim.h"

#include <string.h>

/* RECORD is what a process reads from now on. */
static void
put (struct sim *sim, struct node *node, const struct tl_record *record,
     bool durable)
{
  history_learn (sim, &record->view);
  node->record = *record;
  node->has_record = true;
  node->unacted = true;
  if (durable) {
    node->durable = *record;
    node->has_durable = true;
  }
}

/* The core wants its record stored. */
void
disk_store (struct sim *sim, struct node *node)
{
  struct rng *rng = &sim->rng;

  if (node->storing) {
    sim_violate (sim, "%s stores its record while it stores it", node->name);
    return;
  }
  node->storing = true;
  node->writing = *tl_core_pending (node->core);
  TRACE (sim, "%s:   store the record: %s, proposal %llu", node->name,
         sim_view_text (&node->writing.view),
         (unsigned long long)node->writing.proposal.number);

  bool bad = node->disk_bad_until > sim->now &&
             rng_percent (rng, 50 + sim->disk_failing);
  uint64_t delay = rng_between (rng, 50, sim->disk_delay);

  if (node->disk_slow_until > sim->now) {
    sim_count (sim, T_RECORDS_SLOW);
    delay +=
        rng_below (rng, rng_percent (rng, 30) ? 2 * sim->deadline + 2500 * MS
                                              : 2 * sim->deadline);
  }
  if (node->disk_stuck_until > sim->now + delay)
    delay = node->disk_stuck_until - sim->now;
  sim_at (sim, sim->now + delay, K_STORED, node, !bad, 0);
  schedule_notice (sim, node);
}

/* A write of the record has ended, well or with an error. */
void
disk_stored (struct sim *sim, struct node *node, bool ok)
{
  struct tl_event event = {.type = TL_EV_STORED};

  /* Where only the last step failed, the new record is there all the same. */
  if (ok || rng_percent (&sim->rng, 25))
    put (sim, node, &node->writing, ok || rng_percent (&sim->rng, 50));
  /* The process may die before it knows. */
  if (ok && sim->ram_kept && sim->schedule.stage == HEAL_NO &&
      rng_percent (&sim->rng, 2)) {
    node->storing = false;
    schedule_crash (sim, node, "crashes, its record just stored", false);
    return;
  }
  /* ... or in the step that acts on it: of a discard there is much to do. */
  if (ok && sim->ram_kept && sim->schedule.stage == HEAL_NO &&
      node->writing.view.number == 0 && node->writing.proposal.number == 0)
    node->doomed = rng_percent (&sim->rng, 80);
  if (ok) {
    node->stored_number = node->record.view.number;
    node->stored_id = node->record.view.id;
  }
  sim_count (sim, ok ? T_RECORDS : T_RECORDS_FAILED);
  node->storing = false;
  event.stored.ok = ok;
  event.stored.reason = ok ? NULL : "no space left on device";
  TRACE (sim, "%s: record %s: %s", node->name,
         ok ? "stored" : "could not be stored",
         sim_view_text (&node->writing.view));
  node_step (sim, node, &event);
  if (ok && node->alive && !node->halted)
    node->unacted = false;
}

/* The node has died, by a POWER cut or not. */
void
disk_crash (struct sim *sim, struct node *node, bool power)
{
  struct rng *rng = &sim->rng;

  /* A write of the record that was under way was made, or not. */
  if (node->storing && rng_percent (rng, 50)) {
    put (sim, node, &node->writing, power || rng_percent (rng, 50));
    sim_count (sim, T_RECORDS_LANDED);
    TRACE (sim, "%s: the record under way is on disk", node->name);
  } else if (node->storing) {
    sim_count (sim, T_RECORDS_CUT_OFF);
  }
  if (power)
    disk_power_cut (sim, node);
  if (rng_percent (rng, sim->forgetful) && !create_waits (sim, node)) {
    /* Somebody removes it, or puts the other node's in its place; or it cannot
     * be read, and is moved away. */
    node->has_record = node->has_durable = false;
    node->misplaced = rng_percent (rng, 30);
    memset (&node->record, 0, sizeof node->record);
    memset (&node->durable, 0, sizeof node->durable);
    sim_count (sim, T_RECORDS_GONE);
    TRACE (sim, "%s: the record is lost%s", node->name,
           node->misplaced ? ", the other node's is in its place" : "");
  }
}

/* A process starts.  False where it refuses to: what it finds is the record of
 * the other node, until somebody takes that away.
 */
bool
disk_load (struct sim *sim, struct node *node)
{
  const struct node *other = node_other (sim, node);
  char error[256];

  if (!node->misplaced || !other->has_record) {
    if (node->has_record &&
        !tl_record_check (&node->record, "slog0", node->name, sim->size, error,
                          sizeof error))
      sim_violate (sim, "%s does not start with its own record: %s", node->name,
                   error);
    return true;
  }
  node->misplaced = false;
  sim_count (sim, T_RECORDS_MISPLACED);
  if (tl_record_check (&other->record, "slog0", node->name, sim->size, error,
                       sizeof error))
    sim_violate (sim, "%s starts with the record of %s", node->name,
                 other->name);
  TRACE (sim, "%s: does not start: %s", node->name, error);
  return false;
}

/* What was read back and not durable is there after the cut, or not. */
void
disk_power_cut (struct sim *sim, struct node *node)
{
  if (node->has_record == node->has_durable &&
      memcmp (&node->record, &node->durable, sizeof node->record) == 0)
    return;
  if (rng_percent (&sim->rng, 30)) {
    node->durable = node->record;
    node->has_durable = node->has_record;
    return;
  }
  sim_count (sim, T_RECORDS_REVERTED);
  TRACE (sim, "%s: the old record is back: %s for %s", node->name,
         sim_view_text (&node->durable.view),
         sim_view_text (&node->record.view));
  node->record = node->durable;
  node->has_record = node->has_durable;
}
