/* Connections between the nodes. */
#include "explore.h"

#include <assert.h>

static struct conn *
find_conn (uint32_t id, unsigned *index)
{
  for (unsigned i = 0; i < CONNS; i++)
    if (id != 0 && world.conns[i].id == id) {
      *index = i;
      return &world.conns[i];
    }
  return NULL;
}

static struct packet *
put (unsigned conn, unsigned receiver)
{
  struct pipe *pipe = &pipes[conn][receiver];
  struct packet *p = &pipe->packets[pipe->n];

  if (!world.conns[conn].open[receiver])
    return NULL;
  if (pipe->n == QUEUE) {
    overflow = true;
    return NULL;
  }
  memset (p, 0, offsetof (struct packet, small));
  pipe->n++;
  return p;
}

/* Node SIDE is done with it: what it had sent still arrives, then the end. */
static void
close_side (unsigned conn, unsigned side)
{
  struct conn *c = &world.conns[conn];
  struct packet *p;

  if (!c->open[side])
    return;
  c->open[side] = false;
  pipes[conn][side].n = 0;
  if (!c->open[!side]) {
    c->id = 0;
    c->cut = false;
  } else if (!c->cut) {
    p = put (conn, !side);
    if (p != NULL)
      p->end = true;
  }
}

/* What is on the way is lost, and so is what is sent until both know. */
void
wire_cut (unsigned conn)
{
  struct conn *c = &world.conns[conn];

  for (unsigned side = 0; side < 2; side++) {
    struct packet *p;

    pipes[conn][side].n = 0;
    p = put (conn, side);
    if (p != NULL)
      p->end = true;
  }
  c->cut = true;
}

void
wire_send (unsigned node, const struct tl_action *a)
{
  const struct client *r = (const struct client *)(const void *)a->request;
  uint64_t first = a->frame.offset / TL_BLOCK;
  unsigned conn;
  struct conn *c = find_conn (a->conn, &conn);
  struct packet *p;

  /* Pings are answered in time_pass: they carry nothing. */
  if (a->frame.type == TL_PING || a->frame.type == TL_PONG)
    return;
  if (c == NULL || c->cut || !c->open[node])
    return;
  p = put (conn, !node);
  if (p == NULL)
    return;
  p->frame = a->frame;
  switch (a->payload) {
  case TL_PAYLOAD_NONE:
    break;
  case TL_PAYLOAD_REQUEST:
    p->tags[first] = r->tag;
    break;
  case TL_PAYLOAD_STORE:
    for (uint64_t b = first; b < first + a->frame.length / TL_BLOCK; b++)
      p->tags[b] = world.nodes[node].tags[b];
    break;
  case TL_PAYLOAD_SMALL:
    assert (a->frame.payload <= SMALL);
    p->length = (uint16_t)a->frame.payload;
    memcpy (p->small, a->small, p->length);
    break;
  }
}

void
wire_dial (unsigned node)
{
  struct tl_event event = {.type = TL_EV_CONNECTED};
  unsigned conn = 0;
  struct conn *c;

  world.nodes[node].dial_wanted = false;
  while (world.conns[conn].id != 0)
    conn++;
  c = &world.conns[conn];
  c->id = ++world.next_conn;
  c->open[0] = c->open[1] = true;
  c->cut = false;
  event.connected.id = c->id;
  event.connected.dialled = false;
  world_step (!node, &event);
  event.connected.dialled = true;
  world_step (node, &event);
}

/* The next frame, and that no other follows for the moment: a batch of several
 * is the same as that the acknowledgements between are lost or late.
 */
void
wire_deliver (unsigned node, unsigned conn)
{
  static struct packet p;
  struct pipe *pipe = &pipes[conn][node];
  struct tl_event event = {.type = TL_EV_FRAME};
  uint32_t id = world.conns[conn].id;

  p = pipe->packets[0];
  memmove (&pipe->packets[0], &pipe->packets[1],
           --pipe->n * sizeof pipe->packets[0]);
  if (p.end) {
    event.type = TL_EV_CLOSED;
    event.closed.id = id;
    event.closed.reason = "connection lost";
    close_side (conn, node);
    world_step (node, &event);
    return;
  }
  event.frame.id = id;
  event.frame.frame = &p.frame;
  event.frame.payload = p.small;
  arriving = &p;
  world_step (node, &event);
  event = (struct tl_event){.type = TL_EV_BATCH_END};
  world_step (node, &event);
}

/* The node closes the connection; it may be gone already. */
void
wire_close (unsigned node, uint32_t id)
{
  unsigned conn;

  if (find_conn (id, &conn) != NULL)
    close_side (conn, node);
}

/* What the node had sent and has not arrived is lost with it: that it arrives
 * first is another order of moves.
 */
void
wire_crash (unsigned node)
{
  for (unsigned i = 0; i < CONNS; i++)
    if (world.conns[i].id != 0 && world.conns[i].open[node]) {
      pipes[i][!node].n = 0;
      world.conns[i].cut = false;
      close_side (i, node);
    }
}

/* Connections by age, without gaps: so that equal states are equal bytes.
 * Numbers of connections change, so this ends a move.
 */
void
wire_tidy (void)
{
  unsigned n = 0;

  for (unsigned i = 0; i < CONNS; i++) {
    if (world.conns[i].id == 0)
      continue;
    if (n != i) {
      world.conns[n] = world.conns[i];
      memset (&world.conns[i], 0, sizeof world.conns[i]);
      for (unsigned side = 0; side < 2; side++) {
        pipes[n][side].n = pipes[i][side].n;
        memcpy (pipes[n][side].packets, pipes[i][side].packets,
                pipes[i][side].n * sizeof pipes[i][side].packets[0]);
        pipes[i][side].n = 0;
      }
    }
    n++;
  }
}
