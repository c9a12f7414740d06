/* The oracle: knows what every client was told, and checks after each step
 * that no node breaks a guarantee of the design.
 *
 * There is one history.  A promotion begins an era, which is called by the
 * number of its view; the versions of a sector are ordered by era, then by when
 * they were issued, which is the order in which a primary applies them.  A
 * version that was acknowledged, or read, is the sector's floor: from then on
 *
 * G1  at an acknowledgement under a view of two members the other member holds
 *     that version or a newer one;
 * G2  a node that becomes primary holds every floor, and no torn block;
 * G3  an acknowledgement in an old era is of something that the newer primary
 *     began with; two views of one number never both acknowledge; no client is
 *     let in where the data is not good;
 * G4  every request ends within its deadline;
 * G7  a read shows nothing older than the floors were when it was issued.
 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
oracle_reset (struct sim *sim)
{
  struct oracle *oracle = &sim->oracle;

  oracle->n = 0;
  oracle->era = 0;
  oracle->sequence = 0;
  oracle->promotions = 0;
  history_reset (sim);
  oracle->n_sectors = (unsigned)(sim->size / SECTOR);
  for (unsigned i = 0; i < oracle->n_sectors; i++)
    oracle->sectors[i] = (struct sector){.n_zeroes = 1};
}

static uint32_t
first_of (const struct op *op)
{
  return (uint32_t)(op->request.offset / SECTOR);
}

static uint32_t
count_of (const struct op *op)
{
  return op->request.length / SECTOR;
}

/* A request is about to enter its node. */
void
oracle_invoke (struct sim *sim, struct op *op)
{
  struct oracle *oracle = &sim->oracle;
  uint32_t first = first_of (op), count = count_of (op);

  op->version = 0;
  if (op->request.op == TL_OP_READ)
    memcpy (op->floors, history_floors (sim, &sim->nodes[op->node]) + first,
            count * sizeof op->floors[0]);
  if (op->request.op != TL_OP_WRITE && op->request.op != TL_OP_ZERO)
    return;

  if (oracle->n == oracle->room) {
    oracle->room = oracle->room ? oracle->room * 2 : 1024;
    oracle->versions =
        realloc (oracle->versions, oracle->room * sizeof *oracle->versions);
    if (!oracle->versions)
      abort ();
  }

  struct version *version = &oracle->versions[oracle->n++];

  version->index =
      sim->nodes[op->node].era << 32 | (uint32_t)++oracle->sequence;
  version->invoked = sim->now;
  version->first = first;
  version->count = count;
  version->zero = op->request.op == TL_OP_ZERO;
  version->history =
      (int)(history_of (sim, &sim->nodes[op->node]) - oracle->histories);
  op->version = oracle->n;
  if (version->zero)
    for (uint32_t i = 0; i < count; i++)
      content_zero (&oracle->sectors[first + i], version->index);
  else
    content_fill (op->bytes, op->version, first, count);
}

/* G1: where the view has two members, the other one has these versions. */
static void
check_other (struct sim *sim, struct node *node, struct op *op,
             const struct seen *read)
{
  struct oracle *oracle = &sim->oracle;
  struct node *other = node_other (sim, node);
  uint32_t first = first_of (op), count = count_of (op);
  struct seen seen[SECTORS_MAX];

  if (node_status (sim, node)->view.n_members < 2)
    return;

  /* A member that lost its RAM, and with it its membership, cannot serve: a
   * read may go without it. */
  if (read && !node_member (other))
    return;
  if (other->store) {
    tl_store_read (other->store, op->request.offset, op->request.length,
                   sim->scratch[0]);
    if (!content_see (sim, sim->scratch[0], first, count, NULL, seen,
                      "the other member's store"))
      return;
    sim_count (sim, T_COPIES_CHECKED);
  }

  /* V1: who has a copy of this write, and of little else, is no member. */
  if (op->version != 0 && !sim->forks && other->alive &&
      other->born <= oracle->versions[op->version - 1].invoked &&
      node_status (sim, other)->disk <= TL_DISK_INCONSISTENT)
    sim_violate (sim, "G1: %s answers %s under %s, but %s is %s", node->name,
                 sim_op_text (op), sim_view_text (&node->status.view),
                 other->name, tl_disk_name (node_status (sim, other)->disk));
  for (uint32_t i = 0; i < count; i++) {
    uint32_t number = read ? read[i].version : op->version;

    if (number == 0)
      continue;

    const struct version *version = &oracle->versions[number - 1];

    /* A life that began later may have lost what an earlier one confirmed. */
    if (other->store ? other->ram_born <= version->invoked &&
                           seen[i].most < version->index
                     : other->ram_died < version->invoked) {
      sim_violate (sim,
                   "G1: %s answers %s under %s, but sector %u is not at %s",
                   node->name, sim_op_text (op),
                   sim_view_text (&node->status.view), first + i, other->name);
      return;
    }
  }
}

/* G3: this node may acknowledge, and under this view. */
static void
check_era (struct sim *sim, struct node *node, struct op *op)
{
  const struct oracle *oracle = &sim->oracle;
  const struct tl_view *view = &node_status (sim, node)->view;
  struct history *history = history_of (sim, node);
  uint64_t *id = &history->ids[view->number % VIEWS];

  if (*id != 0 && *id != view->id)
    sim_violate (sim,
                 "G3: %s acknowledges under %s, another view of that "
                 "number has acknowledged",
                 node->name, sim_view_text (view));
  *id = view->id;
  if (op->version == 0)
    return;

  const struct version *version = &oracle->versions[op->version - 1];

  if (version->index >> 32 == history->era)
    return;
  for (uint32_t i = 0; i < version->count; i++)
    if (history->base[version->first + i] < version->index) {
      sim_violate (sim,
                   "G3: %s acknowledges %s, which is not in the store of the "
                   "newer primary (sector %u)",
                   node->name, sim_op_text (op), version->first + i);
      return;
    }
}

static void
check_read (struct sim *sim, struct node *node, struct op *op)
{
  struct history *history = history_of (sim, node);
  uint32_t first = first_of (op), count = count_of (op);
  struct seen seen[OP_SECTORS];
  char where[64];

  /* V6: with reads=local one that does not know that it was overtaken may show
   * what stood when that happened. */
  bool late = sim->reads_local && node->era < history->era;
  bool stale = false;

  snprintf (where, sizeof where, "read at %s", node->name);
  if (!content_see (sim, op->bytes, first, count, op->floors, seen, where))
    return;
  sim->totals[T_SECTORS] += count;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t floor = op->floors[i];

    if (late && history->before[first + i] < floor) {
      stale |= seen[i].most < floor;
      floor = history->before[first + i];
    }
    if (seen[i].most < floor) {
      sim_violate (sim,
                   "G7: %s answers %s with version %u of sector %u "
                   "(index %llx), older than what was known when it was "
                   "issued (index %llx)",
                   node->name, sim_op_text (op), seen[i].version, first + i,
                   (unsigned long long)seen[i].most, (unsigned long long)floor);
      return;
    }
    if (!history_may_show (sim, history, seen[i].version, first + i)) {
      sim_violate (sim,
                   "G3: %s answers %s with version %u of sector %u, which is "
                   "of another history",
                   node->name, sim_op_text (op), seen[i].version, first + i);
      return;
    }
  }
  if (stale)
    sim_count (sim, T_STALE_READS);
  check_other (sim, node, op, seen);
  for (uint32_t i = 0; i < count && !late; i++)
    history_raise (sim, node, first + i, seen[i].least);
}

/* The node has answered a request with success. */
void
oracle_done (struct sim *sim, struct op *op)
{
  static const enum total totals[] = {T_READS, T_WRITES, T_ZEROES, T_FLUSHES};
  struct oracle *oracle = &sim->oracle;
  struct node *node = &sim->nodes[op->node];

  sim_count (sim, totals[op->request.op]);
  if (op->request.op == TL_OP_FLUSH)
    return;
  check_era (sim, node, op);
  if (sim->violated)
    return;
  if (op->request.op == TL_OP_READ) {
    check_read (sim, node, op);
    return;
  }
  check_other (sim, node, op, NULL);

  const struct version *version = &oracle->versions[op->version - 1];

  for (uint32_t i = 0; i < version->count; i++)
    history_raise (sim, node, version->first + i, version->index);
}

/* G2: a primary that claims two copies has a partner that may take over.  It
 * is given time to notice a partner's death.
 */
void
oracle_check_claims (struct sim *sim)
{
  for (unsigned i = 0; i < NODES; i++) {
    struct node *node = &sim->nodes[i], *other = node_other (sim, node);
    uint64_t settled = sim->now - 2 * sim->deadline;

    if (node->alive && sim->schedule.stage != HEAL_ROT &&
        node_status (sim, node)->verify_different != 0) {
      sim_violate (sim, "G6: verify on %s finds a difference", node->name);
      return;
    }
    if (sim->now < 2 * sim->deadline || node->frozen_until > settled ||
        node->born > settled || !node_primary (sim, node) ||
        node_status (sim, node)->copies < 2)
      continue;
    if (other->alive ? other->born < settled && !schedule_entitled (sim, other)
                     : other->died < settled)
      sim_violate (sim, "G2: %s claims two copies, and %s could not serve",
                   node->name, other->name);
  }
}

/* G4: no request may be overdue.  Where the arbiter is asked what to do about a
 * lost partner, its answer may take 0.9 s more.  The later part of a request
 * has what is left of the time of the whole, and 50 ms at least.
 */
static void
check_deadline (struct sim *sim, struct node *node)
{
  uint64_t limit = sim->deadline;

  if (sim->policy == TL_POLICY_FREEZE)
    return;
  if (sim->policy == TL_POLICY_ARBITER || sim->policy == TL_POLICY_CONTINUE)
    limit += 900 * MS;
  for (struct op *op = node->first; op; op = op->next) {
    uint64_t from = op->invoked, by = op->began + limit;

    if (node->frozen_until > op->invoked) {
      from = node->frozen_until;
      by = from + limit;
    }
    if (op->request.began != 0)
      by = (by > from ? by : from) + 50 * MS;
    if (sim->now > by + 20 * MS)
      sim_violate (sim, "G4: %s has not answered %s for %.1f ms", node->name,
                   sim_op_text (op), (double)(sim->now - op->began) / 1000);
  }
}

static bool
changed_something (const struct tl_update *update)
{
  for (unsigned i = 0; i < update->n; i++)
    if (update->actions[i].type >= TL_DO_REPLY)
      return true;
  return false;
}

void
oracle_after_step (struct sim *sim, struct node *node)
{
  uint64_t epoch = tl_core_epoch (node->core);
  char why[256];

  if (epoch != node->epoch) {
    node->epoch = epoch;
    if (node_primary (sim, node)) {
      oracle_promoted (sim, node);
      if (sim->violated)
        return;
    }
  }
  check_deadline (sim, node);

  /* Asking again is of no use where nothing has changed that status shows. */
  if (!node->admits && !changed_something (&sim->update) &&
      sim->steps % 16 != 0)
    return;
  node->admits = tl_core_admit (node->core, why, sizeof why) == 0;
  if (!node->admits)
    return;

  const struct tl_status *status = node_status (sim, node);

  if (status->role != TL_PRIMARY ||
      (status->disk != TL_DISK_UPTODATE && status->disk != TL_DISK_CONSISTENT))
    sim_violate (sim, "G3: %s lets clients in as %s with data %s", node->name,
                 tl_role_name (status->role), tl_disk_name (status->disk));
  else if (node->era != sim->oracle.era && !sim->with_arbiter && !sim->forks)
    sim_violate (sim, "G3: %s lets clients in, overtaken", node->name);
}
