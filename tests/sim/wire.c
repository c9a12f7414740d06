/* Bytes on their way: frames go through the real codec into a stream that
 * arrives in arbitrary pieces, and out of it into the other node's core.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

static void
append (struct pipe *pipe, const void *bytes, size_t n)
{
  if (n == 0)
    return;
  if (pipe->end + n > pipe->room) {
    if (pipe->start > 0)
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
wire_send (struct sim *sim, struct node *node, uint32_t id,
           const struct tl_frame *frame, const void *payload)
{
  unsigned e;
  struct conn *conn = network_find (sim, node, id, &e);

  if (!conn) {
    TRACE (sim, "%s:   (connection %u is gone, dropped)", node->name, id);
    return;
  }

  struct pipe *pipe = &conn->pipes[e];
  struct end *far = &conn->ends[!e];
  uint64_t number = network_number (&sim->network, conn);

  if (far->state == END_GONE) {
    /* A machine that runs answers with a reset; one that is off does not. */
    if (sim->nodes[far->node].alive)
      network_tell (sim, conn, number, e, sim->now + 2 * network_delay (sim));
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

  uint64_t when = sim->now + network_delay (sim);

  if (rng_percent (&sim->rng, 5)) {
    size_t head = rng_below (&sim->rng, n);

    arrival (sim, number, e, when, head);
    n -= head;
    when += network_delay (sim);
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
  network_end_gone (conn, e);
  network_tell (sim, conn, network_number (&sim->network, conn), !e,
                sim->now + network_delay (sim));

  struct tl_event event = {.type = TL_EV_CLOSED};

  event.closed.id = end->id;
  event.closed.reason = reason;
  node_step (sim, node, &event);
}

/* Does NODE learn by this frame that the peer has stored its own view?  A
 * heartbeat says no more than the hello that began the session; and to a node
 * that came without the data nothing says so before it is told a view: the peer
 * may have stored the one without it.
 */
static void
note_view (struct sim *sim, struct node *node, const struct tl_frame *frame,
           const void *payload)
{
  struct tl_hello hello;

  if (frame->type == TL_HELLO) {
    node->hello_view = tl_hello_decode (&hello, payload, frame->payload) == 0
                           ? hello.view.id
                           : 0;
    node->counts = node_status (sim, node)->disk >= TL_DISK_OUTDATED;
    return;
  }
  node->counts |= frame->type == TL_VIEW || frame->type == TL_HANDOVER;
  if (node->counts && frame->session != 0 &&
      frame->view == node->stored_number &&
      ((frame->type != TL_PING && frame->type != TL_PONG) ||
       node->hello_view == node->stored_id))
    node->connected_view = node->stored_id;
}

/* Give a frame to the core of the node at END. */
static void
deliver (struct sim *sim, struct node *node, const struct end *end,
         const struct strange *given)
{
  const struct tl_frame *frame = &given->frame;
  struct tl_event event = {.type = TL_EV_FRAME};

  TRACE (sim,
         "%s: %s session %llx view %llu seq %llu %llu+%u flags %u (%u bytes)",
         node->name, tl_frame_name (frame->type),
         (unsigned long long)frame->session, (unsigned long long)frame->view,
         (unsigned long long)frame->sequence, (unsigned long long)frame->offset,
         frame->length, frame->flags, frame->payload);
  event.frame.id = end->id;
  event.frame.frame = frame;
  event.frame.payload = frame->payload ? given->payload : NULL;
  if (!given->changed)
    note_view (sim, node, frame, event.frame.payload);
  node_step (sim, node, &event);
}

/* What a stranger has changed is judged anew: its header, then the rest.  True
 * where the connection has ended.
 */
static bool
judge (struct sim *sim, struct conn *conn, unsigned e, struct strange *given)
{
  unsigned char header[TL_FRAME_SIZE];
  struct tl_frame again;
  const char *reason;

  tl_frame_encode (&given->frame, header);
  reason = tl_frame_decode (&again, header, sim->size);
  if (!reason)
    return false;
  sim->network.corrupted = true;
  bad_bytes (sim, conn, e, reason);
  return true;
}

/* Give the node at the far end of pipe FROM the frames that are whole. */
void
wire_take (struct sim *sim, struct conn *conn, unsigned from)
{
  struct pipe *pipe = &conn->pipes[from];
  struct end *end = &conn->ends[!from];
  struct node *node = &sim->nodes[end->node];
  bool any = false;

  while (end->state == END_OPEN && pipe->arrived >= TL_FRAME_SIZE &&
         !node->halted && !sim->violated) {
    const unsigned char *bytes = pipe->bytes + pipe->start;
    struct strange given = {.times = 1};
    const char *reason = tl_frame_decode (&given.frame, bytes, sim->size);
    size_t n = TL_FRAME_SIZE + given.frame.payload;

    if (reason) {
      bad_bytes (sim, conn, !from, reason);
      return;
    }
    if (pipe->arrived < n)
      break;
    given.payload = bytes + TL_FRAME_SIZE;
    if (tl_payload_checksum (given.payload, given.frame.payload) !=
        given.frame.checksum) {
      bad_bytes (sim, conn, !from, "checksum of a payload");
      return;
    }
    any = true;
    if (stranger_change (sim, node, &given) && judge (sim, conn, !from, &given))
      return;
    for (unsigned i = 0;
         i < given.times && end->state == END_OPEN && !node->halted; i++)
      deliver (sim, node, end, &given);
    if (end->state == END_OPEN && !sim->violated) {
      if (given.refused && !node->halted)
        sim_violate (sim, "%s lets a wrong %s frame pass", node->name,
                     tl_frame_name (given.frame.type));
      pipe->start += n;
      pipe->arrived -= n;
    }
  }
  if (node->halted && !sim->violated) {
    /* The rest comes when it goes on. */
    struct entry rest = {.time = node->frozen_until,
                         .kind = K_ARRIVE,
                         .node = node->index,
                         .life = node->life,
                         .a = network_number (&sim->network, conn),
                         .b = from};

    queue_push (&sim->queue, &rest);
    sim_at (sim, node->frozen_until, K_BATCH_END, node, 0, 0);
    return;
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
wire_arrive (struct sim *sim, uint64_t id, uint64_t from, uint64_t bytes)
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
    wire_take (sim, conn, from & 1);
}
