/* The arbiter, and the questions on their way to and from it. */
#include "explore.h"

void
arbiter_ask (unsigned node, const struct tl_action *a)
{
  struct question *q = NULL;

  for (unsigned i = 0; i < QUESTIONS; i++) {
    if (world.questions[i].used && world.questions[i].asked &&
        world.questions[i].node == node)
      violate ("node %c asks the arbiter twice at once", node_name (node));
    if (!world.questions[i].used && q == NULL)
      q = &world.questions[i];
  }
  if (q == NULL) {
    overflow = true;
    return;
  }
  memset (q, 0, sizeof *q);
  q->used = q->asked = true;
  q->node = (uint8_t)node;
  q->create = a->create;
  q->uuid = a->uuid;
  q->before = a->before;
  q->after = a->after;
}

void
arbiter_swap (unsigned question)
{
  struct question *q = &world.questions[question];
  const struct tl_view *stands = &world.arbiter_view;
  bool match = q->create ? stands->number == 0
                         : tl_view_equal (&q->before, stands) &&
                               tl_uuid_equal (&q->uuid, &world.arbiter_uuid);

  q->executed = true;
  q->known = stands->number != 0;
  q->result = match ? TL_ANSWER_DONE : TL_ANSWER_LOST;
  if (match) {
    world.arbiter_uuid = q->uuid;
    world.arbiter_view = q->after;
  } else {
    q->uuid = world.arbiter_uuid;
    q->found = *stands;
  }
  if (!q->asked)
    q->used = false;
}

void
arbiter_answer (unsigned question, bool unknown)
{
  struct question *q = &world.questions[question];
  struct tl_event event = {.type = TL_EV_ANSWER};

  event.answer.result = unknown ? TL_ANSWER_UNKNOWN : q->result;
  event.answer.reason = "no answer";
  event.answer.known = q->known;
  event.answer.uuid = q->uuid;
  event.answer.view = q->found;
  q->asked = false;
  if (q->executed)
    q->used = false;
  world_step (q->node, &event);
}

/* Nobody waits for its answer, and the arbiter is past what it would swap. */
static bool
hopeless (const struct question *q)
{
  const struct tl_view *stands = &world.arbiter_view;

  return q->used && !q->asked &&
         (q->create ? stands->number != 0
                    : stands->number >= q->before.number &&
                          !tl_view_equal (&q->before, stands));
}

/* Questions by age, without gaps: so that equal states are equal bytes.
 * Numbers of questions change, so this ends a move.
 */
void
arbiter_tidy (void)
{
  unsigned n = 0;

  for (unsigned i = 0; i < QUESTIONS; i++) {
    if (hopeless (&world.questions[i]))
      world.questions[i].used = false;
    if (!world.questions[i].used)
      continue;
    if (n != i) {
      world.questions[n] = world.questions[i];
      memset (&world.questions[i], 0, sizeof world.questions[i]);
    }
    n++;
  }
}

/* Nobody waits for the answers of the node any more. */
void
arbiter_crash (unsigned node)
{
  for (unsigned i = 0; i < QUESTIONS; i++)
    if (world.questions[i].used && world.questions[i].node == node) {
      world.questions[i].asked = false;
      if (world.questions[i].executed)
        world.questions[i].used = false;
    }
}

/* Questions whose answer nobody waits for reach the arbiter now, or never.
 * False: there are none.
 */
bool
arbiter_end (bool lost)
{
  bool any = false;

  for (unsigned i = 0; i < QUESTIONS; i++)
    if (world.questions[i].used && !world.questions[i].asked) {
      if (!lost && !world.questions[i].executed)
        arbiter_swap (i);
      world.questions[i].used = false;
      any = true;
    }
  arbiter_tidy ();
  return any;
}
