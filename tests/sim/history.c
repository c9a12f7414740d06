/* Histories: which acknowledged writes a node must have.
 *
 * There is one, unless somebody opts out of the protection.  The policy
 * `continue` lets two primaries go on from the same view, each alone, and an
 * operator's --force makes whatever a node holds the data: each begins another
 * history.  What was acknowledged under a view belongs to that view's history,
 * and to those that begin after it.  What a node shows is of its own history,
 * or was in its store when that began: a split brain is never mixed.
 */
#include "sim.h"

#include <string.h>

static void
begin (struct history *history)
{
  memset (history, 0, sizeof *history);
  history->parent = history->primary = -1;
}

void
history_reset (struct sim *sim)
{
  begin (&sim->oracle.histories[0]);
  sim->oracle.n_histories = 1;
  sim->oracle.n_views = 0;
}

static struct known_view *
find (struct oracle *oracle, uint64_t id)
{
  for (unsigned i = oracle->n_views; i-- > 0;)
    if (oracle->views[i].id == id)
      return &oracle->views[i];
  return NULL;
}

/* What NODE has now is what HISTORY begins with. */
static void
from_store (struct sim *sim, struct node *node, struct history *history)
{
  struct seen seen[SECTORS_MAX];

  tl_store_read (node->store, 0, sim->size, sim->scratch[0]);
  if (!content_see (sim, sim->scratch[0], 0, sim->oracle.n_sectors, NULL, seen,
                    "store that a history begins with"))
    return;
  for (unsigned i = 0; i < sim->oracle.n_sectors; i++)
    history->begun[i] = seen[i].version;
}

/* Whose data is that of VIEW, whose primary is NODE?  Its own, unless the other
 * one is just handing over.
 */
static struct node *
beginner_of (struct sim *sim, const struct tl_view *view, struct node *node)
{
  struct node *other = node_other (sim, node);

  return view->n_members == 2 && node_primary (sim, other) &&
                 node_status (sim, other)->view.id == view->parent
             ? other
             : node;
}

/* VIEW exists now, on a disk or at the arbiter.  The first successor of a view
 * goes on with its history; another one, or one that is FORCED, begins its own.
 */
void
history_learn (struct sim *sim, const struct tl_view *view)
{
  struct oracle *oracle = &sim->oracle;
  struct known_view *known, *parent = find (oracle, view->parent);
  struct node *node = &sim->nodes[view->primary[0] == 'b'];
  bool forced =
      node->forcing && view->n_members == 1 && !node_primary (sim, node);

  if (!sim->forks || view->number == 0 || find (oracle, view->id))
    return;
  if (oracle->n_views == VIEWS_KNOWN || oracle->n_histories == HISTORIES) {
    sim_violate (sim, "more views or histories than the oracle can hold");
    return;
  }
  known = &oracle->views[oracle->n_views++];
  known->id = view->id;
  known->number = view->number;
  known->parent = view->parent;
  known->history = parent ? parent->history : 0;
  known->succeeded = false;
  if (!parent)
    return;
  if (!parent->succeeded && !forced) {
    parent->succeeded = true;
    memcpy (parent->floor, oracle->histories[parent->history].floor,
            sizeof parent->floor);
    return;
  }

  struct history *history = &oracle->histories[oracle->n_histories];
  struct node *beginner = beginner_of (sim, view, node);

  begin (history);
  history->parent = parent->history;
  history->fork = parent->number;
  history->forced = forced;
  history->beginner = beginner->index;
  history->era = node->era;
  memcpy (history->floor,
          parent->succeeded ? parent->floor
                            : oracle->histories[parent->history].floor,
          sizeof history->floor);
  known->history = (int)oracle->n_histories++;
  sim_count (sim, T_FORKS);
  TRACE (sim, "oracle: %s begins history %d%s", sim_view_text (view),
         known->history, forced ? ", by force" : "");
  if (beginner->store)
    from_store (sim, beginner, history);
}

/* The history that NODE is in. */
struct history *
history_of (struct sim *sim, struct node *node)
{
  struct known_view *known;

  if (!sim->forks)
    return &sim->oracle.histories[0];
  known = find (&sim->oracle, node_status (sim, node)->view.id);
  return &sim->oracle.histories[known ? known->history : 0];
}

/* NODE makes a step.  Who thereby enters a history that it began takes along
 * what it wrote meanwhile, also where it has stepped down; not where it has
 * lost that since.
 */
void
history_enter (struct sim *sim, struct node *node)
{
  struct history *history = history_of (sim, node);
  enum tl_disk disk = node_status (sim, node)->disk;
  int now = (int)(history - sim->oracle.histories);

  if (now == node->history)
    return;
  node->history = now;
  if (history->primary < 0 && history->beginner == node->index &&
      disk != TL_DISK_EMPTY && disk != TL_DISK_INCONSISTENT)
    from_store (sim, node, history);
}

/* Which versions of the sectors may NODE not fall behind? */
const uint64_t *
history_floors (struct sim *sim, struct node *node)
{
  struct known_view *known;

  /* With `continue` a primary may not know that its partner goes on alone. */
  if (sim->policy == TL_POLICY_CONTINUE) {
    known = find (&sim->oracle, node_status (sim, node)->view.id);
    if (known && known->succeeded)
      return known->floor;
  }
  return history_of (sim, node)->floor;
}

/* Does HISTORY contain what was acknowledged in view KNOWN? */
static bool
contains (const struct oracle *oracle, const struct history *history,
          const struct known_view *known)
{
  while (history != &oracle->histories[known->history]) {
    if (history->forced || history->parent < 0)
      return false;
    if (history->parent == known->history && history->fork < known->number)
      return false;
    history = &oracle->histories[history->parent];
  }
  return true;
}

/* NODE has shown, or acknowledged, this version of the sector: nothing older
 * may be seen from now on.
 */
void
history_raise (struct sim *sim, struct node *node, uint32_t sector,
               uint64_t index)
{
  struct oracle *oracle = &sim->oracle;
  struct known_view *known;

  if (!sim->forks) {
    content_raise (&oracle->histories[0].floor[sector], index);
    return;
  }
  known = find (oracle, node_status (sim, node)->view.id);
  if (!known)
    return;
  content_raise (&oracle->histories[known->history].acted, known->number);
  for (unsigned i = 0; i < oracle->n_histories; i++)
    if (contains (oracle, &oracle->histories[i], known))
      content_raise (&oracle->histories[i].floor[sector], index);
  if (!known->succeeded)
    return;
  for (unsigned i = 0; i < oracle->n_views; i++) {
    struct known_view *later = &oracle->views[i];

    if (later->history == known->history && later->number >= known->number)
      content_raise (&later->floor[sector], index);
  }
}

/* May a node in HISTORY show VERSION (0: zeroes) of the sector? */
bool
history_may_show (const struct sim *sim, const struct history *history,
                  uint32_t version, uint32_t sector)
{
  int own = (int)(history - sim->oracle.histories);

  return own == 0 && !sim->forks ? true
         : version == 0          ? true
         : history->begun[sector] == version
             ? true
             : sim->oracle.versions[version - 1].history == own;
}
