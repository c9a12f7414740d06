/* The network: connections as two streams of bytes, each in order, with random
 * delays, arbitrary cuts between what arrives together, and every way in which
 * a connection can end: politely, suddenly, on one side only, unnoticed.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

void
network_reset (struct sim *sim)
{
  struct network *net = &sim->network;

  for (size_t i = 0; i < net->n; i++) {
    for (unsigned d = 0; d < 2; d++)
      free (net->conns[i]->pipes[d].bytes);
    free (net->conns[i]);
  }
  free (net->conns);
  memset (net, 0, sizeof *net);
}

uint64_t
network_delay (struct sim *sim)
{
  struct network *net = &sim->network;
  uint64_t d = rng_between (&sim->rng, net->delay_min, net->delay_max);

  if (net->slow_until > sim->now)
    d += rng_below (&sim->rng, net->slow_by + 1);

  return rng_percent (&sim->rng, 2) ? d * 8 : d;
}

static uint64_t
later (uint64_t a, uint64_t b)
{
  return a > b ? a : b;
}

/* ---- Connecting ---- */

static uint64_t
conn_new (struct network *net)
{
  if (net->n == net->room) {
    net->room = net->room ? net->room * 2 : 16;
    net->conns = realloc (net->conns, net->room * sizeof *net->conns);
    if (!net->conns)
      abort ();
  }
  net->conns[net->n] = calloc (1, sizeof **net->conns);
  if (!net->conns[net->n])
    abort ();
  return net->n++;
}

void
network_dial (struct sim *sim, struct node *node)
{
  if (node->dialling) {
    sim_violate (sim, "%s dials while it dials", node->name);
    return;
  }
  node->dialling = true;
  sim_at (sim, sim->now + network_delay (sim), K_DIAL, NULL,
          (uint64_t)node->index, node->life);
}

/* The call of node FROM reaches the other machine. */
void
network_dial_arrives (struct sim *sim, int from, uint32_t life)
{
  struct node *node = &sim->nodes[from];
  struct node *other = node_other (sim, node);
  struct network *net = &sim->network;

  if (!node->alive || node->life != life)
    return;
  if (net->down_until[0] > sim->now || net->down_until[1] > sim->now) {
    sim_count (sim, T_DIALS_FAILED);
    sim_at (sim, sim->now + rng_between (&sim->rng, MS, 200 * MS),
            K_DIAL_FAILED, node, 0, 0);
    return;
  }
  if (!other->alive) {
    sim_count (sim, T_DIALS_FAILED);
    sim_at (sim, sim->now + network_delay (sim), K_DIAL_FAILED, node, 0, 0);
    return;
  }

  uint64_t id = conn_new (net);
  struct conn *conn = net->conns[id];
  struct node *party[2] = {node, other};

  for (unsigned e = 0; e < 2; e++) {
    uint64_t when = sim->now + (e == 0 ? network_delay (sim) : 0);

    conn->ends[e].node = party[e]->index;
    conn->ends[e].life = party[e]->life;
    conn->pipes[!e].last = when;
    sim_at (sim, when, K_CONNECTED, party[e], id, e);
  }
}

void
network_connected (struct sim *sim, uint64_t id, uint64_t e)
{
  struct conn *conn = sim->network.conns[id];
  struct end *end = &conn->ends[e];
  struct node *node = &sim->nodes[end->node];

  if (end->state != END_WAITING)
    return;
  end->state = END_OPEN;
  end->id = ++node->next_conn;
  if (e == 0)
    node->dialling = false;
  TRACE (sim, "%s: connection %u %s", node->name, end->id,
         e == 0 ? "dialled" : "accepted");

  struct tl_event event = {.type = TL_EV_CONNECTED};

  event.connected.id = end->id;
  event.connected.dialled = e == 0;
  node_step (sim, node, &event);
  wire_take (sim, conn, !e);
}

/* ---- Ending ---- */

static void
drop_bytes (struct pipe *pipe)
{
  free (pipe->bytes);
  pipe->bytes = NULL;
  pipe->start = pipe->end = pipe->room = pipe->arrived = 0;
}

/* This end is no more: nothing reaches it, nothing leaves it. */
void
network_end_gone (struct conn *conn, unsigned e)
{
  conn->ends[e].state = END_GONE;
  conn->pipes[e].deaf = true;
  drop_bytes (&conn->pipes[!e]);
}

/* End E is going to notice that the connection is gone. */
void
network_tell (struct sim *sim, struct conn *conn, uint64_t id, unsigned e,
              uint64_t when)
{
  struct end *end = &conn->ends[e];

  if (end->state == END_GONE || end->fin)
    return;
  end->fin = true;
  sim_at (sim, later (when, conn->pipes[!e].last), K_FIN,
          &sim->nodes[end->node], id, e);
}

uint64_t
network_number (const struct network *net, const struct conn *conn)
{
  for (size_t i = net->n; i-- > 0;)
    if (net->conns[i] == conn)
      return i;
  abort ();
}

void
network_dial_failed (struct sim *sim, struct node *node, const char *reason)
{
  struct tl_event event = {.type = TL_EV_CLOSED};

  node->dialling = false;
  event.closed.id = 0;
  event.closed.reason = reason;
  node_step (sim, node, &event);
}

void
network_fin (struct sim *sim, uint64_t id, uint64_t e)
{
  struct conn *conn = sim->network.conns[id];
  struct end *end = &conn->ends[e];
  struct node *node = &sim->nodes[end->node];
  enum end_state before = end->state;

  if (before == END_GONE)
    return;
  network_end_gone (conn, (unsigned)e);
  if (before == END_WAITING) {
    if (e == 0)
      network_dial_failed (sim, node, "connection reset");
    return;
  }
  TRACE (sim, "%s: connection %u is gone", node->name, end->id);

  struct tl_event event = {.type = TL_EV_CLOSED};

  event.closed.id = end->id;
  event.closed.reason = "connection reset";
  node_step (sim, node, &event);
}

struct conn *
network_find (struct sim *sim, const struct node *node, uint32_t id,
              unsigned *e)
{
  struct network *net = &sim->network;

  for (size_t i = net->n; i-- > net->live;)
    for (unsigned k = 0; k < 2; k++) {
      struct end *end = &net->conns[i]->ends[k];

      if (end->node == node->index && end->life == node->life &&
          end->id == id && end->state == END_OPEN) {
        *e = k;
        return net->conns[i];
      }
    }
  return NULL;
}

void
network_close (struct sim *sim, struct node *node, uint32_t id)
{
  unsigned e;
  struct conn *conn = network_find (sim, node, id, &e);

  if (!conn)
    return;

  struct pipe *out = &conn->pipes[e];

  network_end_gone (conn, e);
  if (rng_percent (&sim->rng, 20)) {
    /* What is under way is lost with the connection. */
    out->cut = true;
    out->last = 0;
  }
  if (rng_percent (&sim->rng, 95))
    network_tell (sim, conn, network_number (&sim->network, conn), !e,
                  sim->now + network_delay (sim));
}

void
network_node_died (struct sim *sim, struct node *node, bool orderly)
{
  struct network *net = &sim->network;
  bool silent = !orderly && rng_percent (&sim->rng, 30);
  bool lossy = !orderly && rng_percent (&sim->rng, 50);

  for (size_t i = net->live; i < net->n; i++)
    for (unsigned e = 0; e < 2; e++) {
      struct conn *conn = net->conns[i];
      struct end *end = &conn->ends[e];

      if (end->node != node->index || end->state == END_GONE)
        continue;
      network_end_gone (conn, e);
      if (lossy) {
        conn->pipes[e].cut = true;
        conn->pipes[e].last = 0;
      }
      if (!silent)
        network_tell (sim, conn, i, !e, sim->now + network_delay (sim));
    }
  while (net->live < net->n &&
         net->conns[net->live]->ends[0].state == END_GONE &&
         net->conns[net->live]->ends[1].state == END_GONE)
    net->live++;
}

/* Fault: one connection breaks.  One side may not notice: DEAF, the index of a
 * node, or whoever chance picks where it is -1.
 */
bool
network_cut (struct sim *sim, int deaf_node)
{
  struct network *net = &sim->network;
  struct conn *conn = NULL;
  uint64_t id = 0;

  for (size_t i = net->live; i < net->n; i++) {
    if (net->conns[i]->ends[0].state == END_OPEN ||
        net->conns[i]->ends[1].state == END_OPEN) {
      conn = net->conns[i];
      id = i;
      if (rng_percent (&sim->rng, 50))
        break;
    }
  }
  if (!conn)
    return false;

  bool half = deaf_node >= 0 || rng_percent (&sim->rng, 30);
  unsigned deaf = (unsigned)rng_below (&sim->rng, 2);

  if (deaf_node >= 0)
    deaf = conn->ends[0].node == deaf_node ? 0 : 1;

  sim_count (sim, half ? T_HALF_OPEN : T_CUTS);
  TRACE (sim, "fault: connection %s–%s is cut%s", sim->nodes[0].name,
         sim->nodes[1].name, half ? ", one side does not notice" : "");
  for (unsigned e = 0; e < 2; e++) {
    conn->pipes[e].deaf = true;
    if (rng_percent (&sim->rng, 50)) {
      conn->pipes[e].cut = true;
      conn->pipes[e].last = 0;
    }
    if (!half || e != deaf)
      network_tell (sim, conn, id, e,
                    sim->now + rng_below (&sim->rng, 20 * MS));
  }
  return true;
}

/* Fault: what the nodes in DIRECTIONS (bit 0, bit 1) send does not arrive
 * before UNTIL.  What is held already keeps its place: never shorten it.
 */
void
network_down (struct sim *sim, unsigned directions, uint64_t until)
{
  for (unsigned i = 0; i < NODES; i++)
    if ((directions & (1u << i)) && sim->network.down_until[i] < until)
      sim->network.down_until[i] = until;
}

/* Fault: what node FROM has sent and will send on its connections is lost, and
 * neither side is told.
 */
void
network_lose (struct sim *sim, int from)
{
  struct network *net = &sim->network;

  for (size_t i = net->live; i < net->n; i++)
    for (unsigned e = 0; e < 2; e++)
      if (net->conns[i]->ends[e].node == from) {
        net->conns[i]->pipes[e].deaf = net->conns[i]->pipes[e].cut = true;
        net->conns[i]->pipes[e].last = 0;
      }
}

/* Does ENTRY have to stay under way?  Then it has been put back. */
bool
network_held (struct sim *sim, const struct entry *entry)
{
  if (entry->kind != K_ARRIVE && entry->kind != K_FIN)
    return false;

  uint64_t until = sim->network.down_until[!entry->node];

  if (until <= sim->now)
    return false;

  struct entry again = *entry;

  again.time = until;
  queue_push (&sim->queue, &again);
  return true;
}
