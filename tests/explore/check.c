/* What must hold in every state, and that none is a dead end. */
#include "explore.h"

#include <stdio.h>

static char
name (unsigned node)
{
  return (char)('a' + node);
}

/* Are both nodes in one and the same session? */
static bool
together (void)
{
  const struct tl_core *a = world.nodes[0].core, *b = world.nodes[1].core;

  return a != NULL && b != NULL && a->phase != PHASE_NONE &&
         b->phase != PHASE_NONE && a->session_id == b->session_id;
}

/* A write was answered. */
void
check_acknowledged (unsigned node, struct client *r)
{
  const struct tl_view *view = &world.nodes[node].core->record.view;
  const struct node *other = &world.nodes[!node];

  if (view->number < world.ack_number ||
      (view->number == world.ack_number &&
       (view->id != world.ack_id || node != world.ack_node)))
    violate ("node %c acknowledges in view %llu after node %c in view %llu",
             name (node), (unsigned long long)view->number,
             name (world.ack_node), (unsigned long long)world.ack_number);
  if (view->n_members == 2 && together () && other->tags[r->block] < r->tag)
    violate ("write %u is acknowledged and node %c does not have it", r->tag,
             name (!node));
  world.ack_number = view->number;
  world.ack_id = view->id;
  world.ack_node = (uint8_t)node;
  if (r->tag > world.acknowledged[r->block])
    world.acknowledged[r->block] = r->tag;
  if (r->tag > world.floor[r->block])
    world.floor[r->block] = r->tag;
}

/* A read was answered, with r->tag. */
void
check_read (unsigned node, struct client *r)
{
  if (r->tag < r->floor)
    violate ("a read on node %c finds %u, and %u was there before it began",
             name (node), r->tag, r->floor);
  if (r->tag > world.floor[r->block])
    world.floor[r->block] = r->tag;
}

/* A node that was overtaken while it takes over may come to think that it is
 * primary.  Where there is an arbiter it then needs its session for every
 * answer, so that its store counts only where that is still there.
 */
static void
check_primary (unsigned node)
{
  const struct node *n = &world.nodes[node];

  if (n->core->config.arbiter && !alone (n->core) && !together ())
    return;

  if (n->core->kept->data != TL_COMPLETE)
    violate ("node %c becomes Primary without complete data", name (node));
  for (unsigned b = 0; b < BLOCKS; b++)
    if (n->tags[b] < world.floor[b])
      violate ("node %c becomes Primary with %u in block %u, where %u was "
               "acknowledged or read",
               name (node), n->tags[b], b, world.floor[b]);
}

static void
check_copies (unsigned node)
{
  struct tl_status status;

  tl_core_status (world.nodes[node].core, world.nodes[node].now, &status);
  if (status.role != TL_PRIMARY || status.copies < 2 || !together ())
    return;
  for (unsigned i = 0; i < 2; i++)
    for (unsigned b = 0; b < BLOCKS; b++)
      if (world.nodes[i].tags[b] < world.acknowledged[b])
        violate ("node %c claims two copies, and node %c has %u in block %u, "
                 "where %u was acknowledged",
                 name (node), name (i), world.nodes[i].tags[b], b,
                 world.acknowledged[b]);
}

/* Is VIEW newer than OTHER, or the same?  Of two with one number and different
 * ids neither is: one of them was stored by its proposer alone.
 */
static bool
newest (const struct tl_view *view, const struct tl_view *other)
{
  return view->number > other->number ||
         (view->number == other->number && view->id == other->id);
}

/* A copy counts that is complete and a member of the newest view of both state
 * files and the arbiter.
 */
static bool
counts (unsigned node)
{
  const struct tl_core *c = world.nodes[node].core;

  return c != NULL && c->record.view.number != 0 && is_member (c) &&
         newest (&c->record.view, &records[0].view) &&
         newest (&c->record.view, &records[1].view) &&
         newest (&c->record.view, &world.arbiter_view);
}

static void
check_copy (unsigned node)
{
  const struct node *n = &world.nodes[node];

  for (unsigned b = 0; b < BLOCKS; b++)
    if (n->tags[b] < world.acknowledged[b])
      violate ("node %c is a complete member of view %llu with %u in block "
               "%u, where %u was acknowledged",
               name (node), (unsigned long long)n->core->record.view.number,
               n->tags[b], b, world.acknowledged[b]);
}

void
check_state (void)
{
  const struct tl_core *a = world.nodes[0].core, *b = world.nodes[1].core;

  for (unsigned i = 0; i < 2; i++) {
    struct node *n = &world.nodes[i];

    if (n->core == NULL)
      continue;
    if (n->epoch != n->core->epoch)
      check_primary (i);
    n->epoch = n->core->epoch;
    if (n->core->standalone)
      violate ("split brain at node %c", name (i));
    if (n->core->role == TL_PRIMARY)
      check_copies (i);
    if (counts (i))
      check_copy (i);
  }
  if (a != NULL && b != NULL && a->role == TL_PRIMARY &&
      b->role == TL_PRIMARY && a->record.view.id == b->record.view.id)
    violate ("both nodes are Primary in view %llu",
             (unsigned long long)a->record.view.number);
}

/* ---- Dead ends ---- */

/* Without any fault everything under way comes to its end, and time passes. */
static void
calm (unsigned rounds)
{
  static const enum move_kind order[] = {MOVE_RESTART, MOVE_STORED,
                                         MOVE_EXECUTE, MOVE_ANSWER,
                                         MOVE_DELIVER, MOVE_DIAL};

  for (unsigned round = 0; round < rounds; round++) {
    bool moved = true;

    for (unsigned steps = 0; moved; steps++) {
      moved = false;
      if (steps > 500) {
        violate ("the nodes never come to rest");
        return;
      }
      for (unsigned k = 0; k < sizeof order / sizeof order[0]; k++)
        for (unsigned node = 0; node < 2; node++)
          for (unsigned arg = 0; arg < QUESTIONS; arg++) {
            bool connection = order[k] == MOVE_DELIVER;

            if (connection && arg >= CONNS)
              continue;
            if (arg > 0 && !connection && order[k] != MOVE_EXECUTE &&
                order[k] != MOVE_ANSWER)
              continue;
            if (move_apply ((struct move){(uint8_t)order[k], (uint8_t)node,
                                          (uint8_t)arg})) {
              moved = true;
              check_state ();
            }
          }
    }
    for (unsigned node = 0; node < 2; node++)
      move_apply ((struct move){MOVE_TIME, (uint8_t)node, 0});
  }
}

static int
primary (void)
{
  for (unsigned i = 0; i < 2; i++)
    if (world.nodes[i].core != NULL && world.nodes[i].core->role == TL_PRIMARY)
      return (int)i;
  return -1;
}

/* From a state in which no fault is left to happen: with both nodes up and
 * connected there must be a primary, or one must let itself be made; it must
 * take a write, and both must have it.  Without an arbiter a node may also ask
 * for the other to be fenced.
 */
void
check_recovers (void)
{
  struct tl_status status;
  struct client *r;
  char why[256];
  int node;

  world.nodes[0].fenced = world.nodes[1].fenced = false;
  calm (12);
  if (violation[0] != '\0' || overflow || (!counts (0) && !counts (1)))
    return;
  node = primary ();
  for (unsigned i = 0; i < 2 && node < 0; i++)
    if (promote_check (world.nodes[i].core, 0, why, sizeof why) == TL_DONE) {
      world_command (i, TL_CMD_PROMOTE, 0);
      calm (12);
      node = primary ();
    } else if (scenario->policy != TL_POLICY_ARBITER &&
               promote_check (world.nodes[i].core, TL_FENCED, why,
                              sizeof why) == TL_DONE) {
      return;
    }
  if (violation[0] != '\0' || overflow)
    return;
  if (node < 0) {
    violate ("dead end: a complete copy is there, and none may serve: %s", why);
    return;
  }
  if (world.n_clients == REQUESTS)
    world.n_clients--; /* of which there is no trace any more */
  world_request ((unsigned)node, TL_OP_WRITE, 0);
  r = &world.clients[world.n_clients - 1];
  calm (3);
  if (violation[0] != '\0' || overflow)
    return;
  tl_core_status (world.nodes[node].core, world.nodes[node].now, &status);
  if (r->pending || r->core.error != 0)
    violate ("dead end: the Primary, node %c, takes no write", name (node));
  else if (status.copies != 2)
    violate ("dead end: node %c stays the only copy", name (node));
}
