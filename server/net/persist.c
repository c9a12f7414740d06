/* The state file is written off the loop: a disk may take its time.  The core
 * has one record under way; where it asks again before the answer, the newest
 * record is saved and each request is answered.
 */
#include "net/net.h"

static void
run (uv_work_t *work)
{
  struct tl_node *node = work->data;
  struct tl_persist *persist = &node->persist;

  persist->reason[0] = 0;
  persist->result = tl_state_save (node->state, &persist->saving,
                                   persist->reason, sizeof persist->reason);
}

static void
after (uv_work_t *work, int status)
{
  struct tl_node *node = work->data;
  struct tl_persist *persist = &node->persist;
  struct tl_event event = {.type = TL_EV_STORED};

  persist->busy = false;
  event.stored.ok = persist->result == 0;
  event.stored.reason = event.stored.ok ? NULL : persist->reason;
  tl_lock (node);
  tl_step (node, &event);
  tl_leave (node);
  tl_turn (node);
}

void
tl_persist_turn (struct tl_node *node)
{
  struct tl_persist *persist = &node->persist;
  bool start = false;

  if (persist->busy)
    return;
  tl_lock (node);
  if (persist->wanted && !node->over) {
    persist->wanted--;
    persist->saving = persist->record;
    start = true;
  }
  tl_unlock (node);
  if (!start)
    return;
  persist->work.data = node;
  persist->busy = uv_queue_work (&node->loop, &persist->work, run, after) == 0;
}
