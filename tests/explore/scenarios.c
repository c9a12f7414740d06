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
settle (void)
{
  static const enum move_kind order[] = {MOVE_STORED, MOVE_EXECUTE, MOVE_ANSWER,
                                         MOVE_DELIVER, MOVE_DIAL};
  bool moved = true;

  while (moved) {
    moved = false;
    for (unsigned k = 0; !moved && k < sizeof order / sizeof order[0]; k++)
      for (unsigned i = 0; !moved && i < 2 * CONNS; i++)
        moved = move_apply ((struct move){(uint8_t)order[k], (uint8_t)(i % 2),
                                          (uint8_t)(i / 2)});
  }
}

void
scenario_begin (const struct scenario *s)
{
  world_init (s);
  world_start (0);
  if (s->begin == LONE) {
    world_command (0, TL_CMD_CREATE, TL_ALONE);
    settle ();
    world_request (0, TL_OP_WRITE, 0);
    assert (world.acknowledged[0] == 1);
  }
  world_start (1);
  if (s->begin == PAIR) {
    settle ();
    world_command (0, TL_CMD_CREATE, 0);
    settle ();
    assert (world.nodes[0].core->peer_stored);
  }
  check_state ();
  memcpy (world.budget, s->budget, sizeof world.budget);
}
