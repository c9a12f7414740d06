/* Carries out the actions of an update, in their order, as the contract in
 * core.h has them.  The counterpart of this in the plugin is in server/net.
 */
#include "sim.h"

#include <errno.h>
#include <string.h>

static struct op *
op_of (struct tl_request *request)
{
  return (struct op *)request;
}

static void
on_store (struct sim *sim, struct node *node, const struct tl_action *action,
          const struct tl_event *event)
{
  struct op *op = op_of (action->request);

  switch (action->type) {
  case TL_DO_WRITE:
    TRACE (sim, "%s:   write the store: %s", node->name, sim_op_text (op));
    tl_store_write (node->store, op->request.offset, op->request.length,
                    op->bytes);
    break;
  case TL_DO_READ:
    TRACE (sim, "%s:   read the store: %s", node->name, sim_op_text (op));
    tl_store_read (node->store, op->request.offset, op->request.length,
                   op->bytes);
    break;
  case TL_DO_ZERO:
    TRACE (sim, "%s:   zero the store: %llu+%u", node->name,
           (unsigned long long)action->offset, action->length);
    tl_store_zero (node->store, action->offset, action->length);
    break;
  case TL_DO_APPLY:
    TRACE (sim, "%s:   apply %llu+%u", node->name,
           (unsigned long long)action->offset, action->length);
    if (event->type != TL_EV_FRAME ||
        event->frame.frame->payload != action->length ||
        action->offset + action->length > sim->size)
      sim_violate (sim, "%s applies %llu+%u, which no frame brought",
                   node->name, (unsigned long long)action->offset,
                   action->length);
    else
      tl_store_write (node->store, action->offset, action->length,
                      event->frame.payload);
    break;
  default:
    TRACE (sim, "%s:   clear the store", node->name);
    tl_store_clear (node->store);
    break;
  }
}

/* resync-rate: BYTES of a chunk are paid for before the next one goes. */
static void
check_pace (struct sim *sim, struct node *node, const struct tl_frame *frame,
            uint64_t now)
{
  if (frame->type == TL_SYNC_BEGIN)
    node->paced = 0;
  if (frame->type != TL_SYNC_CHUNK || sim->resync_rate == 0)
    return;
  if (now < node->paced)
    sim_violate (sim, "%s sends a chunk faster than resync-rate allows",
                 node->name);
  if (now > node->paced)
    node->paced = now;
  node->paced += frame->payload * 1000 * MS / sim->resync_rate;
}

static void
send_frame (struct sim *sim, struct node *node, struct tl_action *action,
            const struct tl_event *event)
{
  struct tl_frame *frame = &action->frame;
  const void *payload = NULL;

  switch (action->payload) {
  case TL_PAYLOAD_NONE:
    break;
  case TL_PAYLOAD_REQUEST:
    payload = op_of (action->request)->bytes;
    if (frame->payload != action->request->length)
      sim_violate (sim, "%s sends %u of the %u bytes of a write", node->name,
                   frame->payload, action->request->length);
    break;
  case TL_PAYLOAD_STORE:
    if (frame->payload != frame->length || frame->length > sim->size ||
        frame->offset > sim->size - frame->length) {
      sim_violate (sim, "%s sends %u bytes for %llu+%u of its store",
                   node->name, frame->payload,
                   (unsigned long long)frame->offset, frame->length);
      return;
    }
    tl_store_read (node->store, frame->offset, frame->length, sim->scratch[0]);
    payload = sim->scratch[0];
    frame->checksum = tl_payload_checksum (payload, frame->length);
    break;
  case TL_PAYLOAD_SMALL:
    payload = action->small;
    break;
  }
  if (action->payload == TL_PAYLOAD_NONE && frame->payload != 0)
    sim_violate (sim, "%s sends %s with a payload of %u bytes", node->name,
                 tl_frame_name (frame->type), frame->payload);
  TRACE (sim,
         "%s:   send %s on %u session %llx view %llu seq %llu %llu+%u "
         "flags %u (%u bytes)",
         node->name, tl_frame_name (frame->type), action->conn,
         (unsigned long long)frame->session, (unsigned long long)frame->view,
         (unsigned long long)frame->sequence, (unsigned long long)frame->offset,
         frame->length, frame->flags, frame->payload);
  if (sim->violated)
    return;
  check_pace (sim, node, frame, event->now);
  wire_send (sim, node, action->conn, frame, payload);
  if ((frame->type >= TL_BITMAP && frame->type <= TL_HANDOVER &&
       frame->type != TL_SYNC_CHUNK) ||
      frame->type == TL_WELCOME)
    schedule_notice (sim, node);
}

static void
run_one (struct sim *sim, struct node *node, struct tl_action *action,
         const struct tl_event *event)
{
  switch (action->type) {
  case TL_DO_WRITE:
  case TL_DO_READ:
  case TL_DO_ZERO:
  case TL_DO_APPLY:
  case TL_DO_CLEAR:
    on_store (sim, node, action, event);
    break;
  case TL_DO_SEND:
    send_frame (sim, node, action, event);
    break;
  case TL_DO_CLOSE:
    TRACE (sim, "%s:   close %u: %s", node->name, action->conn,
           action->text ? action->text : "");
    network_close (sim, node, action->conn);
    break;
  case TL_DO_DIAL:
    TRACE (sim, "%s:   dial", node->name);
    network_dial (sim, node);
    break;
  case TL_DO_STORE:
    disk_store (sim, node);
    break;
  case TL_DO_ASK:
    TRACE (sim, "%s:   ask the arbiter: %s for %s", node->name,
           sim_view_text (&action->after),
           action->create ? "nothing" : sim_view_text (&action->before));
    arbiter_ask (sim, node, action);
    schedule_notice (sim, node);
    break;
  case TL_DO_REPLY:
    operators_reply (sim, node, action->token, action->status, action->text);
    break;
  case TL_DO_LOG:
    TRACE (sim, "%s:   log: %s", node->name, action->text);
    /* What force may lose is lost aloud. */
    if (strncmp (action->text, "promoted by force", 17) == 0)
      node->forcing = true;
    break;
  }
}

static void
finish (struct sim *sim, struct node *node)
{
  for (struct tl_request *next, *r = sim->update.done; r; r = next) {
    struct op *op = op_of (r);

    next = r->next;
    if (!op->used || op->node != node->index) {
      sim_violate (sim, "%s answers a request that it does not have",
                   node->name);
      return;
    }
    if (r->error != 0 && r->error != EIO && r->error != ESHUTDOWN) {
      sim_violate (sim, "%s fails %s with errno %d", node->name,
                   sim_op_text (op), r->error);
      return;
    }
    TRACE (sim, "%s:   %s: %s", node->name, sim_op_text (op),
           r->error ? strerror (r->error) : "done");
    clients_done (sim, op);
    if (sim->violated)
      return;
  }
}

void
executor_act (struct sim *sim, struct node *node, const struct tl_event *event,
              unsigned from, unsigned to)
{
  struct tl_update *update = &sim->update;

  for (unsigned i = from; i < to && !sim->violated; i++)
    run_one (sim, node, &update->actions[i], event);
}

void
executor_arm (struct sim *sim, struct node *node)
{
  uint64_t wake = UINT64_MAX;

  if (node->wanted != UINT64_MAX) {
    wake = node->wanted > node->clock ? node->wanted - node->clock : 0;
    if (wake < sim->now)
      wake = sim->now;
  }
  if (wake == node->wake)
    return;
  node->wake = wake;
  node->wake_generation++;

  /* A loop thread is not always there at once: requests may come first. */
  if (wake != UINT64_MAX && rng_percent (&sim->rng, sim->loop_late))
    wake += rng_below (&sim->rng, wake == sim->now ? 500 : sim->loop_late_by);
  if (wake != UINT64_MAX)
    sim_at (sim, wake, K_WAKE, node, node->wake_generation, 0);
}

void
executor_answer (struct sim *sim, struct node *node)
{
  if (sim->violated)
    return;
  finish (sim, node);
  node->wanted = sim->update.wake;
  executor_arm (sim, node);
}

void
executor_run (struct sim *sim, struct node *node, const struct tl_event *event)
{
  if (sim->update.n > TL_ACTIONS) {
    sim_violate (sim, "%s: %u actions in one update", node->name,
                 sim->update.n);
    return;
  }
  executor_act (sim, node, event, 0, sim->update.n);
  executor_answer (sim, node);
}
