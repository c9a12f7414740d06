/* What must hold in every state, and that none is a dead end. */
#include "explore.h"

#include <stdio.h>

/* Are both nodes in one and the same session? */
static bool
together (void)
{
  const struct tl_core *a = world.nodes[0].core, *b = world.nodes[1].core;

  return a != NULL && b != NULL && a->phase != PHASE_NONE &&
         b->phase != PHASE_NONE && a->session_id == b->session_id;
}

/* A write or a zero was answered. */
void
check_acknowledged (unsigned node, struct client *r)
{
  const struct tl_view *view = &world.nodes[node].core->record.view;

  if ((view->id == world.ack_id && node != world.ack_node) ||
      (!scenario->may_lose &&
       (view->number < world.ack_number ||
        (view->number == world.ack_number && view->id != world.ack_id))))
    violate ("node %c acknowledges in view %llu after node %c in view %llu",
             node_name (node), (unsigned long long)view->number,
             node_name (world.ack_node), (unsigned long long)world.ack_number);
  if (view->n_members == 2 && together () &&
      (scenario->may_lose
           ? !owed_has (!node, r->block, (uint16_t)(1u << r->tag))
           : content (!node, r->block) < r->tag))
    violate ("write %u is acknowledged and node %c does not have it", r->tag,
             node_name (!node));
  owed_acknowledged (node, r);
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
  if (r->tag < r->floor && !scenario->may_lose)
    violate ("a read on node %c finds %u, and %u was there before it began",
             node_name (node), r->tag, r->floor);
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
    violate ("node %c becomes Primary without complete data", node_name (node));
  for (unsigned b = 0; b < BLOCKS && !scenario->may_lose; b++)
    if (content (node, b) < world.floor[b])
      violate ("node %c becomes Primary with %u in block %u, where %u was "
               "acknowledged or read",
               node_name (node), content (node, b), b, world.floor[b]);
}

static void
check_copies (unsigned node)
{
  struct tl_status status;

  tl_core_status (world.nodes[node].core, world.nodes[node].now, &status);
  if (status.role != TL_PRIMARY || status.copies < 2 || !together ())
    return;
  /* V3: a node that asks for a view has no session. */
  if (world.arbiter_view.n_members == 1 &&
      world.nodes[0].core->record.view.id ==
          world.nodes[1].core->record.view.id)
    violate ("node %c claims two copies, and the arbiter knows of one",
             node_name (node));
  for (unsigned i = 0; i < 2; i++)
    for (unsigned b = 0; b < BLOCKS; b++)
      if (!owed_has (i, b, world.owed[node][b]) ||
          (!scenario->may_lose && content (i, b) < world.acknowledged[b]))
        violate ("node %c claims two copies, and node %c has %u in block %u, "
                 "where %u was acknowledged",
                 node_name (node), node_name (i), content (i, b), b,
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
 * files and the arbiter; where a state file was lost, also of the newest that
 * was acknowledged in.
 */
static bool
counts (unsigned node)
{
  const struct tl_core *c = world.nodes[node].core;

  return c != NULL && c->record.view.number != 0 && is_member (c) &&
         newest (&c->record.view, &records[0].view) &&
         newest (&c->record.view, &records[1].view) &&
         newest (&c->record.view, &world.arbiter_view) &&
         (!world.record_lost || c->record.view.number > world.ack_number ||
          c->record.view.id == world.ack_id);
}

static void
check_copy (unsigned node)
{
  const struct tl_core *c = world.nodes[node].core;

  for (unsigned b = 0; b < BLOCKS; b++)
    if (content (node, b) < world.acknowledged[b])
      violate ("node %c is a complete member of view %llu with %u in block "
               "%u, where %u was acknowledged",
               node_name (node), (unsigned long long)c->record.view.number,
               content (node, b), b, world.acknowledged[b]);
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
    if (n->core->standalone && !scenario->may_lose)
      violate ("split brain at node %c", node_name (i));
    if (n->core->role == TL_PRIMARY)
      check_copies (i);
    if (counts (i) && !scenario->may_lose)
      check_copy (i);
    owed_check (i);
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

/* Where each node owes what the other has not, one of them says so. */
static void
check_told (void)
{
  bool owes[2] = {false, false};

  for (unsigned i = 0; i < 2; i++) {
    const struct tl_core *c = world.nodes[i].core;

    for (unsigned b = 0; b < BLOCKS; b++)
      if (c->kept->data == TL_COMPLETE && !owed_has (!i, b, world.owed[i][b]))
        owes[i] = true;
  }
  if (owes[0] && owes[1] && !world.nodes[0].core->standalone &&
      !world.nodes[1].core->standalone)
    violate ("dead end: a split brain that no node speaks of");
}

/* Every request of a node that is up has its answer. */
static void
check_answered (void)
{
  for (unsigned i = 0; i < world.n_clients; i++) {
    const struct client *r = &world.clients[i];

    if (r->pending && world.nodes[r->node].core != NULL)
      violate ("a request of block %u on node %c is never answered", r->block,
               node_name (r->node));
  }
}

/* Another machine has taken the place of node b: node a has to be told, after
 * it has gone on without the first one.
 */
static void
tell_replaced (void)
{
  const struct tl_core *a = world.nodes[0].core;

  if (!world.nodes[1].replaced || a->record.peer[0] != 'b')
    return;
  if (tl_view_has (&a->record.view, "b")) {
    world_command (0, a->role == TL_PRIMARY ? TL_CMD_DEGRADE : TL_CMD_PROMOTE,
                   TL_FENCED);
    calm (2);
  }
  world_command (0, TL_CMD_FORGET_PEER, 0);
  calm (12);
}

/* Must an operator have a word before the node is promoted, that this model
 * cannot give?  Without an arbiter he has to fence the other; and where a state
 * file is lost to say that nothing newer was in it.
 */
static bool
needs_word (const struct tl_core *c)
{
  char why[256];

  return scenario->policy != TL_POLICY_ARBITER &&
         (promote_check (c, TL_FENCED, why, sizeof why) == TL_DONE ||
          (world.record_lost && c->kept->data == TL_COMPLETE &&
           promote_check (c, TL_FORCE, why, sizeof why) == TL_DONE));
}

/* The node that is primary, or lets itself be made; -1: none, with WHY; -2:
 * none without an operator's word.
 */
static int
make_primary (char *why, size_t size)
{
  int node = primary ();

  for (unsigned i = 0; i < 2 && node < 0; i++)
    if (promote_check (world.nodes[i].core, 0, why, size) == TL_DONE) {
      world_command (i, TL_CMD_PROMOTE, 0);
      calm (12);
      node = primary ();
    } else if (needs_word (world.nodes[i].core)) {
      return -2;
    }
  return node;
}

/* From a state in which no fault is left to happen: with both nodes up and
 * connected there must be a primary, or one must let itself be made; it must
 * take a write, and both must have it.  Without an arbiter a node may also ask
 * for the other to be fenced.  A split brain is ended by LOSER's discard; true:
 * there was one.
 */
bool
check_recovers (unsigned loser)
{
  struct tl_status status;
  struct client *r;
  char why[256];
  bool split;
  int node;

  world.nodes[0].fenced = world.nodes[1].fenced = false;
  calm (12);
  if (violation[0] == '\0' && !overflow)
    check_told ();
  split = world.nodes[0].core->standalone || world.nodes[1].core->standalone;
  if (violation[0] == '\0' && !overflow && split) {
    world_command (loser, TL_CMD_DISCARD, 0);
    calm (12);
    if (violation[0] == '\0' && world.nodes[loser].status != TL_DONE)
      violate ("dead end: node %c cannot give up its data in a split brain",
               node_name (loser));
  }
  if (violation[0] == '\0' && !overflow)
    tell_replaced ();
  if (violation[0] != '\0' || overflow)
    return split;
  if (scenario->policy != TL_POLICY_FREEZE)
    check_answered ();
  if (!counts (0) && !counts (1))
    return split;
  node = make_primary (why, sizeof why);
  if (violation[0] != '\0' || overflow || node == -2)
    return split;
  if (node < 0) {
    violate ("dead end: a complete copy is there, and none may serve: %s", why);
    return split;
  }
  world_request ((unsigned)node, TL_OP_WRITE, 0);
  r = &world.clients[world.n_clients - 1];
  calm (3);
  if (violation[0] != '\0' || overflow)
    return split;
  tl_core_status (world.nodes[node].core, world.nodes[node].now, &status);
  if (r->pending || r->core.error != 0)
    violate ("dead end: the Primary, node %c, takes no write",
             node_name ((unsigned)node));
  else if (status.copies != 2)
    violate ("dead end: node %c stays the only copy",
             node_name ((unsigned)node));
  for (unsigned b = 0; b < BLOCKS; b++)
    if (content (0, b) != content (1, b))
      violate ("both copies are good, and block %u has %u here and %u there", b,
               content (0, b), content (1, b));
  check_answered ();
  return split;
}
