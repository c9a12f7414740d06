/* Operators and the cluster manager: they create the volume, see to it that
 * one node serves, move the service at times, and now and then do something
 * foolish.  What they assert with --fenced is true: the other machine has been
 * powered off; unless the policy `continue` opts out.  Few use --force.
 */
#include "sim.h"

#include <string.h>

/* Send a command to a node; it gets there after DELAY. */
void
operators_send (struct sim *sim, struct node *node, enum tl_command cmd,
                unsigned flags, uint64_t delay)
{
  sim_at (sim, sim->now + delay, K_COMMAND, node, (uint64_t)cmd, flags);
}

/* A command reaches the control socket of NODE. */
void
operators_command (struct sim *sim, struct node *node, enum tl_command command,
                   unsigned flags)
{
  struct node *other = node_other (sim, node);
  unsigned token = 0;

  if ((command == TL_CMD_DEMOTE || command == TL_CMD_SWITCHOVER) &&
      sim->schedule.stage != HEAL_NO)
    return;
  if (command == TL_CMD_CREATE && sim->schedule.created &&
      create_would_lose (sim, node))
    return;

  /* Time has passed: is the assertion still true?  Where the protection is
   * opted out of, nobody asks. */
  if (sim->policy == TL_POLICY_CONTINUE)
    ;
  else if ((flags & TL_FENCED) && !other->alive && other->store)
    return;
  else if ((flags & TL_FENCED) && other->alive &&
           node_status (sim, other)->disk != TL_DISK_EMPTY)
    return;
  while (token < COMMANDS && sim->schedule.commands[token].used)
    token++;
  if (token == COMMANDS)
    return;
  sim->schedule.commands[token] = (struct command){
      .used = true,
      .command = command,
      .flags = flags,
      .node = node->index,
      .life = node->life,
      .sent = sim->now,
  };
  sim_count (sim, T_COMMANDS);
  TRACE (sim, "%s: command %s", node->name, sim_command_text (command, flags));

  struct tl_event event = {.type = TL_EV_COMMAND};

  event.command.command = command;
  event.command.flags = flags;
  event.command.clients = clients_attached (sim, node);
  event.command.token = token + 1;
  for (unsigned i = 0; i < sizeof event.command.uuid.bytes; i++)
    event.command.uuid.bytes[i] = (uint8_t)rng_next (&sim->rng);
  node_step (sim, node, &event);
}

/* Did the node do what it says it did? */
static void
check_reply (struct sim *sim, struct node *node, const struct command *command)
{
  bool primary;

  node->status_valid = false;
  primary = node_primary (sim, node);
  switch (command->command) {
  case TL_CMD_CREATE:
    sim->schedule.created = true;
    sim->schedule.created_at = sim->now;
    /* fall through */
  case TL_CMD_PROMOTE:
    if (!primary)
      sim_violate (sim, "%s says that %s is done, and is not primary",
                   node->name,
                   sim_command_text (command->command, command->flags));
    break;
  case TL_CMD_DISCARD:
  case TL_CMD_DEMOTE:
  case TL_CMD_SWITCHOVER:
    if (command->command == TL_CMD_DISCARD)
      sim_count (sim, T_DISCARDS);
    if (command->command == TL_CMD_DEMOTE)
      node->demoted = node->life;
    if (primary)
      sim_violate (sim, "%s says that %s is done, and is primary", node->name,
                   sim_command_text (command->command, command->flags));
    break;
  default:
    break;
  }
}

void
operators_reply (struct sim *sim, struct node *node, uint64_t token, int status,
                 const char *text)
{
  struct command *command = token >= 1 && token <= COMMANDS
                                ? &sim->schedule.commands[token - 1]
                                : NULL;

  TRACE (sim, "%s:   reply %d: %s", node->name, status, text ? text : "");
  if (!command || !command->used || command->node != node->index ||
      command->life != node->life) {
    sim_violate (sim, "%s replies to no command", node->name);
    return;
  }
  command->used = false;
  if (status == TL_DONE)
    check_reply (sim, node, command);
  else if (!text || !*text)
    sim_violate (sim, "%s fails %s without a word", node->name,
                 sim_command_text (command->command, command->flags));
  if (status == TL_REFUSED)
    sim_count (sim, T_REFUSED);
  if (command->command == TL_CMD_VERIFY)
    sim->schedule.put_off = status == TL_FAILED;

  /* The second half of a move. */
  if (command->command == TL_CMD_DEMOTE && sim->schedule.demote_next >= 0) {
    struct node *next = &sim->nodes[sim->schedule.demote_next];

    sim->schedule.demote_next = -1;
    if (status == TL_DONE && next->alive)
      operators_send (sim, next, TL_CMD_PROMOTE, 0,
                      rng_below (&sim->rng, 30 * MS));
  }
}

/* G4 for operators: every command is answered; one that has waited for another
 * agreement first may take a deadline and a second for each.
 */
void
operators_check (struct sim *sim)
{
  for (unsigned i = 0; i < COMMANDS; i++) {
    struct command *command = &sim->schedule.commands[i];
    struct node *node = &sim->nodes[command->node];

    if (!command->used)
      continue;
    if (node->frozen_until > command->sent)
      command->sent = node->frozen_until;
    if (sim->now > command->sent + 2 * sim->deadline + 2100 * MS)
      sim_violate (sim, "G4: %s has not answered %s", node->name,
                   sim_command_text (command->command, command->flags));
  }
}

/* Does an operator wait for an answer? */
bool
operators_wait (const struct sim *sim)
{
  for (unsigned i = 0; i < COMMANDS; i++)
    if (sim->schedule.commands[i].used)
      return true;
  return false;
}

void
operators_node_died (struct sim *sim, struct node *node)
{
  for (unsigned i = 0; i < COMMANDS; i++)
    if (sim->schedule.commands[i].node == node->index)
      sim->schedule.commands[i].used = false;
}

/* Power the other machine off, for real, and say so to NODE. */
static void
fence_and_send (struct sim *sim, struct node *node, enum tl_command command)
{
  struct node *other = node_other (sim, node);

  if (other->alive) {
    sim_count (sim, T_FENCED);
    schedule_crash (sim, other, "is fenced", true);
  } else if (other->store) {
    sim_count (sim, T_FENCED);
    TRACE (sim, "fault: %s is fenced, its RAM is lost", other->name);
    ram_lose (sim, other);
  }
  operators_send (sim, node, command, TL_FENCED,
                  rng_below (&sim->rng, 50 * MS));
}

/* No node is primary: make NODE it. */
static void
promote (struct sim *sim, struct node *node)
{
  struct node *other = node_other (sim, node);

  if (sim->with_arbiter) {
    operators_send (sim, node, TL_CMD_PROMOTE,
                    other->alive || rng_percent (&sim->rng, 80) ? 0 : TL_FENCED,
                    0);
  } else if (node_connected (sim, node) &&
             !(schedule_entitled (sim, node) &&
               rng_percent (&sim->rng,
                            sim->schedule.stage == HEAL_NO ? 10 : 40))) {
    if (sim->schedule.stage == HEAL_NO && rng_percent (&sim->rng, 3))
      fault_stuck (sim, other);
    operators_send (sim, node, TL_CMD_PROMOTE, 0, 0);
  } else if (!other->alive &&
             (!other->store || schedule_entitled (sim, node))) {
    fence_and_send (sim, node, TL_CMD_PROMOTE);
  } else if (schedule_entitled (sim, node) && rng_percent (&sim->rng, 30)) {
    fence_and_send (sim, node, TL_CMD_PROMOTE);
  }
}

/* The primary is alone and may be suspended: go on with one copy, or move. */
static void
relieve (struct sim *sim, struct node *primary)
{
  struct node *other = node_other (sim, primary);

  if (!node_status (sim, primary)->suspended)
    return;
  if (sim->schedule.stage != HEAL_NO && sim->schedule.heal_tries < 40)
    return; /* it should get well by itself */
  if (!other->alive) {
    if (rng_percent (&sim->rng, 50))
      fence_and_send (sim, primary, TL_CMD_DEGRADE);
  } else if (sim->with_arbiter) {
    if (rng_percent (&sim->rng, 15) && schedule_entitled (sim, other))
      operators_send (sim, other, TL_CMD_PROMOTE, 0, 0);
  } else if (rng_percent (&sim->rng, 10)) {
    fence_and_send (sim, primary, TL_CMD_DEGRADE);
  } else if (rng_percent (&sim->rng, 10) && schedule_entitled (sim, other)) {
    fence_and_send (sim, other, TL_CMD_PROMOTE);
  }
}

static void
move (struct sim *sim, struct node *primary)
{
  struct node *other = node_other (sim, primary);

  if (!node_connected (sim, primary) || !other->alive)
    return;
  /* At times what the move depends on fails meanwhile. */
  if (rng_percent (&sim->rng, 5))
    fault_stuck (sim, rng_percent (&sim->rng, 50) ? primary : other);
  if (rng_percent (&sim->rng, 20))
    fault_arbiter (sim);
  if (rng_percent (&sim->rng, 50)) {
    unsigned flags = rng_percent (&sim->rng, 50) ? TL_DISCONNECT : 0;

    if (rng_percent (&sim->rng, 50))
      sim->clients.paused_until = sim->now + 60 * MS;
    operators_send (sim, primary, TL_CMD_SWITCHOVER, flags,
                    rng_below (&sim->rng, 50 * MS));
    return;
  }
  sim->schedule.demote_next = other->index;
  if (rng_percent (&sim->rng, 40)) {
    operators_send (sim, primary, TL_CMD_DEMOTE, TL_DISCONNECT, 0);
    return;
  }
  sim->clients.paused_until = sim->now + rng_between (&sim->rng, 0, 60 * MS);
  operators_send (sim, primary, TL_CMD_DEMOTE, 0,
                  rng_below (&sim->rng, 50 * MS));
}

/* Power one node off, for real, and promote the other, whichever has the data.
 */
static void
fence_the_wrong_one (struct sim *sim)
{
  struct node *node = &sim->nodes[rng_below (&sim->rng, NODES)];

  if (node->alive && !node_connected (sim, node))
    fence_and_send (sim, node, TL_CMD_PROMOTE);
}

/* Is it for the nodes to find a primary?  Not where an operator demoted one. */
static bool
automatic (const struct sim *sim)
{
  if (!sim->auto_promote || sim->schedule.stage == HEAL_NO)
    return false;
  for (unsigned i = 0; i < NODES; i++)
    if (sim->nodes[i].alive && sim->nodes[i].demoted == sim->nodes[i].life)
      return false;
  return true;
}

/* What a cluster manager does at each of its rounds. */
void
operators_manage (struct sim *sim)
{
  struct node *a = &sim->nodes[0], *b = &sim->nodes[1];

  if (sim->violated)
    return;
  if (!sim->schedule.created) {
    create_volume (sim);
    return;
  }
  if (node_primary (sim, a) || node_primary (sim, b)) {
    struct node *primary = node_primary (sim, a) ? a : b;

    relieve (sim, primary);
    if (!sim->violated && sim->schedule.stage == HEAL_NO &&
        rng_percent (&sim->rng, 4))
      move (sim, primary);
    return;
  }
  if (automatic (sim) || rng_percent (&sim->rng, 40))
    return;
  if (sim->schedule.reckless && sim->ram_kept && !sim->with_arbiter &&
      rng_percent (&sim->rng, 10)) {
    fence_the_wrong_one (sim);
    return;
  }

  struct node *best = schedule_entitled (sim, a) ? a : b;

  if (schedule_entitled (sim, a) && schedule_entitled (sim, b))
    best = &sim->nodes[rng_below (&sim->rng, NODES)];
  if (rng_percent (&sim->rng, 10))
    best = node_other (sim, best);
  if (best->alive)
    promote (sim, best);
  if (sim->with_arbiter && node_other (sim, best)->alive &&
      rng_percent (&sim->rng, 10))
    promote (sim, node_other (sim, best));
}

/* Something foolish. */
void
operators_meddle (struct sim *sim)
{
  static const struct {
    enum tl_command command;
    unsigned flags;
  } choices[] = {
      {TL_CMD_CREATE, 0},
      {TL_CMD_PROMOTE, 0},
      {TL_CMD_PROMOTE, 0},
      {TL_CMD_PROMOTE, 0},
      {TL_CMD_PROMOTE, TL_FENCED},
      {TL_CMD_DEMOTE, 0},
      {TL_CMD_DEMOTE, TL_DISCONNECT},
      {TL_CMD_DEGRADE, 0},
      {TL_CMD_DEGRADE, TL_FENCED},
      {TL_CMD_SWITCHOVER, 0},
      {TL_CMD_SWITCHOVER, TL_DISCONNECT},
      {TL_CMD_DISCARD, 0},
      {TL_CMD_FORGET_PEER, 0},
      {TL_CMD_VERIFY, 0},
      {TL_CMD_VERIFY, 0},
  };
  struct node *node = &sim->nodes[rng_below (&sim->rng, NODES)];
  unsigned pick =
      (unsigned)rng_below (&sim->rng, sizeof choices / sizeof *choices);

  if (!node->alive || !sim->schedule.created)
    return;
  if (sim->forceful && rng_percent (&sim->rng, 50)) {
    operators_send (sim, node, TL_CMD_PROMOTE, TL_FORCE,
                    rng_below (&sim->rng, 10 * MS));
    return;
  }

  /* Not that foolish. */
  if (choices[pick].command == TL_CMD_DISCARD &&
      node_status (sim, node)->link == TL_LINK_STANDALONE)
    return; /* that would name the loser of a split brain */
  if (choices[pick].command == TL_CMD_CREATE &&
      sim->now < sim->schedule.created_at + 2 * sim->deadline)
    return;

  uint64_t delay = rng_below (&sim->rng, 10 * MS);

  operators_send (sim, node, choices[pick].command, choices[pick].flags, delay);
  if (choices[pick].command == TL_CMD_VERIFY)
    operators_send (sim, node, TL_CMD_VERIFY, 0, delay); /* he is impatient */
}
