/* What still holds where acknowledged writes may be lost: each node owes the
 * acknowledged writes that it must have as long as its data is complete,
 * whatever happens to the view.  Nobody overwrites them with something that was
 * not written upon them.  A write is owed by all members of the view that it
 * was acknowledged in.
 *
 * A debt ends with the RAM; with `discard`, on the node that it is given to;
 * and with `promote --force`, on every node whose view the forced one follows,
 * which is told so when it comes: it is overruled, and so is what it
 * acknowledges before it comes.  A node whose view the forced one does not
 * follow keeps what it has, until an operator gives it up.
 *
 * Where nothing may be lost nobody owes anything: there the order of writes
 * tells more (check.c).
 */
#include "explore.h"

/* The write is about to change the store of its node. */
void
owed_change (unsigned node, const struct client *r)
{
  world.upon[r->tag] =
      (uint16_t)(world.upon[content (node, r->block)] | 1u << r->tag);
}

/* Has the node all of TAGS in its block, or what was written upon them? */
bool
owed_has (unsigned node, unsigned block, uint16_t tags)
{
  return (tags & ~world.upon[content (node, block)]) == 0;
}

/* Is VIEW in the past of the record?  At an arbiter there is but one line. */
static bool
follows (const struct tl_record *record, const struct tl_view *view)
{
  if (scenario->policy == TL_POLICY_ARBITER)
    return view->number < record->view.number;
  for (unsigned i = 0; i < record->n_history; i++)
    if (record->history[i].id == view->id)
      return true;
  return false;
}

void
owed_acknowledged (unsigned node, const struct client *r)
{
  const struct tl_view *view = &world.nodes[node].core->record.view;

  if (!scenario->may_lose || (world.forced && world.nodes[!node].has_record &&
                              follows (&records[!node], view)))
    return;
  world.owed[node][r->block] |= (uint16_t)(1u << r->tag);
  if (view->n_members == 2)
    world.owed[!node][r->block] |= (uint16_t)(1u << r->tag);
}

void
owed_nothing (unsigned node)
{
  memset (world.owed[node], 0, sizeof world.owed[node]);
}

/* The node was promoted by force: what it has is the data. */
void
owed_forced (unsigned node)
{
  const struct tl_record *record = &world.nodes[node].core->record;

  world.forced = true;
  owed_nothing (node);
  if (!world.nodes[!node].has_record ||
      records[!node].view.id == record->view.id ||
      follows (record, &records[!node].view))
    owed_nothing (!node);
}

void
owed_check (unsigned node)
{
  const struct tl_core *c = world.nodes[node].core;

  if (c->kept->data != TL_COMPLETE)
    return;
  for (unsigned b = 0; b < BLOCKS; b++)
    if (!owed_has (node, b, world.owed[node][b]))
      violate ("node %c has %u in block %u of its complete data, which is not "
               "upon what was acknowledged with it",
               node_name (node), content (node, b), b);
}
