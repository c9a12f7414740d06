/* When a request is answered, and what a resync sends. */
#include "cluster.h"
#include "unit.h"

#include <errno.h>

static struct cluster c;
static struct unit_request r, r2, r3;
static struct tl_status s;

#define status_of(i) (cluster_status (&c, i, &s), &s)

/* V1 */
START_TEST (write_waits_for_the_peer)
{
  cluster_pair (&c, TL_POLICY_ERROR);
  c.hold_acks = true;
  cluster_write (&c, 0, &r, 0, TL_BLOCK, 'x');
  cluster_run (&c);
  ck_assert (!r.done);
  ck_assert_int_eq (c.nodes[1].bytes[0], 'x');
  /* What is not acknowledged yet is not read either. */
  cluster_read (&c, 0, &r2, 0, TL_BLOCK);
  cluster_run (&c);
  ck_assert (!r2.done);
  c.hold_acks = false;
  cluster_run (&c);
  ck_assert (r.done && r.core.error == 0);
  ck_assert (r2.done && r2.core.error == 0 && r2.bytes[0] == 'x');
  cluster_free (&c);
}
END_TEST

/* Policy error: held for the deadline, then EIO, then whole again. */
START_TEST (error_policy_fails_after_the_deadline)
{
  cluster_pair (&c, TL_POLICY_ERROR);
  cluster_cut (&c, false);
  cluster_write (&c, 0, &r, 0, TL_BLOCK, 'x');
  cluster_pass (&c, DEADLINE - 50000);
  ck_assert (!r.done);
  ck_assert (status_of (0)->suspended);
  ck_assert_uint_eq (s.copies, 1);
  cluster_pass (&c, 100000);
  ck_assert (r.done && r.core.error == EIO);
  /* From now on at once; a read of the failed block too. */
  cluster_write (&c, 0, &r, TL_BLOCK, TL_BLOCK, 'y');
  ck_assert (r.done && r.core.error == EIO);
  cluster_read (&c, 0, &r, 0, TL_BLOCK);
  ck_assert (r.done && r.core.error == EIO);
  c.link = true;
  cluster_pass (&c, 2 * DEADLINE);
  ck_assert (!status_of (0)->suspended);
  ck_assert_uint_eq (s.out_of_sync, 0);
  ck_assert_uint_eq (s.copies, 2);
  cluster_read (&c, 0, &r, 0, TL_BLOCK);
  cluster_run (&c);
  ck_assert (r.done && r.core.error == 0 && r.bytes[0] == 'x');
  ck_assert_int_eq (memcmp (c.nodes[0].bytes, c.nodes[1].bytes, SIZE), 0);
  cluster_free (&c);
}
END_TEST

/* A later part of a request has the time that the parts before it left: with an
 * arbiter the first one may have waited for the deadline and longer.
 */
START_TEST (part_has_the_time_of_the_whole)
{
  uint64_t began;

  cluster_pair (&c, TL_POLICY_ARBITER);
  began = c.now;
  cluster_cut (&c, false);
  cluster_write (&c, 0, &r, 0, TL_BLOCK, 'x');
  c.arbiter_up = false;
  cluster_pass (&c, DEADLINE + 50000);
  ck_assert (!r.done);
  c.arbiter_up = true;
  cluster_pass (&c, 300000);
  ck_assert (r.done && r.core.error == 0);
  cluster_part (&c, 0, &r, TL_BLOCK, TL_BLOCK, began);
  ck_assert (r.done && r.core.error == 0);
  /* Alone it takes no time, however late it is. */
  cluster_part (&c, 0, &r, TL_BLOCK, TL_BLOCK, 1);
  ck_assert (r.done && r.core.error == 0);
  c.link = true;
  cluster_pass (&c, 3 * DEADLINE);
  ck_assert_uint_eq (status_of (0)->copies, 2);
  cluster_part (&c, 0, &r, TL_BLOCK, TL_BLOCK, c.now - DEADLINE);
  cluster_run (&c);
  ck_assert (r.done && r.core.error == 0);
  cluster_part (&c, 0, &r, TL_BLOCK, TL_BLOCK, c.now - 3 * DEADLINE);
  ck_assert (r.done && r.core.error == EIO);
  /* One that waits does so for what is left. */
  cluster_cut (&c, false);
  c.arbiter_up = false;
  cluster_part (&c, 0, &r, TL_BLOCK, TL_BLOCK, c.now - DEADLINE);
  cluster_pass (&c, DEADLINE - 150000);
  ck_assert (!r.done);
  cluster_pass (&c, 100000);
  ck_assert (r.done && r.core.error == EIO);
  cluster_free (&c);
}
END_TEST

/* The partner has for it what is left of the deadline, and a moment at least.
 */
START_TEST (part_ends_the_session)
{
  cluster_pair (&c, TL_POLICY_ARBITER);
  c.hold_acks = true;
  cluster_part (&c, 0, &r, 0, TL_BLOCK, c.now - DEADLINE * 6 / 10);
  cluster_pass (&c, DEADLINE * 4 / 10 - 20000);
  ck_assert (!r.done);
  ck_assert_uint_eq (status_of (0)->copies, 2);
  cluster_pass (&c, 40000);
  ck_assert (r.done && r.core.error == 0);
  ck_assert_uint_eq (status_of (0)->copies, 1);
  c.hold_acks = false;
  cluster_pass (&c, 2 * DEADLINE);
  ck_assert_uint_eq (status_of (0)->copies, 2);

  c.hold_acks = true;
  cluster_part (&c, 0, &r, 0, TL_BLOCK, c.now - DEADLINE);
  cluster_pass (&c, 40000);
  ck_assert (!r.done);
  c.hold_acks = false;
  cluster_pass (&c, 5000);
  ck_assert (r.done && r.core.error == 0);
  ck_assert_uint_eq (status_of (0)->copies, 2);
  cluster_free (&c);
}
END_TEST

/* A write that waits through a short cut succeeds, in the same view. */
START_TEST (write_survives_a_blip)
{
  cluster_pair (&c, TL_POLICY_ERROR);
  c.hold_acks = true;
  cluster_write (&c, 0, &r, 0, 100, 'x');
  cluster_run (&c);
  cluster_cut (&c, true);
  c.hold_acks = false;
  cluster_pass (&c, 200000);
  ck_assert (r.done && r.core.error == 0);
  ck_assert_uint_eq (status_of (0)->view.number, 1);
  ck_assert_int_eq (status_of (1)->disk, TL_DISK_UPTODATE);
  ck_assert_int_eq (memcmp (c.nodes[0].bytes, c.nodes[1].bytes, SIZE), 0);
  cluster_free (&c);
}
END_TEST

/* Policy continue: a partner that hangs costs the deadline, no error. */
START_TEST (continue_goes_on_past_a_frozen_partner)
{
  cluster_pair (&c, TL_POLICY_CONTINUE);
  c.hold_frames = true;
  cluster_write (&c, 0, &r, 0, TL_BLOCK, 'x');
  cluster_pass (&c, DEADLINE - 20000);
  ck_assert (!r.done);
  cluster_pass (&c, 40000);
  ck_assert (r.done && r.core.error == 0);
  ck_assert_uint_eq (status_of (0)->copies, 1);
  cluster_free (&c);
}
END_TEST

/* A chunk says what the store holds at its place in the stream, also where a
 * write made its block exist only just before.
 */
START_TEST (chunk_does_not_overtake_a_write)
{
  static struct unit_request zero;

  cluster_init (&c, TL_POLICY_ERROR);
  c.extra.resync_rate = 2 * TL_BLOCK; /* a second */
  cluster_create (&c);
  cluster_cut (&c, false);
  cluster_run (&c);
  cluster_write (&c, 0, &r2, 0, TL_BLOCK, 'y');
  cluster_zero (&c, 0, &zero, 2 * TL_BLOCK, TL_BLOCK);
  c.link = true;
  cluster_pass (&c, 100000);
  /* The chunk of zeroes waits for its time, and the write comes just then. */
  ck_assert_uint_eq (status_of (0)->out_of_sync, TL_BLOCK);
  c.now += 500000;
  cluster_write (&c, 0, &r, 2 * TL_BLOCK, TL_BLOCK, 'x');
  cluster_pass (&c, 100000);
  ck_assert (r.done && r.core.error == 0);
  ck_assert_uint_eq (status_of (0)->out_of_sync, 0);
  ck_assert_int_eq (c.nodes[1].bytes[2 * TL_BLOCK], 'x');
  ck_assert_int_eq (memcmp (c.nodes[0].bytes, c.nodes[1].bytes, SIZE), 0);
  cluster_free (&c);
}
END_TEST

/* A request that comes just before the time of a chunk does not take that
 * chunk's turn away.
 */
START_TEST (request_does_not_stop_a_resync)
{
  cluster_init (&c, TL_POLICY_ERROR);
  c.extra.resync_rate = 2 * TL_BLOCK; /* a second */
  cluster_create (&c);
  cluster_cut (&c, false);
  cluster_run (&c);
  cluster_write (&c, 0, &r, 0, TL_BLOCK, 'y');
  cluster_write (&c, 0, &r2, 2 * TL_BLOCK, TL_BLOCK, 'z');
  c.link = true;
  cluster_pass (&c, 100000);
  ck_assert_uint_eq (status_of (0)->out_of_sync, TL_BLOCK);
  c.now += 500000;
  cluster_read (&c, 0, &r3, 4 * TL_BLOCK, TL_BLOCK);
  ck_assert (r3.done && r3.core.error == 0);
  ck_assert_uint_le (c.nodes[0].wake, c.now);
  cluster_free (&c);
}
END_TEST

START_TEST (local_reads_need_no_word)
{
  cluster_init (&c, TL_POLICY_ARBITER);
  c.extra.reads_local = true;
  cluster_create (&c);
  c.hold_acks = true;
  cluster_read (&c, 0, &r, 0, TL_BLOCK);
  ck_assert (r.done && r.core.error == 0);
  c.hold_acks = false;
  c.extra.reads_local = false;
  cluster_free (&c);
  cluster_pair (&c, TL_POLICY_ARBITER);
  c.hold_acks = true;
  cluster_read (&c, 0, &r, 0, TL_BLOCK);
  ck_assert (!r.done);
  cluster_free (&c);
}
END_TEST

/* Eight blocks at one block in a tenth of a second. */
START_TEST (resync_keeps_its_rate)
{
  cluster_init (&c, TL_POLICY_ARBITER);
  c.extra.resync_rate = 10 * TL_BLOCK;
  cluster_create (&c);
  cluster_crash (&c, 1);
  cluster_run (&c);
  for (unsigned i = 0; i < 8; i++) {
    cluster_write (&c, 0, &r, 2 * i * TL_BLOCK, TL_BLOCK, 'a');
    ck_assert (r.done && r.core.error == 0);
  }
  cluster_start (&c, 1);
  cluster_pass (&c, 400000);
  ck_assert_int_eq (status_of (0)->link, TL_LINK_SYNCSOURCE);
  ck_assert_uint_ge (s.out_of_sync, 2 * TL_BLOCK);
  cluster_pass (&c, 700000);
  ck_assert_uint_eq (status_of (0)->copies, 2);
  cluster_free (&c);
}
END_TEST

/* The first write of a session, with its view and its number changed by so
 * much: it is not applied, and the session ends.
 */
static void
refuse_frame (unsigned view, unsigned sequence)
{
  struct tl_frame frame;

  cluster_pair (&c, TL_POLICY_ERROR);
  c.hold_frames = true;
  cluster_write (&c, 0, &r, 0, TL_BLOCK, 'z');
  ck_assert_uint_eq (c.pipes[0].n, 1);
  frame = c.pipes[0].packets[0].frame;
  frame.view += view;
  frame.sequence += sequence;
  cluster_inject (&c, 1, &frame, r.bytes);
  ck_assert_int_eq (c.nodes[1].bytes[0], 0);
  ck_assert_int_eq (status_of (1)->link, TL_LINK_CONNECTING);
  c.hold_frames = false;
  cluster_pass (&c, DEADLINE / 2);
  ck_assert (r.done && r.core.error == 0);
  ck_assert_int_eq (c.nodes[1].bytes[0], 'z');
  cluster_free (&c);
}

START_TEST (frame_of_another_view_is_refused)
{
  refuse_frame (1, 0);
}
END_TEST

START_TEST (gap_is_refused)
{
  refuse_frame (0, 1);
}
END_TEST

START_TEST (frame_of_another_session_is_refused)
{
  struct tl_frame frame = {.type = TL_WRITE,
                           .session = 1,
                           .view = 1,
                           .sequence = 1,
                           .length = TL_BLOCK,
                           .payload = TL_BLOCK};
  static unsigned char bytes[TL_BLOCK] = {'z'};

  cluster_pair (&c, TL_POLICY_ERROR);
  cluster_inject (&c, 1, &frame, bytes);
  ck_assert_int_eq (c.nodes[1].bytes[0], 0);
  ck_assert_int_eq (status_of (1)->link, TL_LINK_CONNECTING);
  cluster_free (&c);
}
END_TEST

/* V1: the target of a resync is no member; what it acknowledges counts only
 * once there is a view without it.
 */
START_TEST (word_of_no_member_does_not_count)
{
  cluster_pair (&c, TL_POLICY_ERROR);
  c.hold_stores = 1;
  cluster_crash (&c, 1);
  cluster_start (&c, 1);
  cluster_pass (&c, DEADLINE / 4);
  cluster_write (&c, 0, &r, 0, TL_BLOCK, 'x');
  cluster_run (&c);
  ck_assert_int_eq (c.nodes[1].bytes[0], 'x');
  ck_assert (!r.done);
  c.hold_stores = 0;
  cluster_run (&c);
  ck_assert (r.done && r.core.error == 0);
  cluster_free (&c);
}
END_TEST

/* G6: what differs is found, counted, and mended, while writes go on. */
START_TEST (verify_finds_and_mends)
{
  cluster_pair (&c, TL_POLICY_ERROR);
  ck_assert_int_eq (cluster_command (&c, 1, TL_CMD_VERIFY, 0), TL_FAILED);
  cluster_write (&c, 0, &r, 0, 4 * TL_BLOCK, 'a');
  cluster_run (&c);
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_VERIFY, 0), TL_DONE);
  cluster_run (&c);
  ck_assert (!status_of (0)->verify_active);
  ck_assert_uint_eq (s.verify_checked, SIZE);
  ck_assert_uint_eq (s.verify_different, 0);
  ck_assert_uint_eq (s.resyncs, 0);

  c.nodes[1].bytes[TL_BLOCK + 7] ^= 1;
  c.nodes[1].bytes[2 * TL_BLOCK] ^= 1;
  c.nodes[1].bytes[9 * TL_BLOCK] ^= 1;
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_VERIFY, 0), TL_DONE);
  cluster_write (&c, 0, &r, 3 * TL_BLOCK, TL_BLOCK, 'b');
  cluster_pass (&c, DEADLINE / 10);
  ck_assert (r.done && r.core.error == 0);
  ck_assert (!status_of (0)->verify_active);
  ck_assert_uint_eq (s.verify_different, 3 * TL_BLOCK);
  ck_assert_uint_eq (s.out_of_sync, 0);
  ck_assert_uint_eq (s.copies, 2);
  ck_assert_int_eq (memcmp (c.nodes[0].bytes, c.nodes[1].bytes, SIZE), 0);
  cluster_free (&c);
}
END_TEST

START_TEST (verify_is_interrupted)
{
  cluster_pair (&c, TL_POLICY_ERROR);
  c.hold_frames = true;
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_VERIFY, 0), TL_DONE);
  ck_assert (status_of (0)->verify_active);
  cluster_cut (&c, true);
  c.hold_frames = false;
  cluster_pass (&c, DEADLINE / 2);
  ck_assert (!status_of (0)->verify_active && s.verify_interrupted);
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_VERIFY, 0), TL_DONE);
  cluster_run (&c);
  ck_assert (!status_of (0)->verify_active && !s.verify_interrupted);
  ck_assert_uint_eq (s.verify_checked, SIZE);
  cluster_free (&c);
}
END_TEST

UNIT_MAIN ("acknowledge", write_waits_for_the_peer,
           error_policy_fails_after_the_deadline,
           part_has_the_time_of_the_whole, part_ends_the_session,
           write_survives_a_blip, continue_goes_on_past_a_frozen_partner,
           chunk_does_not_overtake_a_write, request_does_not_stop_a_resync,
           local_reads_need_no_word, resync_keeps_its_rate,
           frame_of_another_view_is_refused, gap_is_refused,
           frame_of_another_session_is_refused,
           word_of_no_member_does_not_count, verify_finds_and_mends,
           verify_is_interrupted)
