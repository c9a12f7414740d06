/* Where an exploration begins, and how much may happen in it. */
#include "explore.h"

#include <assert.h>

const struct scenario scenarios[] = {
    {.name = "arbiter",
     .policy = TL_POLICY_ARBITER,
     .blocks = 1,
     .begin = PAIR,
     .ram_kept = true,
     .ram_lost = true,
     .budget = {[WRITES] = 2, [CRASHES] = 1, [CUTS] = 1, [PROMOTES] = 1}},
    /* What the rules were first modelled with, in one. */
    {.name = "whole",
     .policy = TL_POLICY_ARBITER,
     .blocks = 1,
     .begin = PAIR,
     .ram_kept = true,
     .ram_lost = true,
     .budget = {[WRITES] = 2,
                [UNKNOWNS] = 1,
                [CRASHES] = 1,
                [CUTS] = 1,
                [PROMOTES] = 1}},
    {.name = "failover",
     .policy = TL_POLICY_ARBITER,
     .blocks = 1,
     .begin = PAIR,
     .ram_kept = true,
     .ram_lost = true,
     .budget = {[WRITES] = 2, [CRASHES] = 1, [PROMOTES] = 1}},
    {.name = "partition",
     .policy = TL_POLICY_ARBITER,
     .blocks = 1,
     .begin = PAIR,
     .budget = {[WRITES] = 2, [CUTS] = 1, [PROMOTES] = 1}},
    {.name = "fencing",
     .policy = TL_POLICY_ERROR,
     .blocks = 1,
     .begin = PAIR,
     .ram_kept = true,
     .ram_lost = true,
     .budget = {[WRITES] = 2, [CRASHES] = 1, [CUTS] = 1, [FENCES] = 1}},
    {.name = "fencing-twice",
     .policy = TL_POLICY_ERROR,
     .blocks = 1,
     .begin = PAIR,
     .ram_kept = true,
     .budget = {[WRITES] = 1, [FENCES] = 2}},
    {.name = "unknown",
     .policy = TL_POLICY_ARBITER,
     .blocks = 1,
     .begin = PAIR,
     .ram_kept = true,
     .budget = {[WRITES] = 1,
                [UNKNOWNS] = 1,
                [CUTS] = 1,
                [CRASHES] = 1,
                [PROMOTES] = 1}},
    {.name = "state-file",
     .policy = TL_POLICY_ARBITER,
     .blocks = 1,
     .begin = PAIR,
     .budget =
         {[WRITES] = 1, [STORE_FAILURES] = 1, [CUTS] = 1, [PROMOTES] = 1}},
    {.name = "state-file-crash",
     .policy = TL_POLICY_ARBITER,
     .blocks = 1,
     .begin = PAIR,
     .ram_kept = true,
     .budget =
         {[WRITES] = 1, [STORE_FAILURES] = 1, [CRASHES] = 1, [PROMOTES] = 1}},
    {.name = "state-file-switchover",
     .policy = TL_POLICY_ERROR,
     .blocks = 1,
     .begin = PAIR,
     .ram_kept = true,
     .budget = {[WRITES] = 1,
                [STORE_FAILURES] = 1,
                [CRASHES] = 1,
                [SWITCHOVERS] = 1,
                [FENCES] = 1}},
    {.name = "durable",
     .policy = TL_POLICY_ERROR,
     .blocks = 1,
     .begin = PAIR,
     .ram_kept = true,
     .budget =
         {[WRITES] = 2, [STORE_FAILURES] = 1, [FENCES] = 1, [CRASHES] = 1}},
    {.name = "reads",
     .policy = TL_POLICY_ARBITER,
     .blocks = 1,
     .begin = PAIR,
     .budget = {[WRITES] = 1, [READS] = 2, [CUTS] = 1, [PROMOTES] = 1}},
    {.name = "reads-fencing",
     .policy = TL_POLICY_ERROR,
     .blocks = 1,
     .begin = PAIR,
     .ram_lost = true,
     .budget = {[WRITES] = 1, [READS] = 2, [CUTS] = 1, [FENCES] = 1}},
    {.name = "two-cuts",
     .policy = TL_POLICY_ARBITER,
     .blocks = 1,
     .begin = PAIR,
     .budget = {[WRITES] = 1, [CUTS] = 2, [PROMOTES] = 1}},
    {.name = "cold-start",
     .policy = TL_POLICY_ARBITER,
     .blocks = 1,
     .begin = PAIR,
     .ram_kept = true,
     .budget = {[WRITES] = 1, [CRASHES] = 2, [PROMOTES] = 1}},
    {.name = "cold-start-fencing",
     .policy = TL_POLICY_ERROR,
     .blocks = 1,
     .begin = PAIR,
     .ram_kept = true,
     .budget = {[WRITES] = 1, [CRASHES] = 2, [PROMOTES] = 1, [FENCES] = 1}},
    {.name = "resync",
     .policy = TL_POLICY_ARBITER,
     .blocks = 2,
     .begin = LONE,
     .ram_kept = true,
     .ram_lost = true,
     .budget = {[WRITES] = 1, [CRASHES] = 1, [CUTS] = 1, [PROMOTES] = 1}},
    {.name = "resync-fencing",
     .policy = TL_POLICY_ERROR,
     .blocks = 2,
     .begin = LONE,
     .ram_kept = true,
     .ram_lost = true,
     .budget = {[WRITES] = 1, [CUTS] = 1, [FENCES] = 1}},
    {.name = "switchover",
     .policy = TL_POLICY_ARBITER,
     .blocks = 1,
     .begin = PAIR,
     .budget = {[WRITES] = 1, [SWITCHOVERS] = 1, [CUTS] = 1, [PROMOTES] = 1}},
    {.name = "switchover-fencing",
     .policy = TL_POLICY_ERROR,
     .blocks = 1,
     .begin = PAIR,
     .ram_kept = true,
     .ram_lost = true,
     .budget = {[WRITES] = 1, [SWITCHOVERS] = 1, [CUTS] = 1, [FENCES] = 1}},
    {.name = "demote",
     .policy = TL_POLICY_ERROR,
     .blocks = 1,
     .begin = PAIR,
     .ram_kept = true,
     .budget = {[WRITES] = 1, [DEMOTES] = 1, [PROMOTES] = 2, [CUTS] = 1}},
    {.name = "freeze",
     .policy = TL_POLICY_FREEZE,
     .blocks = 1,
     .begin = PAIR,
     .ram_kept = true,
     .budget = {[WRITES] = 1, [READS] = 1, [CUTS] = 1, [FENCES] = 1}},
    {.name = "continue",
     .policy = TL_POLICY_CONTINUE,
     .blocks = 1,
     .begin = PAIR,
     .ram_kept = true,
     .ram_lost = true,
     .budget = {[WRITES] = 1, [CUTS] = 1, [CRASHES] = 1}},
    {.name = "continue-fenced",
     .policy = TL_POLICY_CONTINUE,
     .blocks = 1,
     .begin = PAIR,
     .ram_kept = true,
     .may_lose = true,
     .budget = {[WRITES] = 2, [CUTS] = 1, [FENCES] = 1, [DISCARDS] = 1}},
    {.name = "force",
     .policy = TL_POLICY_ERROR,
     .blocks = 1,
     .begin = PAIR,
     .ram_kept = true,
     .may_lose = true,
     .budget = {[WRITES] = 2, [CUTS] = 1, [FORCES] = 1, [DISCARDS] = 1}},
    {.name = "force-arbiter",
     .policy = TL_POLICY_ARBITER,
     .blocks = 1,
     .begin = LEFT,
     .ram_kept = true,
     .ram_lost = true,
     .may_lose = true,
     .budget = {[WRITES] = 1, [CRASHES] = 1, [FORCES] = 1, [DISCARDS] = 1}},
    {.name = "split",
     .policy = TL_POLICY_ERROR,
     .blocks = 1,
     .begin = SPLIT,
     .ram_kept = true,
     .may_lose = true,
     .budget = {[WRITES] = 1, [CRASHES] = 1, [DISCARDS] = 2}},
    {.name = "auto-promote",
     .policy = TL_POLICY_ARBITER,
     .blocks = 1,
     .begin = PAIR,
     .auto_promote = true,
     .budget = {[WRITES] = 1, [READS] = 1, [CUTS] = 1}},
    {.name = "auto-promote-crash",
     .policy = TL_POLICY_ARBITER,
     .blocks = 1,
     .begin = PAIR,
     .auto_promote = true,
     .ram_kept = true,
     .ram_lost = true,
     .budget = {[WRITES] = 1, [CRASHES] = 1}},
    {.name = "reads-local",
     .policy = TL_POLICY_ARBITER,
     .blocks = 1,
     .begin = PAIR,
     .ram_kept = true,
     .reads_local = true,
     .budget = {[WRITES] = 1, [READS] = 1, [CUTS] = 1, [FENCES] = 1}},
    {.name = "record-lost",
     .policy = TL_POLICY_ARBITER,
     .blocks = 1,
     .begin = PAIR,
     .ram_kept = true,
     .ram_lost = true,
     .record_lost = true,
     .budget = {[WRITES] = 1, [CRASHES] = 1, [PROMOTES] = 1, [CREATES] = 1}},
    {.name = "record-lost-fencing",
     .policy = TL_POLICY_ERROR,
     .blocks = 1,
     .begin = PAIR,
     .ram_kept = true,
     .ram_lost = true,
     .record_lost = true,
     .budget = {[WRITES] = 1, [CRASHES] = 1, [FENCES] = 1}},
    {.name = "record-lost-left",
     .policy = TL_POLICY_ERROR,
     .blocks = 1,
     .begin = LEFT,
     .ram_kept = true,
     .ram_lost = true,
     .record_lost = true,
     .budget = {[CRASHES] = 1, [CUTS] = 1, [PROMOTES] = 1}},
    {.name = "create-record-lost",
     .policy = TL_POLICY_ERROR,
     .blocks = 1,
     .begin = LONE,
     .ram_kept = true,
     .record_lost = true,
     .budget = {[CRASHES] = 1, [CREATES] = 1}},
    {.name = "switchover-crash",
     .policy = TL_POLICY_ARBITER,
     .blocks = 1,
     .begin = PAIR,
     .ram_kept = true,
     .ram_lost = true,
     .budget = {[WRITES] = 1, [SWITCHOVERS] = 1, [CRASHES] = 1}},
    {.name = "replaced",
     .policy = TL_POLICY_ERROR,
     .blocks = 1,
     .begin = LEFT,
     .budget = {[WRITES] = 1, [CUTS] = 1, [FORGETS] = 1, [REPLACEMENTS] = 1}},
    {.name = "replaced-arbiter",
     .policy = TL_POLICY_ARBITER,
     .blocks = 1,
     .begin = LEFT,
     .ram_kept = true,
     .budget =
         {[WRITES] = 1, [CRASHES] = 1, [FORGETS] = 1, [REPLACEMENTS] = 1}},
    /* At one block in ten milliseconds. */
    {.name = "paced",
     .policy = TL_POLICY_CONTINUE,
     .blocks = 2,
     .begin = PAIR,
     .late = true,
     .resync_rate = 100 * TL_BLOCK,
     .budget = {[WRITES] = 2, [ZEROES] = 1, [CUTS] = 1}},
    {.name = "chunks",
     .policy = TL_POLICY_ERROR,
     .blocks = 3,
     .begin = LONE,
     .budget = {[WRITES] = 1, [CUTS] = 1}},
    {.name = "create",
     .policy = TL_POLICY_ARBITER,
     .blocks = 1,
     .begin = FRESH,
     .ram_lost = true,
     .budget = {[CREATES] = 2, [CUTS] = 1, [CRASHES] = 1, [WRITES] = 1}},
    {.name = "create-fencing",
     .policy = TL_POLICY_ERROR,
     .blocks = 1,
     .begin = FRESH,
     .budget = {[CREATES] = 2, [CUTS] = 1, [WRITES] = 1}},
};
const unsigned n_scenarios = sizeof scenarios / sizeof scenarios[0];

/* Carry everything until nothing moves. */
static void
settle (bool dial)
{
  static const enum move_kind order[] = {MOVE_STORED, MOVE_ANSWER, MOVE_DELIVER,
                                         MOVE_DIAL};
  bool moved = true;

  while (moved) {
    moved = false;
    for (unsigned k = 0; !moved && k < sizeof order / sizeof order[0]; k++)
      for (unsigned i = 0; !moved && i < 2 * CONNS; i++)
        moved = (dial || order[k] != MOVE_DIAL) &&
                move_apply ((struct move){(uint8_t)order[k], (uint8_t)(i % 2),
                                          (uint8_t)(i / 2)});
  }
}

static void
begin_pair (void)
{
  world_start (1);
  settle (true);
  world_command (0, TL_CMD_CREATE, 0);
  settle (true);
  assert (world.nodes[0].core->peer_stored);
}

static void
write_to (unsigned node, unsigned block)
{
  world_request (node, TL_OP_WRITE, block);
  settle (false);
  assert (world.acknowledged[block] == world.tag);
}

static void
begin_left (void)
{
  begin_pair ();
  wire_cut (0);
  settle (false);
  if (scenario->policy != TL_POLICY_ARBITER)
    world_command (0, TL_CMD_DEGRADE, TL_FENCED);
  settle (false);
  write_to (0, 0);
}

void
scenario_begin (const struct scenario *s)
{
  world_init (s);
  world_start (0);
  switch (s->begin) {
  case FRESH:
    world_start (1);
    break;
  case PAIR:
    begin_pair ();
    break;
  case LONE:
    world_command (0, TL_CMD_CREATE, TL_ALONE);
    settle (false);
    for (unsigned b = 0; b < s->blocks; b += 2)
      write_to (0, b);
    world_start (1);
    break;
  case LEFT:
    begin_left ();
    break;
  case SPLIT:
    begin_left ();
    world_command (1, TL_CMD_PROMOTE, TL_FENCED);
    settle (false);
    write_to (1, 0);
    break;
  }
  check_state ();
  assert (violation[0] == '\0');
  memcpy (world.budget, s->budget, sizeof world.budget);
}
