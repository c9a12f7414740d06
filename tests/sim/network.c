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

static uint64_t
delay (struct sim *sim)
{
  struct network *net = &sim->network;
  uint64_t d = rng_between (&sim->rng, net->delay_min, net->delay_max);

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
  sim_at (sim, sim->now + delay (sim), K_DIAL, NULL, (uint64_t)node->index,
          node->life);
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
    sim_at (sim, sim->now + delay (sim), K_DIAL_FAILED, node, 0, 0);
    return;
  }

  uint64_t id = conn_new (net);
  struct conn *conn = net->conns[id];
  struct node *party[2] = {node, other};

  for (unsigned e = 0; e < 2; e++) {
    uint64_t when = sim->now + (e == 0 ? delay (sim) : 0);

    conn->ends[e].node = party[e]->index;
    conn->ends[e].life = party[e]->life;
    conn->pipes[!e].last = when;
    sim_at (sim, when, K_CONNECTED, party[e], id, e);
  }
}

static void take (struct sim *sim, struct conn *conn, unsigned from);

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
  take (sim, conn, !e);
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
static void
end_gone (struct conn *conn, unsigned e)
{
  conn->ends[e].state = END_GONE;
  conn->pipes[e].deaf = true;
  drop_bytes (&conn->pipes[!e]);
}

/* End E is going to notice that the connection is gone. */
static void
tell (struct sim *sim, struct conn *conn, uint64_t id, unsigned e,
      uint64_t when)
{
  struct end *end = &conn->ends[e];

  if (end->state == END_GONE || end->fin)
    return;
  end->fin = true;
  sim_at (sim, later (when, conn->pipes[!e].last), K_FIN,
          &sim->nodes[end->node], id, e);
}

static uint64_t
conn_number (const struct network *net, const struct conn *conn)
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
  end_gone (conn, (unsigned)e);
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

static struct conn *
find (struct sim *sim, const struct node *node, uint32_t id, unsigned *e)
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
  struct conn *conn = find (sim, node, id, &e);

  if (!conn)
    return;

  struct pipe *out = &conn->pipes[e];

  end_gone (conn, e);
  if (rng_percent (&sim->rng, 20)) {
    /* What is under way is lost with the connection. */
    out->cut = true;
    out->last = 0;
  }
  if (rng_percent (&sim->rng, 95))
    tell (sim, conn, conn_number (&sim->network, conn), !e,
          sim->now + delay (sim));
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
      end_gone (conn, e);
      if (lossy) {
        conn->pipes[e].cut = true;
        conn->pipes[e].last = 0;
      }
      if (!silent)
        tell (sim, conn, i, !e, sim->now + delay (sim));
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
      tell (sim, conn, id, e, sim->now + rng_below (&sim->rng, 20 * MS));
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

/* ---- Bytes ---- */

static void
append (struct pipe *pipe, const void *bytes, size_t n)
{
  if (n == 0)
    return;
  if (pipe->end + n > pipe->room) {
    memmove (pipe->bytes, pipe->bytes + pipe->start, pipe->end - pipe->start);
    pipe->end -= pipe->start;
    pipe->start = 0;
    if (pipe->end + n > pipe->room) {
      pipe->room = (pipe->end + n) * 2;
      pipe->bytes = realloc (pipe->bytes, pipe->room);
      if (!pipe->bytes)
        abort ();
    }
  }
  memcpy (pipe->bytes + pipe->end, bytes, n);
  pipe->end += n;
}

static void
arrival (struct sim *sim, uint64_t id, unsigned e, uint64_t when, size_t n)
{
  struct conn *conn = sim->network.conns[id];
  struct pipe *pipe = &conn->pipes[e];
  struct node *to = &sim->nodes[conn->ends[!e].node];

  if (when <= pipe->last) {
    when = pipe->last;
    if (pipe->last_order) {
      pipe->extra += n;
      return;
    }
  }

  struct entry entry = {
      .time = when,
      .kind = K_ARRIVE,
      .node = to->index,
      .life = conn->ends[!e].life,
      .a = id,
      .b = e,
      .c = n,
  };

  /* Entries that are put back get a new order: keep the first one, which
   * goes with the entry, in its upper bits. */
  pipe->last = when;
  pipe->last_order = sim->queue.order + 1;
  entry.b |= pipe->last_order << 1;
  queue_push (&sim->queue, &entry);
}

void
network_send (struct sim *sim, struct node *node, uint32_t id,
              const struct tl_frame *frame, const void *payload)
{
  unsigned e;
  struct conn *conn = find (sim, node, id, &e);

  if (!conn) {
    TRACE (sim, "%s:   (connection %u is gone, dropped)", node->name, id);
    return;
  }

  struct pipe *pipe = &conn->pipes[e];
  struct end *far = &conn->ends[!e];
  uint64_t number = conn_number (&sim->network, conn);

  if (far->state == END_GONE) {
    /* A machine that runs answers with a reset; one that is off does not. */
    if (sim->nodes[far->node].alive)
      tell (sim, conn, number, e, sim->now + 2 * delay (sim));
    return;
  }
  if (pipe->deaf)
    return;

  unsigned char header[TL_FRAME_SIZE];
  size_t n = TL_FRAME_SIZE + frame->payload;

  tl_frame_encode (frame, header);
  append (pipe, header, sizeof header);
  append (pipe, payload, frame->payload);
  if (rng_below (&sim->rng, 10000) < sim->network.corrupt) {
    size_t at = pipe->end - 1 - rng_below (&sim->rng, n);

    sim_count (sim, T_CORRUPTED);
    sim->network.corrupted = true;
    TRACE (sim, "fault: a byte of that frame is changed");
    pipe->bytes[at] ^= (unsigned char)(1u << rng_below (&sim->rng, 8));
  }

  uint64_t when = sim->now + delay (sim);

  if (rng_percent (&sim->rng, 5)) {
    size_t head = rng_below (&sim->rng, n);

    arrival (sim, number, e, when, head);
    n -= head;
    when += delay (sim);
  }
  arrival (sim, number, e, when, n);
}

static void
bad_bytes (struct sim *sim, struct conn *conn, unsigned e, const char *reason)
{
  struct end *end = &conn->ends[e];
  struct node *node = &sim->nodes[end->node];

  TRACE (sim, "%s: connection %u: %s", node->name, end->id, reason);
  if (!sim->network.corrupted)
    sim_violate (sim, "%s got a frame that is not well formed: %s", node->name,
                 reason);
  end_gone (conn, e);
  tell (sim, conn, conn_number (&sim->network, conn), !e,
        sim->now + delay (sim));

  struct tl_event event = {.type = TL_EV_CLOSED};

  event.closed.id = end->id;
  event.closed.reason = reason;
  node_step (sim, node, &event);
}

/* Give the node at the far end of pipe FROM the frames that are whole. */
static void
take (struct sim *sim, struct conn *conn, unsigned from)
{
  struct pipe *pipe = &conn->pipes[from];
  struct end *end = &conn->ends[!from];
  struct node *node = &sim->nodes[end->node];
  bool any = false;

  while (end->state == END_OPEN && pipe->arrived >= TL_FRAME_SIZE &&
         !sim->violated) {
    const unsigned char *bytes = pipe->bytes + pipe->start;
    struct tl_frame frame;
    const char *reason = tl_frame_decode (&frame, bytes, sim->size);

    if (reason) {
      bad_bytes (sim, conn, !from, reason);
      return;
    }
    if (pipe->arrived < TL_FRAME_SIZE + frame.payload)
      break;
    bytes += TL_FRAME_SIZE;
    if (tl_payload_checksum (bytes, frame.payload) != frame.checksum) {
      bad_bytes (sim, conn, !from, "checksum of a payload");
      return;
    }
    TRACE (sim,
           "%s: %s session %llx view %llu seq %llu %llu+%u flags %u (%u bytes)",
           node->name, tl_frame_name (frame.type),
           (unsigned long long)frame.session, (unsigned long long)frame.view,
           (unsigned long long)frame.sequence, (unsigned long long)frame.offset,
           frame.length, frame.flags, frame.payload);

    struct tl_event event = {.type = TL_EV_FRAME};

    event.frame.id = end->id;
    event.frame.frame = &frame;
    event.frame.payload = frame.payload ? bytes : NULL;
    any = true;
    node_step (sim, node, &event);
    if (end->state == END_OPEN) {
      pipe->start += TL_FRAME_SIZE + frame.payload;
      pipe->arrived -= TL_FRAME_SIZE + frame.payload;
    }
  }
  if (!any || sim->violated)
    return;
  if (rng_percent (&sim->rng, 10)) {
    sim_at (sim, sim->now + rng_below (&sim->rng, 50), K_BATCH_END, node, 0, 0);
    return;
  }

  struct tl_event event = {.type = TL_EV_BATCH_END};

  node_step (sim, node, &event);
}

void
network_arrive (struct sim *sim, uint64_t id, uint64_t from, uint64_t bytes)
{
  struct conn *conn = sim->network.conns[id];
  struct pipe *pipe = &conn->pipes[from & 1];

  if (pipe->last_order == from >> 1) {
    bytes += pipe->extra;
    pipe->extra = 0;
    pipe->last_order = 0;
  }
  if (pipe->cut || conn->ends[!(from & 1)].state == END_GONE)
    return;
  pipe->arrived += bytes;
  if (conn->ends[!(from & 1)].state == END_OPEN)
    take (sim, conn, from & 1);
}
