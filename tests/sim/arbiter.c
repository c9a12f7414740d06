/* The arbiter: one record that is compared and swapped, and every way in which
 * its answers can be late, wrong in time or missing.
 */
#include "sim.h"

#include <stdlib.h>

void
arbiter_reset (struct sim *sim)
{
  struct arbiter *arbiter = &sim->arbiter;

  arbiter->exists = false;
  arbiter->down_until = arbiter->slow_until = arbiter->astray_until = 0;
  for (unsigned i = 0; i < NODES; i++)
    arbiter->cut_until[i] = 0;
  arbiter->n = 0;
}

/* The question leaves the node.  It may be answered only after its asker gave
 * up waiting, or died: the swap counts all the same.
 */
void
arbiter_ask (struct sim *sim, struct node *node, const struct tl_action *action)
{
  struct arbiter *arbiter = &sim->arbiter;
  struct rng *rng = &sim->rng;

  if (!sim->with_arbiter || node->asking) {
    sim_violate (sim, "%s asks the arbiter %s", node->name,
                 node->asking ? "while it asks" : "that it does not have");
    return;
  }
  if (arbiter->n == arbiter->room) {
    arbiter->room = arbiter->room ? arbiter->room * 2 : 32;
    arbiter->questions = realloc (arbiter->questions,
                                  arbiter->room * sizeof *arbiter->questions);
    if (!arbiter->questions)
      abort ();
  }

  uint64_t id = arbiter->n++;
  struct question *question = &arbiter->questions[id];

  *question = (struct question){
      .create = action->create,
      .uuid = action->uuid,
      .before = action->before,
      .after = action->after,
      .node = node->index,
      .life = node->life,
  };
  node->asking = true;

  uint64_t lands = sim->now + rng_between (rng, 200, 10 * MS);

  if (rng_percent (rng, arbiter->unknown)) {
    /* Silence after a time; the swap is made before, after or never. */
    uint64_t ends = lands + rng_below (rng, 200 * MS);

    question->silent = true;
    if (rng_percent (rng, 30))
      lands = ends + rng_below (rng, 500 * MS);
    else if (rng_percent (rng, 50))
      lands = UINT64_MAX;
    if (lands == UINT64_MAX)
      sim_count (sim, T_UNKNOWN_NOT_SWAPPED);
    else
      sim_at (sim, lands, K_QUESTION, NULL, id, 0);
    sim_at (sim, ends, K_ANSWER, node, id, 1);
    return;
  }
  if (arbiter->slow_until > sim->now)
    lands += rng_below (rng, sim->deadline * 2);
  else if (rng_percent (rng, 5))
    lands += rng_below (rng, 300 * MS);
  sim_at (sim, lands, K_QUESTION, NULL, id, 0);
}

/* Its directory is not mounted, or is that of another pair, or an old copy: it
 * compares with what it finds there, and swaps nothing.
 */
static void
look_astray (struct sim *sim, struct question *question)
{
  struct tl_view *stands = &question->stands;

  sim_count (sim, T_ARBITER_ASTRAY);
  question->landed = true;
  question->result = TL_ANSWER_LOST;
  question->known = rng_percent (&sim->rng, 60);
  question->uuid_stands = question->uuid;
  question->uuid_stands.bytes[0] ^= rng_percent (&sim->rng, 50);
  *stands = question->before;
  stands->id = rng_next (&sim->rng) | 1;
  if (stands->number > 1 && --stands->number == 1)
    stands->parent = 0;
  TRACE (sim, "arbiter: refused %s, it looks astray",
         sim_view_text (&question->after));
}

static void
compare_and_swap (struct sim *sim, struct question *question, bool lost_track)
{
  struct arbiter *arbiter = &sim->arbiter;
  bool matches = question->create
                     ? !arbiter->exists
                     : arbiter->exists &&
                           tl_uuid_equal (&arbiter->uuid, &question->uuid) &&
                           tl_view_equal (&arbiter->view, &question->before);

  question->landed = true;
  if (matches) {
    sim_count (sim, T_SWAPS);
    if (lost_track || question->answered)
      sim_count (sim, T_SWAPS_LATE);
    arbiter->exists = true;
    arbiter->uuid = question->uuid;
    arbiter->view = question->after;
    history_learn (sim, &question->after);
    question->result = TL_ANSWER_DONE;
    TRACE (sim, "arbiter: swapped to %s", sim_view_text (&question->after));
  } else {
    sim_count (sim, T_SWAPS_LOST);
    question->result = TL_ANSWER_LOST;
    question->known = arbiter->exists;
    question->uuid_stands = arbiter->uuid;
    question->stands = arbiter->view;
    TRACE (sim, "arbiter: refused %s, %s stands",
           sim_view_text (&question->after),
           arbiter->exists ? sim_view_text (&arbiter->view) : "nothing");
  }
}

/* The question reaches the arbiter. */
void
arbiter_question (struct sim *sim, uint64_t id)
{
  struct arbiter *arbiter = &sim->arbiter;
  struct question *question = &arbiter->questions[id];
  struct node *node = &sim->nodes[question->node];
  bool lost_track = !node->alive || node->life != question->life;

  if (arbiter->down_until > sim->now ||
      arbiter->cut_until[question->node] > sim->now) {
    if (!lost_track && !question->silent)
      sim_at (sim, sim->now + rng_between (&sim->rng, MS, 100 * MS), K_ANSWER,
              node, id, 1);
    return;
  }

  if (arbiter->astray_until > sim->now && !question->create)
    look_astray (sim, question);
  else
    compare_and_swap (sim, question, lost_track);
  if (!lost_track && !question->silent)
    sim_at (sim, sim->now + rng_between (&sim->rng, 200, 10 * MS), K_ANSWER,
            node, id, 0);
}

/* An answer, or the end of the wait for one, reaches the node. */
void
arbiter_answer (struct sim *sim, uint64_t id, bool silence)
{
  struct question *question = &sim->arbiter.questions[id];
  struct node *node = &sim->nodes[question->node];
  struct tl_event event = {.type = TL_EV_ANSWER};

  if (!node->asking || question->answered)
    return;
  question->answered = true;
  node->asking = false;
  if (silence) {
    if (question->landed && question->result == TL_ANSWER_DONE)
      sim_count (sim, T_UNKNOWN_SWAPPED);
    event.answer.result = TL_ANSWER_UNKNOWN;
    event.answer.reason = "no answer";
  } else {
    event.answer.result = question->result;
    event.answer.known = question->known;
    event.answer.uuid = question->uuid_stands;
    event.answer.view = question->stands;
  }
  if (sim->ram_kept && sim->schedule.stage == HEAL_NO &&
      rng_percent (&sim->rng, 3)) {
    schedule_crash (sim, node, "crashes, the arbiter's answer unheard", false);
    return;
  }
  TRACE (sim, "%s: the arbiter answers %s", node->name,
         event.answer.result == TL_ANSWER_DONE   ? "done"
         : event.answer.result == TL_ANSWER_LOST ? "lost"
                                                 : "nothing");
  node_step (sim, node, &event);
}
