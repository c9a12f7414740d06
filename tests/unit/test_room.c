/* What happens where room ends: in memory, in a frame, among the writes that
 * are kept with the RAM.
 */
#include "cluster.h"
#include "lone.h"
#include "unit.h"

#include <errno.h>

static struct cluster c;
static struct lone l;

/* ---- Memory ---- */

void *__real_malloc (size_t size);
void *__real_calloc (size_t n, size_t size);
void *__wrap_malloc (size_t size);
void *__wrap_calloc (size_t n, size_t size);

static unsigned allocations = UINT_MAX; /* that succeed */

void *
__wrap_malloc (size_t size)
{
  if (allocations == 0)
    return NULL;
  allocations--;
  return __real_malloc (size);
}

void *
__wrap_calloc (size_t n, size_t size)
{
  if (allocations == 0)
    return NULL;
  allocations--;
  return __real_calloc (n, size);
}

START_TEST (core_without_memory)
{
  lone_init (&l);
  for (unsigned keep = 0; keep < 2; keep++) {
    struct tl_core *core;

    l.config.incarnation = 7;
    l.config.kept = keep ? &l.kept : NULL;
    for (unsigned n = 0; n < 2; n++) {
      allocations = n;
      core = tl_core_new (&l.config, NULL);
      allocations = UINT_MAX;
      ck_assert_ptr_null (core);
    }
    allocations = 2;
    core = tl_core_new (&l.config, NULL);
    allocations = UINT_MAX;
    ck_assert_ptr_nonnull (core);
    tl_core_free (core);
  }
  tl_map_free (&l.allocated);
}
END_TEST

/* ---- Frames ---- */

/* More dirty runs than a bitmap frame holds: clean gaps go with them, the small
 * ones, and no dirty block is left out.
 */
START_TEST (bitmap_of_many_runs)
{
  struct tl_run runs[TL_RUNS_MAX];
  const struct tl_action *action;
  struct tl_map told, dirty;
  unsigned n;

  lone_init (&l);
  tl_map_over (&dirty, l.kept_map, LONE_BLOCKS);
  for (unsigned i = 0; i < LONE_BLOCKS; i += i < LONE_BLOCKS / 2 ? 2 : 64)
    tl_map_set (&dirty, i, 1);
  lone_start (&l);
  lone_hello (&l);
  lone_welcome (&l);

  action = lone_sent (&l, TL_BITMAP);
  ck_assert_int_eq (tl_runs_decode (runs, &n, LONE_BLOCKS, action->small,
                                    action->frame.payload),
                    0);
  ck_assert_int_eq (tl_map_init (&told, LONE_BLOCKS), 0);
  for (unsigned i = 0; i < n; i++)
    tl_map_set (&told, runs[i].first, runs[i].count);
  for (unsigned i = 0; i < LONE_BLOCKS; i++)
    ck_assert (tl_map_test (&told, i) || !tl_map_test (&dirty, i));
  ck_assert_uint_lt (told.count, LONE_BLOCKS / 2 + LONE_BLOCKS / 64);
  tl_map_free (&told);
  lone_free (&l);
}
END_TEST

/* A primary of another release may compare as many blocks at once as a frame
 * can hold.
 */
START_TEST (verify_of_many_blocks)
{
  struct tl_frame frame = {.type = TL_VERIFY,
                           .view = 1,
                           .sequence = 1,
                           .length = TL_SMALL_MAX / 8 * TL_BLOCK,
                           .payload = TL_SMALL_MAX};
  static unsigned char sums[TL_SMALL_MAX];
  struct tl_run runs[TL_RUNS_MAX];
  const struct tl_action *action;
  unsigned n;

  for (unsigned i = 0; i < TL_SMALL_MAX / 8; i += 2)
    sums[8 * i] = 1;
  lone_init (&l);
  lone_start (&l);
  lone_hello (&l);
  frame.session = lone_welcome (&l);
  lone_give (&l, frame, sums);
  action = lone_sent (&l, TL_VERIFIED);
  ck_assert_int_eq (tl_runs_decode (runs, &n, LONE_BLOCKS, action->small,
                                    action->frame.payload),
                    0);
  ck_assert_uint_eq (n, TL_RUNS_MAX);
  for (unsigned i = 0; i < n; i++) {
    ck_assert_uint_eq (runs[i].first, 2 * i);
    ck_assert_uint_eq (runs[i].count, 1);
  }
  lone_free (&l);
}
END_TEST

/* More blocks differ than were compared: that is no answer. */
START_TEST (verified_of_many_runs)
{
  unsigned char bytes[TL_SMALL_MAX];
  struct tl_run runs[TL_RUNS_MAX];
  struct tl_frame frame;
  struct tl_status s;

  for (unsigned i = 0; i < TL_RUNS_MAX; i++)
    runs[i] = (struct tl_run){.first = i % BLOCKS, .count = 1};
  cluster_pair (&c, TL_POLICY_ERROR);
  c.hold_frames = true;
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_VERIFY, 0), TL_DONE);
  ck_assert_int_eq (c.pipes[0].packets[0].frame.type, TL_VERIFY);
  frame = (struct tl_frame){
      .type = TL_VERIFIED,
      .session = c.pipes[0].packets[0].frame.session,
      .sequence = BLOCKS,
      .payload = (uint32_t)tl_runs_encode (runs, TL_RUNS_MAX, bytes)};
  cluster_inject (&c, 0, &frame, bytes);
  cluster_status (&c, 0, &s);
  ck_assert (!s.peer_known && s.verify_interrupted);
  ck_assert_uint_eq (s.out_of_sync, 0);
  cluster_free (&c);
}
END_TEST

/* ---- The writes that are kept with the RAM ---- */

START_TEST (more_writes_than_are_kept)
{
  static struct tl_request requests[TL_KEPT_WRITES + 1], again;
  struct tl_request *last = &requests[TL_KEPT_WRITES];
  struct tl_event event = {.type = TL_EV_REQUEST};
  struct tl_frame ack = {.type = TL_ACK};
  unsigned done = 0;

  lone_init (&l);
  l.record.view.primary[0] = l.hello.view.primary[0] = 'a';
  l.hello.role = TL_SECONDARY;
  lone_start (&l);
  lone_hello (&l);
  ack.session = lone_welcome (&l);
  lone_sent (&l, TL_VIEW);
  lone_give (&l, (struct tl_frame){.type = TL_BITMAP, .session = ack.session},
             NULL);
  for (unsigned i = 0; i <= TL_KEPT_WRITES; i++) {
    requests[i] = (struct tl_request){.op = TL_OP_WRITE,
                                      .offset = i % 8 * 512,
                                      .length = 512,
                                      .epoch = tl_core_epoch (l.core)};
    event.request = &requests[i];
    lone_step (&l, &event);
    if (i == TL_KEPT_WRITES)
      break;
    ck_assert_ptr_null (l.update.done);
    ack.sequence = lone_sent (&l, TL_WRITE)->frame.sequence;
  }
  ck_assert_ptr_eq (l.update.done, last);
  ck_assert_int_eq (last->error, EIO);
  ck_assert_uint_eq (l.update.n, 0); /* and the store is as it was */

  /* Once the peer has some there is room again. */
  lone_give (&l, ack, NULL);
  for (struct tl_request *r = l.update.done; r != NULL; r = r->next, done++)
    ck_assert_int_eq (r->error, 0);
  ck_assert_uint_eq (done, TL_KEPT_WRITES);
  again = requests[0];
  event.request = &again;
  lone_step (&l, &event);
  ck_assert_ptr_null (l.update.done);
  ck_assert_uint_eq (lone_sent (&l, TL_WRITE)->frame.sequence,
                     ack.sequence + 1);
  lone_free (&l);
}
END_TEST

UNIT_MAIN ("room", core_without_memory, bitmap_of_many_runs,
           verify_of_many_blocks, verified_of_many_runs,
           more_writes_than_are_kept)
