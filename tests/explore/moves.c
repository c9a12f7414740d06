/* What may happen next. */
#include "explore.h"

#include <stdio.h>

static bool
spend (enum budget budget)
{
  if (world.budget[budget] == 0)
    return false;
  world.budget[budget]--;
  return true;
}

static bool
up (unsigned node)
{
  return world.nodes[node].core != NULL;
}

/* ---- One ---- */

static bool
crash (unsigned node, unsigned arg, enum budget budget)
{
  if (!up (node) || ((arg & MADE) && !world.nodes[node].store_wanted) ||
      ((arg & GONE) && (!scenario->record_lost || (arg & MADE))) ||
      !((arg & KEPT) ? scenario->ram_kept : scenario->ram_lost) ||
      !spend (budget))
    return false;
  world_crash (node, arg);
  return true;
}

/* Would the command change nothing, or wait for what is under way?  (Only
 * promotions and creations may wait.)
 */
static bool
idle (const struct tl_core *c, enum tl_command command, unsigned flags)
{
  switch (command) {
  case TL_CMD_PROMOTE:
    return c->role == TL_PRIMARY;
  case TL_CMD_DEMOTE:
  case TL_CMD_SWITCHOVER:
  case TL_CMD_DEGRADE:
    return c->role != TL_PRIMARY || c->agree.stage != STAGE_IDLE;
  case TL_CMD_CREATE:
    /* Without an arbiter nobody can see that the other was created alone. */
    return c->record.view.number != 0 ||
           ((flags & TL_ALONE) && !c->config.arbiter);
  case TL_CMD_FORGET_PEER:
    return c->record.peer[0] == '\0' || c->agree.stage != STAGE_IDLE;
  case TL_CMD_DISCARD:
    return c->agree.stage != STAGE_IDLE;
  default:
    return false;
  }
}

/* What is refused at once leads nowhere new. */
static bool
operate (unsigned node, enum tl_command command, unsigned flags,
         enum budget budget)
{
  struct node *n = &world.nodes[node];
  bool split;

  if (!up (node) || n->waits || world.budget[budget] == 0 ||
      idle (n->core, command, flags))
    return false;
  split = n->core->standalone;
  world.budget[budget]--;
  world_command (node, command, flags);
  if (!n->waits && n->status != TL_DONE)
    return false;
  if (command == TL_CMD_DISCARD && !split)
    violate ("node %c gives up its data, and there is no split brain",
             node_name (node));
  return true;
}

/* Only where nothing less will do. */
static bool
forced (unsigned node)
{
  const struct tl_core *c = world.nodes[node].core;
  char why[256];

  return up (node) && c->agree.stage == STAGE_IDLE &&
         promote_check (c, 0, why, sizeof why) != TL_DONE &&
         operate (node, TL_CMD_PROMOTE, TL_FORCE, FORCES);
}

static bool
replace (unsigned node)
{
  if (node != 1 || !spend (REPLACEMENTS))
    return false;
  world_replace (node);
  return true;
}

/* Really: the other node is switched off before, and stays so until the
 * command is answered.
 */
static bool
fenced (unsigned node, enum tl_command cmd, unsigned arg)
{
  if (!up (node) || world.budget[FENCES] == 0 ||
      (up (!node)
           ? ((arg & MADE) && !world.nodes[!node].store_wanted) ||
                 !((arg & KEPT) ? scenario->ram_kept : scenario->ram_lost)
           : arg != 0))
    return false;
  if (up (!node))
    world_crash (!node, arg);
  /* The loss of the connection is noticed before an operator is. */
  for (unsigned i = 0; i < CONNS; i++)
    while (world.conns[i].id != 0 && pipes[i][node].n > 0)
      wire_deliver (node, i);
  if (!operate (node, cmd, TL_FENCED, FENCES))
    return false;
  world.nodes[!node].fenced = world.nodes[node].waits;
  return true;
}

static bool
client_asks (unsigned node, enum tl_op op, unsigned block, enum budget budget)
{
  const struct tl_core *c = world.nodes[node].core;

  if (!up (node) || c->role != TL_PRIMARY || c->leaving ||
      block >= scenario->blocks || world.n_clients == REQUESTS - 1 ||
      !spend (budget))
    return false;
  world_request (node, op, block);
  return true;
}

static bool
dial (unsigned node)
{
  bool slot = false;

  for (unsigned i = 0; i < CONNS; i++)
    slot = slot || world.conns[i].id == 0;
  if (!up (node) || !up (!node) || !world.nodes[node].dial_wanted || !slot)
    return false;
  wire_dial (node);
  return true;
}

/* The arbiter's swap of a question is seen by its answer and by the swap of
 * another question only, and it may happen at any time before.  So it is made
 * together with the answer; by itself only where there is another question,
 * which it may come before.
 */
static bool
contended (unsigned question)
{
  for (unsigned i = 0; i < QUESTIONS; i++)
    if (i != question && world.questions[i].used &&
        !world.questions[i].executed)
      return true;
  return false;
}

static bool
apply (struct move move)
{
  unsigned node = move.node, arg = move.arg;
  struct node *n = &world.nodes[node];

  switch ((enum move_kind)move.kind) {
  case MOVE_DELIVER:
    if (!up (node) || world.conns[arg].id == 0 || pipes[arg][node].n == 0)
      return false;
    wire_deliver (node, arg);
    return true;
  case MOVE_STORED:
    if (!up (node) || !n->store_wanted)
      return false;
    world_stored (node, true, true);
    return true;
  case MOVE_STORE_FAILS:
    if (!up (node) || !n->store_wanted || !spend (STORE_FAILURES))
      return false;
    world_stored (node, false, arg != 0);
    return true;
  case MOVE_EXECUTE:
    if (!world.questions[arg].used || world.questions[arg].executed ||
        !contended (arg))
      return false;
    arbiter_swap (arg);
    return true;
  case MOVE_ANSWER:
    if (!world.questions[arg].used || !world.questions[arg].asked)
      return false;
    if (!world.questions[arg].executed)
      arbiter_swap (arg);
    arbiter_answer (arg, false);
    return true;
  case MOVE_UNKNOWN:
    if (!world.questions[arg].used || !world.questions[arg].asked ||
        !spend (UNKNOWNS))
      return false;
    arbiter_answer (arg, true);
    return true;
  case MOVE_DIAL:
    return dial (node);
  case MOVE_RESTART:
    if (up (node) || n->fenced)
      return false;
    world_start (node);
    return true;
  case MOVE_TIME:
    return up (node) && time_pass (node);
  case MOVE_WRITE:
    return client_asks (node, TL_OP_WRITE, arg, WRITES);
  case MOVE_READ:
    return client_asks (node, TL_OP_READ, arg, READS);
  case MOVE_CUT:
    if (world.conns[arg].id == 0 || world.conns[arg].cut || !spend (CUTS))
      return false;
    wire_cut (arg);
    return true;
  case MOVE_CRASH:
    return crash (node, arg, CRASHES);
  case MOVE_PROMOTE:
    return operate (node, TL_CMD_PROMOTE, 0, PROMOTES);
  case MOVE_FENCED_PROMOTE:
    return fenced (node, TL_CMD_PROMOTE, arg);
  case MOVE_FENCED_DEGRADE:
    return fenced (node, TL_CMD_DEGRADE, arg);
  case MOVE_DEMOTE:
    return operate (node, TL_CMD_DEMOTE, 0, DEMOTES);
  case MOVE_SWITCHOVER:
    return operate (node, TL_CMD_SWITCHOVER, 0, SWITCHOVERS);
  case MOVE_CREATE:
    return operate (node, TL_CMD_CREATE, arg ? TL_ALONE : 0, CREATES);
  case MOVE_ZERO:
    return client_asks (node, TL_OP_ZERO, arg, ZEROES);
  case MOVE_FORCED_PROMOTE:
    return forced (node);
  case MOVE_DISCARD:
    return operate (node, TL_CMD_DISCARD, 0, DISCARDS);
  case MOVE_FORGET:
    return operate (node, TL_CMD_FORGET_PEER, 0, FORGETS);
  case MOVE_REPLACE:
    return replace (node);
  case MOVES:
    break;
  }
  return false;
}

/* Make the move; false: it is none of this state, which may have changed. */
bool
move_apply (struct move move)
{
  if (!apply (move))
    return false;
  world_tidy ();
  return true;
}

/* ---- All ---- */

/* Does the move concern a node, and how many values has its argument? */
static const struct {
  const char *text;
  bool of_node;
  unsigned args;
  int budget; /* without it there is no such move; -1: always */
} table[MOVES] = {
    [MOVE_DELIVER] = {"the next frame arrives at node", true, CONNS, -1},
    [MOVE_STORED] = {"the record is durable: node", true, 1, -1},
    [MOVE_EXECUTE] = {"the arbiter executes question", false, QUESTIONS, -1},
    [MOVE_ANSWER] = {"the arbiter's answer arrives, question", false, QUESTIONS,
                     -1},
    [MOVE_DIAL] = {"connection made by node", true, 1, -1},
    [MOVE_RESTART] = {"start of node", true, 1, -1},
    [MOVE_TIME] = {"time passes at node", true, 1, -1},
    [MOVE_WRITE] = {"write on node", true, BLOCKS, WRITES},
    [MOVE_READ] = {"read on node", true, BLOCKS, READS},
    [MOVE_STORE_FAILS] = {"the record cannot be written: node", true, 2,
                          STORE_FAILURES},
    [MOVE_UNKNOWN] = {"the answer is lost, question", false, QUESTIONS,
                      UNKNOWNS},
    [MOVE_CUT] = {"cut of connection", false, CONNS, CUTS},
    [MOVE_CRASH] = {"crash of node", true, 6, CRASHES},
    [MOVE_PROMOTE] = {"promote on node", true, 1, PROMOTES},
    [MOVE_FENCED_PROMOTE] = {"power off the other, promote --fenced on node",
                             true, 4, FENCES},
    [MOVE_FENCED_DEGRADE] = {"power off the other, degrade --fenced on node",
                             true, 4, FENCES},
    [MOVE_DEMOTE] = {"demote on node", true, 1, DEMOTES},
    [MOVE_SWITCHOVER] = {"switchover on node", true, 1, SWITCHOVERS},
    [MOVE_CREATE] = {"create on node", true, 2, CREATES},
    [MOVE_ZERO] = {"zero on node", true, BLOCKS, ZEROES},
    [MOVE_FORCED_PROMOTE] = {"promote --force on node", true, 1, FORCES},
    [MOVE_DISCARD] = {"discard on node", true, 1, DISCARDS},
    [MOVE_FORGET] = {"forget-peer on node", true, 1, FORGETS},
    [MOVE_REPLACE] = {"another machine takes the place of node", true, 1,
                      REPLACEMENTS},
};

unsigned
move_list (struct move *list, unsigned most)
{
  unsigned n = 0;

  for (unsigned kind = 0; kind < MOVES; kind++) {
    if (table[kind].budget >= 0 && world.budget[table[kind].budget] == 0)
      continue;
    for (unsigned node = 0; node < (table[kind].of_node ? 2u : 1u); node++)
      for (unsigned arg = 0; arg < table[kind].args; arg++) {
        if (kind == MOVE_DELIVER && pipes[arg][node].n == 0)
          continue;
        if ((kind == MOVE_EXECUTE || kind == MOVE_ANSWER) &&
            !world.questions[arg].used)
          continue;
        if (n < most)
          list[n++] = (struct move){(uint8_t)kind, (uint8_t)node, (uint8_t)arg};
      }
  }
  return n;
}

void
move_text (struct move move, char *text, size_t size)
{
  const char *more = "";

  if (move.kind == MOVE_CRASH || move.kind == MOVE_FENCED_PROMOTE ||
      move.kind == MOVE_FENCED_DEGRADE) {
    static const char *const left[] = {
        " (RAM lost)",
        " (RAM kept)",
        " (RAM lost, record made)",
        " (RAM kept, record made)",
        " (RAM and state file lost)",
        " (RAM kept, state file lost)",
    };

    more = left[move.arg];
  } else if (move.kind == MOVE_CREATE && move.arg != 0) {
    more = " --alone";
  } else if (move.kind == MOVE_STORE_FAILS && move.arg != 0) {
    more = ", as it is told, but it was";
  }
  if (!table[move.kind].of_node)
    snprintf (text, size, "%s %u", table[move.kind].text, move.arg);
  else if (move.kind == MOVE_WRITE || move.kind == MOVE_READ ||
           move.kind == MOVE_ZERO)
    snprintf (text, size, "%s %c, block %u", table[move.kind].text,
              'a' + move.node, move.arg);
  else
    snprintf (text, size, "%s %c%s", table[move.kind].text, 'a' + move.node,
              more);
}

/* Is nothing under way but what waits for time? */
bool
at_rest (void)
{
  for (unsigned i = 0; i < CONNS; i++)
    for (unsigned node = 0; node < 2; node++)
      if (world.conns[i].id != 0 && up (node) && pipes[i][node].n > 0)
        return false;
  for (unsigned i = 0; i < QUESTIONS; i++)
    if (world.questions[i].used && world.questions[i].asked)
      return false;
  for (unsigned node = 0; node < 2; node++)
    if (up (node) && world.nodes[node].store_wanted)
      return false;
  return true;
}
