/* The oracle at a promotion: G2 and G3.  The new primary holds everything that
 * was acknowledged in its history, and nothing of another; by force it is what
 * it holds that counts.
 */
#include "sim.h"

#include <stdio.h>
#include <string.h>

/* NODE was promoted by force: what it holds is the data from now on. */
static void
forced (struct sim *sim, struct node *node, struct history *history,
        const struct seen *seen)
{
  struct oracle *oracle = &sim->oracle;
  bool lost = false;

  for (unsigned i = 0; i < oracle->n_sectors; i++) {
    uint64_t index = seen[i].most;

    lost |= index < history->floor[i];
    if (seen[i].version == 0) {
      index = node->era << 32 | (uint32_t)++oracle->sequence;
      content_zero (&oracle->sectors[i], index);
    }
    history->floor[i] = history->base[i] = index;
    history->begun[i] = seen[i].version;
  }
  sim_count (sim, T_FORCED);
  if (lost)
    sim_count (sim, T_FORCED_LOST);
}

/* The node has become primary. */
void
oracle_promoted (struct sim *sim, struct node *node)
{
  struct oracle *oracle = &sim->oracle;
  struct node *other = node_other (sim, node);
  struct history *history = history_of (sim, node);
  struct seen seen[SECTORS_MAX];
  char where[64];

  node->era = node_status (sim, node)->view.number;
  node->primary_view = node->status.view.id;
  node->forcing = false;
  node->demoted = 0;
  TRACE (sim, "%s: PRIMARY, %s", node->name,
         sim_view_text (&node->status.view));
  if (sim->with_arbiter && node->era < history->era)
    return; /* overtaken and not aware of it: it can acknowledge nothing */
  if (oracle->era != 0) {
    oracle->promotions++;
    sim_count (sim, T_PROMOTIONS);
  }
  if (!sim->forks && !sim->with_arbiter && node_primary (sim, other)) {
    sim_violate (sim, "G3: %s becomes primary while %s is", node->name,
                 other->name);
    return;
  }
  snprintf (where, sizeof where, "store of the new primary %s", node->name);
  tl_store_read (node->store, 0, sim->size, sim->scratch[0]);
  if (!content_see (sim, sim->scratch[0], 0, oracle->n_sectors, NULL, seen,
                    where))
    return;
  sim_count (sim, T_STORES_SCANNED);

  /* With `continue` the other may have gone on from this very view already:
   * only what came before binds this one. */
  const uint64_t *floors = history_floors (sim, node);
  bool newest = node->era >= history->acted, first = history->primary < 0;

  if (newest && history->primary != node->index)
    memcpy (history->before, history->floor, sizeof history->before);
  if (newest) {
    history->primary = node->index;
    history->era = history->acted = node->era;
  }
  if (oracle->era < node->era)
    oracle->era = node->era;
  clients_turn (sim, node);
  if (history->forced && first) {
    forced (sim, node, history, seen);
    return;
  }
  for (unsigned i = 0; i < oracle->n_sectors; i++) {
    if (seen[i].most < floors[i]) {
      sim_violate (sim,
                   "G2: %s becomes primary with version %u of sector %u "
                   "(index %llx), an acknowledged one is lost (index %llx)",
                   node->name, seen[i].version, i,
                   (unsigned long long)seen[i].most,
                   (unsigned long long)floors[i]);
      return;
    }
    if (!history_may_show (sim, history, seen[i].version, i)) {
      sim_violate (sim,
                   "G3: %s becomes primary with version %u of sector %u, "
                   "which is of another history",
                   node->name, seen[i].version, i);
      return;
    }
    if (newest)
      history->base[i] = seen[i].most;
  }
}
