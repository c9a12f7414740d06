/* The secondary's side: apply frames in order, each whole, and acknowledge
 * them all at once.
 */
#include "internal.h"

#include <inttypes.h>

static void
sync_begin (struct tl_core *c, bool full)
{
  if (full || !is_member (c))
    c->kept->data = TL_INCONSISTENT;
  if (full) {
    act (c, TL_DO_CLEAR);
    tl_map_clear (&c->dirty, 0, c->dirty.blocks);
    c->kept->map_incarnation = 0;
  }
  c->resync.active = true;
  changed (c);
}

static void
sync_done (struct tl_core *c)
{
  c->kept->data = TL_COMPLETE;
  c->resynced = true;
  c->proved = true;
  c->resync.active = false;
  tl_map_clear (&c->dirty, 0, c->dirty.blocks);
  c->kept->map_incarnation = c->peer.incarnation;
  changed (c);
  say (c, "resync from node %s is complete", c->peer.node);
}

void
target_frame (struct tl_core *c, const struct tl_frame *f, const void *payload)
{
  struct tl_action *action;

  if (c->phase != PHASE_TARGET) {
    session_end (c, true, "%s frame where none was expected",
                 tl_frame_name (f->type));
    return;
  }
  if (f->view != c->session_view) {
    session_end (c, true, "%s frame of view %" PRIu64 " in view %" PRIu64,
                 tl_frame_name (f->type), f->view, c->session_view);
    return;
  }
  if (f->sequence != c->rx_sequence + 1) {
    session_end (c, true, "frame %" PRIu64 " where %" PRIu64 " was due",
                 f->sequence, c->rx_sequence + 1);
    return;
  }
  if (f->type == TL_SYNC_BEGIN) {
    sync_begin (c, f->flags & TL_FULL);
  } else if (f->type == TL_SYNC_DONE) {
    if (!c->resync.active) {
      session_end (c, true, "sync-done without a resync");
      return;
    }
    sync_done (c);
  } else if (f->type == TL_VERIFY) {
    verify_compare (c, f, payload);
  } else if (f->length > 0) {
    if (c->kept->data == TL_EMPTY ||
        (f->type == TL_SYNC_CHUNK && !c->resync.active)) {
      session_end (c, true, "%s frame before sync-begin",
                   tl_frame_name (f->type));
      return;
    }
    c->proved = c->proved || !c->resync.active;
    action = act (c, f->payload > 0 ? TL_DO_APPLY : TL_DO_ZERO);
    action->offset = f->offset;
    action->length = f->length;
  }
  c->rx_sequence = f->sequence;
}

void
target_ack (struct tl_core *c)
{
  if (c->phase != PHASE_TARGET || c->rx_sequence == c->rx_acked)
    return;
  send_frame (c, TL_ACK, 0)->frame.sequence = c->rx_sequence;
  c->rx_acked = c->rx_sequence;
}
