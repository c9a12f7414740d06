/* When a core does something by itself.  Of these times only the order counts
 * (canon.c), and a clock moves from one to the next (time_pass), over all the
 * pings between them.
 */
#include "explore.h"

enum { DIAL_BY, ACCEPT_BY, UNACKED, FAULTS };

/* These three end a connection over which frames are late: a fault. */
bool
timer_faults (unsigned timer)
{
  return timer < FAULTS;
}

static uint64_t
when (bool set, uint64_t at)
{
  return set ? at : NEVER;
}

void
timers (const struct world *w, unsigned node, uint64_t at[TIMERS])
{
  const struct tl_core *c = w->nodes[node].core;
  uint64_t limit = request_limit (c), oldest = c->progress;

  if (c->in_flight.first != NULL && c->in_flight.first->sent < oldest)
    oldest = c->in_flight.first->sent;
  at[DIAL_BY] = when (c->dial != 0, c->dial_by);
  at[ACCEPT_BY] = when (c->accept != 0, c->accept_by);
  at[UNACKED] = when (c->phase != PHASE_NONE && c->tx_acked != c->tx_sequence,
                      oldest + DEADLINE);
  /* It counts again once nothing is agreed or shaken hands on any more. */
  at[3] = when (c->phase == PHASE_NONE && !c->dialling, c->dial_at);
  at[4] = when (c->agree.stage != STAGE_IDLE, c->agree.retry_at);
  at[5] = when (c->agree.token != 0, c->agree.give_up);
  at[6] = when (c->propose_at > c->now, c->propose_at);
  at[7] = when (c->waiting.token != 0, c->waiting_by);
  at[8] = when (c->switchover_token != 0,
                c->leaving_since + DEADLINE + ARBITER_GRACE);
  at[9] = when (c->handover_token != 0, c->handover_by);
  at[10] = when (c->create_token != 0, c->create_by);
  at[11] = when (c->phase != PHASE_NONE && c->yielded > c->now, c->yielded);
  at[12] = when (c->lost_at != 0 && limit != NEVER, c->lost_at + limit);
  at[13] = when (c->agree.stage == STAGE_IDLE, c->promote_at);
  at[14] = when (c->resync.active, c->resync.next);
  /* The core asks for no such time, but from then on more chunks may be on
   * their way, where there are more than one.
   */
  at[15] = when (scenario->blocks > 1 && c->resync.active && c->foreground != 0,
                 c->foreground + FOREGROUND);
  for (unsigned i = 0; i < REQUESTS; i++) {
    const struct client *r = &w->clients[i];

    at[TIMERS - REQUESTS + i] = when (
        i < w->n_clients && r->pending && r->node == node && limit != NEVER &&
            (r->core.state == REQ_HELD || r->core.entered < r->core.sent),
        r->core.entered + limit);
  }
}

/* The peer is heard of just before, as far as there is a session: that it is
 * not, and the session ends, is a cut.
 */
static void
pong (unsigned node)
{
  struct tl_core *c = world.nodes[node].core;
  struct tl_frame frame = {.type = TL_PONG, .session = c->session_id};
  struct tl_event event = {.type = TL_EV_FRAME};

  if (c->phase == PHASE_NONE)
    return;
  event.frame.id = c->session;
  event.frame.frame = &frame;
  world_step (node, &event);
}

bool
time_pass (unsigned node)
{
  struct node *n = &world.nodes[node];
  struct tl_event event = {.type = TL_EV_TIME};
  uint64_t at[TIMERS], next = NEVER;
  bool fault = false;

  timers (&world, node, at);
  for (unsigned i = 0; i < TIMERS; i++)
    if (at[i] > n->now && at[i] < next)
      next = at[i];
  if (n->wake <= n->now)
    next = n->now;
  if (next == NEVER)
    return false;
  for (unsigned i = 0; i < TIMERS; i++)
    fault = fault || (timer_faults (i) && at[i] <= next);
  if (fault && world.budget[CUTS] == 0)
    return false;
  world.budget[CUTS] -= fault;
  if (next > n->now) {
    n->now = next - 1;
    pong (node);
    n->now = next;
    if (scenario->late)
      return true;
  }
  world_step (node, &event);
  return true;
}
