/* The rules of who may acknowledge and who may serve, one by one. */
#include "cluster.h"
#include "unit.h"

#include <errno.h>

static struct cluster c;
static struct unit_request r, r2;
static struct tl_status s;

#define status_of(i) (cluster_status (&c, i, &s), &s)

START_TEST (create_makes_two_members)
{
  cluster_pair (&c, TL_POLICY_ERROR);
  ck_assert_int_eq (status_of (0)->role, TL_PRIMARY);
  ck_assert_uint_eq (s.view.number, 1);
  ck_assert_uint_eq (s.copies, 2);
  ck_assert_int_eq (s.peer_disk, TL_DISK_UPTODATE);
  ck_assert_int_eq (status_of (1)->role, TL_SECONDARY);
  ck_assert_int_eq (s.disk, TL_DISK_UPTODATE);
  ck_assert_uint_eq (s.copies, 2);
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_CREATE, 0), TL_REFUSED);
  ck_assert_int_eq (cluster_command (&c, 1, TL_CMD_CREATE, 0), TL_REFUSED);
  cluster_free (&c);
}
END_TEST

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

START_TEST (arbiter_lets_one_go_on)
{
  cluster_pair (&c, TL_POLICY_ARBITER);
  c.hold_acks = true;
  cluster_write (&c, 0, &r, 0, TL_BLOCK, 'x');
  cluster_run (&c);
  cluster_cut (&c, false);
  cluster_run (&c);
  ck_assert (r.done && r.core.error == 0);
  ck_assert_uint_eq (status_of (0)->view.number, 2);
  ck_assert_uint_eq (s.copies, 1);
  ck_assert_int_eq (cluster_command (&c, 1, TL_CMD_PROMOTE, 0), TL_REFUSED);
  ck_assert_int_eq (status_of (1)->disk, TL_DISK_OUTDATED);
  c.link = true;
  c.hold_acks = false;
  cluster_pass (&c, 2 * DEADLINE);
  ck_assert_int_eq (status_of (1)->disk, TL_DISK_UPTODATE);
  ck_assert_uint_eq (status_of (0)->resyncs_full, 0);
  ck_assert_uint_eq (s.copies, 2);
  ck_assert_int_eq (memcmp (c.nodes[0].bytes, c.nodes[1].bytes, SIZE), 0);
  cluster_free (&c);
}
END_TEST

/* The other way round: the old primary is refused and steps down. */
START_TEST (arbiter_refuses_the_overtaken)
{
  cluster_pair (&c, TL_POLICY_ARBITER);
  c.arbiter_up = false;
  cluster_cut (&c, false);
  cluster_write (&c, 0, &r, 0, TL_BLOCK, 'x');
  cluster_run (&c);
  ck_assert (!r.done);
  /* A read cannot be confirmed either. */
  cluster_read (&c, 0, &r2, TL_BLOCK, TL_BLOCK);
  c.arbiter_up = true;
  ck_assert_int_eq (cluster_command (&c, 1, TL_CMD_PROMOTE, 0), TL_DONE);
  ck_assert_int_eq (status_of (1)->role, TL_PRIMARY);
  cluster_pass (&c, 2 * DEADLINE);
  ck_assert (r.done && r.core.error != 0);
  ck_assert (r2.done && r2.core.error != 0);
  ck_assert_int_eq (status_of (0)->role, TL_SECONDARY);
  ck_assert_int_eq (s.disk, TL_DISK_OUTDATED);
  c.link = true;
  cluster_pass (&c, 2 * DEADLINE);
  ck_assert_int_eq (status_of (0)->disk, TL_DISK_UPTODATE);
  ck_assert_int_eq (memcmp (c.nodes[0].bytes, c.nodes[1].bytes, SIZE), 0);
  cluster_free (&c);
}
END_TEST

/* V3: the answer was lost, the swap was made: the same one wins. */
START_TEST (unknown_answer_is_asked_again)
{
  cluster_pair (&c, TL_POLICY_ARBITER);
  c.arbiter_mute = true;
  cluster_cut (&c, false);
  cluster_write (&c, 0, &r, 0, TL_BLOCK, 'x');
  cluster_run (&c);
  ck_assert (!r.done);
  ck_assert_uint_eq (c.arbiter_view.number, 2);
  c.arbiter_mute = false;
  cluster_pass (&c, DEADLINE + 500000);
  ck_assert (r.done && r.core.error == 0);
  ck_assert_uint_eq (status_of (0)->view.number, 2);
  cluster_free (&c);
}
END_TEST

/* V3: nothing is acted on before it is stored. */
START_TEST (view_is_stored_first)
{
  cluster_pair (&c, TL_POLICY_ARBITER);
  cluster_cut (&c, false);
  c.hold_stores = 1;
  cluster_write (&c, 0, &r, 0, TL_BLOCK, 'x');
  cluster_run (&c);
  ck_assert (!r.done);
  ck_assert_uint_eq (c.arbiter_view.number, 1);
  c.hold_stores = 0;
  cluster_run (&c);
  ck_assert (r.done && r.core.error == 0);
  cluster_free (&c);
}
END_TEST

/* Kill, promote, restart, fill, and again from the other side. */
static void
take_turns (enum tl_policy policy, unsigned flags)
{
  cluster_pair (&c, policy);
  for (unsigned round = 0; round < 6; round++) {
    unsigned a = round % 2, b = !a;

    cluster_write (&c, a, &r, round * TL_BLOCK, TL_BLOCK,
                   (unsigned char)('a' + round));
    cluster_run (&c);
    ck_assert (r.done && r.core.error == 0);
    cluster_crash (&c, a);
    cluster_run (&c);
    ck_assert_int_eq (status_of (b)->disk, TL_DISK_CONSISTENT);
    if (flags != 0)
      ck_assert_int_eq (cluster_command (&c, b, TL_CMD_PROMOTE, 0), TL_REFUSED);
    ck_assert_int_eq (cluster_command (&c, b, TL_CMD_PROMOTE, flags), TL_DONE);
    ck_assert_uint_eq (status_of (b)->copies, 1);
    cluster_start (&c, a);
    cluster_pass (&c, 2 * DEADLINE);
    ck_assert_int_eq (status_of (a)->disk, TL_DISK_UPTODATE);
    ck_assert_uint_eq (status_of (b)->copies, 2);
    ck_assert_int_eq (memcmp (c.nodes[0].bytes, c.nodes[1].bytes, SIZE), 0);
    for (unsigned i = 0; i <= round; i++)
      ck_assert_int_eq (c.nodes[b].bytes[i * TL_BLOCK], (int)('a' + i));
  }
  cluster_free (&c);
}

START_TEST (turns_with_an_arbiter)
{
  take_turns (TL_POLICY_ARBITER, 0);
}
END_TEST

START_TEST (turns_by_fencing)
{
  take_turns (TL_POLICY_ERROR, TL_FENCED);
}
END_TEST

/* A node that lost its RAM is nothing, whatever its state file says. */
START_TEST (empty_is_never_promoted)
{
  cluster_pair (&c, TL_POLICY_ERROR);
  cluster_crash (&c, 0);
  cluster_crash (&c, 1);
  cluster_start (&c, 1);
  cluster_run (&c);
  ck_assert_int_eq (status_of (1)->disk, TL_DISK_EMPTY);
  ck_assert_int_eq (cluster_command (&c, 1, TL_CMD_PROMOTE, TL_FENCED),
                    TL_REFUSED);
  cluster_start (&c, 0);
  cluster_pass (&c, DEADLINE);
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_PROMOTE, 0), TL_REFUSED);
  ck_assert_int_eq (cluster_command (&c, 1, TL_CMD_PROMOTE, 0), TL_REFUSED);
  /* By name only. */
  ck_assert_int_eq (cluster_command (&c, 1, TL_CMD_PROMOTE, TL_FORCE), TL_DONE);
  cluster_pass (&c, 2 * DEADLINE);
  ck_assert_int_eq (status_of (0)->disk, TL_DISK_UPTODATE);
  cluster_free (&c);
}
END_TEST

/* The primary comes back Empty before anybody was promoted. */
static void
promote_against_empty (enum tl_policy policy)
{
  cluster_pair (&c, policy);
  cluster_write (&c, 0, &r, 0, TL_BLOCK, 'x');
  cluster_run (&c);
  cluster_crash (&c, 0);
  cluster_start (&c, 0);
  cluster_pass (&c, DEADLINE);
  ck_assert_int_eq (status_of (0)->role, TL_SECONDARY);
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_PROMOTE, 0), TL_REFUSED);
  ck_assert_int_eq (cluster_command (&c, 1, TL_CMD_PROMOTE, 0), TL_DONE);
  cluster_pass (&c, 2 * DEADLINE);
  ck_assert_int_eq (status_of (0)->disk, TL_DISK_UPTODATE);
  ck_assert_int_eq (c.nodes[0].bytes[0], 'x');
  cluster_free (&c);
}

START_TEST (promote_against_empty_by_agreement)
{
  promote_against_empty (TL_POLICY_ERROR);
}
END_TEST

START_TEST (promote_against_empty_by_arbiter)
{
  promote_against_empty (TL_POLICY_ARBITER);
}
END_TEST

/* Demote here, promote there: both stay members, nothing is copied. */
START_TEST (roles_move_while_connected)
{
  cluster_pair (&c, TL_POLICY_ARBITER);
  for (unsigned round = 0; round < 4; round++) {
    unsigned a = round % 2, b = !a;

    ck_assert_int_eq (cluster_command (&c, b, TL_CMD_PROMOTE, 0), TL_REFUSED);
    ck_assert_int_eq (cluster_command (&c, a, TL_CMD_DEMOTE, 0), TL_DONE);
    cluster_pass (&c, 200000);
    ck_assert_int_eq (cluster_command (&c, b, TL_CMD_PROMOTE, 0), TL_DONE);
    cluster_pass (&c, 200000);
    ck_assert_uint_eq (status_of (b)->copies, 2);
    ck_assert_uint_eq (s.resyncs, 0);
    cluster_write (&c, b, &r, 0, TL_BLOCK, (unsigned char)('a' + round));
    cluster_run (&c);
    ck_assert (r.done && r.core.error == 0);
    ck_assert_int_eq (c.nodes[a].bytes[0], (int)('a' + round));
  }
  cluster_free (&c);
}
END_TEST

START_TEST (demoted_is_promoted_again)
{
  cluster_pair (&c, TL_POLICY_ERROR);
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_DEMOTE, 0), TL_DONE);
  cluster_write (&c, 0, &r, 0, TL_BLOCK, 'x');
  ck_assert (r.done && r.core.error == ESHUTDOWN);
  cluster_pass (&c, 200000);
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_PROMOTE, 0), TL_DONE);
  cluster_write (&c, 0, &r, 0, TL_BLOCK, 'x');
  cluster_run (&c);
  ck_assert (r.done && r.core.error == 0);
  ck_assert_uint_eq (status_of (0)->view.number, 1);
  cluster_free (&c);
}
END_TEST

/* Two creates at once: one volume, made by the node with the lower name. */
START_TEST (creates_that_cross)
{
  struct tl_event event = {.type = TL_EV_COMMAND,
                           .command = {.command = TL_CMD_CREATE, .token = 1}};

  cluster_init (&c, TL_POLICY_ERROR);
  cluster_start (&c, 0);
  cluster_start (&c, 1);
  cluster_pass (&c, 100000);
  for (unsigned i = 0; i < 2; i++) {
    memset (event.command.uuid.bytes, (int)i + 1,
            sizeof event.command.uuid.bytes);
    cluster_step (&c, i, &event);
  }
  cluster_pass (&c, DEADLINE / 2);
  ck_assert_int_eq (c.nodes[0].replies[0].status, TL_DONE);
  ck_assert_int_eq (c.nodes[1].replies[0].status, TL_FAILED);
  ck_assert_uint_eq (status_of (0)->copies, 2);
  ck_assert_int_eq (status_of (1)->disk, TL_DISK_UPTODATE);
  cluster_free (&c);
}
END_TEST

/* The node that is ahead does not wait for the one that just stepped down. */
START_TEST (overtaken_primary_steps_down)
{
  cluster_pair (&c, TL_POLICY_ERROR);
  cluster_cut (&c, false);
  cluster_run (&c);
  ck_assert_int_eq (cluster_command (&c, 1, TL_CMD_PROMOTE, TL_FENCED),
                    TL_DONE);
  ck_assert_int_eq (cluster_command (&c, 1, TL_CMD_DEMOTE, 0), TL_DONE);
  c.link = true;
  cluster_pass (&c, DEADLINE / 2);
  ck_assert_int_eq (status_of (0)->role, TL_SECONDARY);
  ck_assert_int_eq (s.disk, TL_DISK_OUTDATED);
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_PROMOTE, 0), TL_REFUSED);
  ck_assert_int_eq (cluster_command (&c, 1, TL_CMD_PROMOTE, 0), TL_DONE);
  cluster_pass (&c, DEADLINE);
  ck_assert_int_eq (status_of (0)->disk, TL_DISK_UPTODATE);
  cluster_free (&c);
}
END_TEST

/* A promotion while the hellos travel: they told the old role. */
START_TEST (promotion_during_the_handshake)
{
  cluster_pair (&c, TL_POLICY_ARBITER);
  cluster_crash (&c, 1);
  cluster_run (&c);
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_DEMOTE, 0), TL_DONE);
  cluster_start (&c, 1);
  c.hold_frames = true;
  cluster_pass (&c, 50000);
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_PROMOTE, 0), TL_DONE);
  c.hold_frames = false;
  cluster_pass (&c, 4 * DEADLINE);
  ck_assert_uint_eq (status_of (0)->copies, 2);
  ck_assert_int_eq (status_of (1)->disk, TL_DISK_UPTODATE);
  cluster_free (&c);
}
END_TEST

/* Both have data that the other never had: nothing is overwritten, until one
 * of them comes back without any.
 */
START_TEST (split_brain_is_held)
{
  cluster_pair (&c, TL_POLICY_CONTINUE);
  cluster_cut (&c, false);
  cluster_run (&c);
  ck_assert_int_eq (cluster_command (&c, 1, TL_CMD_PROMOTE, TL_FENCED),
                    TL_DONE);
  for (unsigned i = 0; i < 2; i++) {
    cluster_write (&c, i, &r, 0, TL_BLOCK, (unsigned char)('a' + i));
    ck_assert (r.done && r.core.error == 0);
  }
  c.link = true;
  cluster_pass (&c, 2 * DEADLINE);
  for (unsigned i = 0; i < 2; i++) {
    ck_assert_int_eq (status_of (i)->link, TL_LINK_STANDALONE);
    ck_assert_int_eq (c.nodes[i].bytes[0], 'a' + (int)i);
  }
  cluster_crash (&c, 1);
  cluster_start (&c, 1);
  cluster_pass (&c, 4 * DEADLINE);
  ck_assert_uint_eq (status_of (0)->copies, 2);
  ck_assert_int_eq (c.nodes[1].bytes[0], 'a');
  cluster_free (&c);
}
END_TEST

/* V4: the target died while its join was being stored: the primary, which was
 * serving alone, goes on alone.
 */
START_TEST (join_of_a_target_that_died)
{
  cluster_pair (&c, TL_POLICY_ERROR);
  cluster_crash (&c, 1);
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_DEGRADE, TL_FENCED),
                    TL_DONE);
  cluster_write (&c, 0, &r, 0, TL_BLOCK, 'x');
  ck_assert (r.done && r.core.error == 0);
  c.hold_stores = 1;
  cluster_start (&c, 1);
  cluster_pass (&c, 2 * DEADLINE);
  ck_assert (c.nodes[0].store_wanted);
  cluster_crash (&c, 1);
  c.hold_stores = 0;
  cluster_write (&c, 0, &r, 0, TL_BLOCK, 'y');
  cluster_run (&c);
  ck_assert (r.done && r.core.error == 0);
  ck_assert_uint_eq (status_of (0)->view.n_members, 1);
  cluster_start (&c, 1);
  cluster_pass (&c, 4 * DEADLINE);
  ck_assert_uint_eq (status_of (0)->copies, 2);
  cluster_free (&c);
}
END_TEST

/* V3: a node without its state file confirms nothing. */
START_TEST (lost_record_confirms_nothing)
{
  cluster_pair (&c, TL_POLICY_CONTINUE);
  cluster_cut (&c, false);
  cluster_run (&c);
  cluster_write (&c, 0, &r, 0, TL_BLOCK, 'x'); /* alone, in view 2 */
  ck_assert (r.done && r.core.error == 0);
  cluster_crash (&c, 0);
  c.nodes[0].has_record = false;
  c.link = true;
  cluster_start (&c, 0);
  cluster_pass (&c, 2 * DEADLINE);
  ck_assert_int_eq (status_of (1)->link, TL_LINK_CONNECTED);
  ck_assert_int_eq (cluster_command (&c, 1, TL_CMD_PROMOTE, 0), TL_REFUSED);
  /* The operator's assertion is another matter. */
  ck_assert_int_eq (cluster_command (&c, 1, TL_CMD_PROMOTE, TL_FENCED),
                    TL_DONE);
  cluster_pass (&c, 4 * DEADLINE);
  ck_assert_uint_eq (status_of (1)->copies, 2);
  cluster_free (&c);
}
END_TEST

/* Force is refused where the data is at hand. */
START_TEST (force_does_not_wipe_the_good_copy)
{
  cluster_pair (&c, TL_POLICY_ERROR);
  cluster_write (&c, 0, &r, 0, TL_BLOCK, 'x');
  cluster_run (&c);
  cluster_crash (&c, 0);
  cluster_start (&c, 0);
  cluster_pass (&c, DEADLINE);
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_PROMOTE, TL_FORCE),
                    TL_REFUSED);
  ck_assert_int_eq (c.nodes[1].bytes[0], 'x');
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
  static struct unit_request zeroes[5], reads[21];
  struct tl_frame ack;

  cluster_init (&c, TL_POLICY_ERROR);
  c.arbiter = true;
  cluster_start (&c, 0);
  cluster_start (&c, 1);
  cluster_pass (&c, 100000);
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_CREATE, 0), TL_DONE);
  cluster_cut (&c, false);
  cluster_run (&c);
  for (unsigned i = 0; i < 5; i++)
    cluster_zero (&c, 0, &zeroes[i], 2 * i * TL_BLOCK, TL_BLOCK);
  c.hold_acks = c.link = true;
  cluster_pass (&c, 100000);
  ck_assert_uint_eq (status_of (0)->resyncs, 1);
  for (unsigned i = 0; i < 21; i++)
    cluster_read (&c, 0, &reads[i], 0, TL_BLOCK);
  /* Sync-begin and the first chunk are acknowledged: the reads go, and fill
   * the update, so that the window has room at the next step.
   */
  ck_assert_uint_ge (c.pipes[1].n, 1);
  ack = c.pipes[1].packets[0].frame;
  ck_assert_int_eq (ack.type, TL_ACK);
  ack.sequence = 2;
  cluster_inject (&c, 0, &ack, NULL);
  cluster_write (&c, 0, &r, 8 * TL_BLOCK, TL_BLOCK, 'x');
  cluster_drop (&c, 1);
  c.hold_acks = false;
  cluster_write (&c, 0, &r2, 15 * TL_BLOCK, TL_BLOCK, 'y');
  cluster_pass (&c, DEADLINE / 2);
  ck_assert (r.done && r.core.error == 0);
  ck_assert_uint_eq (status_of (0)->out_of_sync, 0);
  ck_assert_int_eq (c.nodes[1].bytes[8 * TL_BLOCK], 'x');
  ck_assert_int_eq (memcmp (c.nodes[0].bytes, c.nodes[1].bytes, SIZE), 0);
  cluster_free (&c);
}
END_TEST

/* V3: the arbiter made the first view, and its asker died before it knew. */
START_TEST (create_is_asked_again_after_a_restart)
{
  cluster_init (&c, TL_POLICY_ARBITER);
  cluster_start (&c, 0);
  cluster_start (&c, 1);
  cluster_pass (&c, 100000);
  c.arbiter_mute = true;
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_CREATE, 0), -1);
  ck_assert_uint_eq (c.arbiter_view.number, 1);
  cluster_crash (&c, 0);
  c.arbiter_mute = false;
  cluster_start (&c, 0);
  cluster_pass (&c, DEADLINE);
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_CREATE, 0), TL_DONE);
  ck_assert_uint_eq (status_of (0)->copies, 2);
  cluster_free (&c);
}
END_TEST

/* An arbiter whose record was lost refuses, and the pair finds together again.
 */
START_TEST (arbiter_without_a_record)
{
  cluster_pair (&c, TL_POLICY_ARBITER);
  memset (&c.arbiter_view, 0, sizeof c.arbiter_view);
  cluster_cut (&c, false);
  cluster_write (&c, 0, &r, 0, TL_BLOCK, 'x');
  cluster_run (&c);
  ck_assert (!r.done);
  ck_assert_str_ne (status_of (0)->trouble, "");
  c.link = true;
  cluster_pass (&c, DEADLINE);
  ck_assert (r.done && r.core.error == 0);
  ck_assert_uint_eq (status_of (0)->copies, 2);
  cluster_free (&c);
}
END_TEST

/* The only copy, in the hands of the node that made it: the operator's word
 * is enough.
 */
START_TEST (creator_is_promoted_again)
{
  cluster_init (&c, TL_POLICY_ERROR);
  cluster_start (&c, 0);
  cluster_start (&c, 1);
  cluster_pass (&c, 100000);
  c.hold_stores = 2;
  cluster_command (&c, 0, TL_CMD_CREATE, 0);
  cluster_crash (&c, 1);
  c.hold_stores = 0;
  ck_assert_int_eq (status_of (0)->role, TL_PRIMARY);
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_DEMOTE, 0), TL_DONE);
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_PROMOTE, 0), TL_REFUSED);
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_PROMOTE, TL_FENCED),
                    TL_DONE);
  cluster_free (&c);
}
END_TEST

/* A planned move: what is under way ends well, the partner serves. */
static void
switch_over (enum tl_policy policy)
{
  cluster_pair (&c, policy);
  ck_assert_int_eq (cluster_command (&c, 1, TL_CMD_SWITCHOVER, 0), TL_REFUSED);
  for (unsigned round = 0; round < 4; round++) {
    unsigned a = round % 2, b = !a;

    c.hold_acks = true;
    cluster_write (&c, a, &r, 0, TL_BLOCK, (unsigned char)('a' + round));
    ck_assert_int_eq (cluster_command (&c, a, TL_CMD_SWITCHOVER, 0), -1);
    /* Nothing new is taken, and nothing under way is dropped. */
    cluster_write (&c, a, &r2, 0, TL_BLOCK, 'z');
    ck_assert (r2.done && r2.core.error == ESHUTDOWN && !r.done);
    ck_assert_int_eq (status_of (a)->role, TL_PRIMARY);
    c.hold_acks = false;
    cluster_pass (&c, DEADLINE / 10);
    ck_assert (r.done && r.core.error == 0);
    ck_assert_int_eq (c.nodes[a].replies[0].status, TL_DONE);
    ck_assert_int_eq (status_of (a)->role, TL_SECONDARY);
    ck_assert_int_eq (status_of (b)->role, TL_PRIMARY);
    ck_assert_uint_eq (s.copies, 2);
    ck_assert_uint_eq (s.resyncs, 0);
    cluster_read (&c, b, &r, 0, TL_BLOCK);
    cluster_run (&c);
    ck_assert (r.done && r.core.error == 0 && r.bytes[0] == 'a' + (int)round);
  }
  cluster_free (&c);
}

START_TEST (switchover_by_agreement)
{
  switch_over (TL_POLICY_ERROR);
}
END_TEST

START_TEST (switchover_by_arbiter)
{
  switch_over (TL_POLICY_ARBITER);
}
END_TEST

/* The link goes between the handover and the telling: the partner takes the
 * role when it hears of the view.
 */
START_TEST (switchover_that_was_not_told)
{
  cluster_pair (&c, TL_POLICY_ERROR);
  c.hold_stores = 1;
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_SWITCHOVER, 0), -1);
  cluster_cut (&c, false);
  c.hold_stores = 0;
  cluster_run (&c);
  ck_assert_int_eq (c.nodes[0].replies[0].status, TL_FAILED);
  ck_assert_int_eq (status_of (0)->role, TL_SECONDARY);
  ck_assert_int_eq (status_of (1)->role, TL_SECONDARY);
  c.link = true;
  cluster_pass (&c, DEADLINE / 2);
  ck_assert_int_eq (status_of (1)->role, TL_PRIMARY);
  ck_assert_uint_eq (s.copies, 2);
  cluster_free (&c);
}
END_TEST

/* The operator names the loser of a split brain. */
START_TEST (discard_ends_a_split_brain)
{
  cluster_pair (&c, TL_POLICY_CONTINUE);
  ck_assert_int_eq (cluster_command (&c, 1, TL_CMD_DISCARD, 0), TL_REFUSED);
  cluster_cut (&c, false);
  cluster_run (&c);
  ck_assert_int_eq (cluster_command (&c, 1, TL_CMD_PROMOTE, TL_FENCED),
                    TL_DONE);
  for (unsigned i = 0; i < 2; i++)
    cluster_write (&c, i, &r, 0, TL_BLOCK, (unsigned char)('a' + i));
  c.link = true;
  cluster_pass (&c, 2 * DEADLINE);
  ck_assert_int_eq (status_of (0)->link, TL_LINK_STANDALONE);
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_DISCARD, 0), TL_DONE);
  cluster_pass (&c, 2 * DEADLINE);
  ck_assert_int_eq (status_of (0)->disk, TL_DISK_UPTODATE);
  ck_assert_int_eq (status_of (1)->disk, TL_DISK_UPTODATE);
  ck_assert_uint_eq (s.copies, 2);
  ck_assert_int_eq (c.nodes[0].bytes[0], 'b');
  /* It is the winner now: there is nothing to discard any more. */
  ck_assert_int_eq (cluster_command (&c, 1, TL_CMD_DISCARD, 0), TL_REFUSED);
  cluster_free (&c);
}
END_TEST

/* Another machine takes the partner's place once the old one is forgotten. */
START_TEST (replaced_machine_joins)
{
  cluster_pair (&c, TL_POLICY_ERROR);
  cluster_crash (&c, 1);
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_FORGET_PEER, 0), TL_REFUSED);
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_DEGRADE, TL_FENCED),
                    TL_DONE);
  c.nodes[1].name = "c";
  c.nodes[1].has_record = false;
  cluster_start (&c, 1);
  cluster_pass (&c, 2 * DEADLINE);
  ck_assert_int_eq (status_of (1)->disk, TL_DISK_EMPTY);
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_FORGET_PEER, 0), TL_DONE);
  cluster_pass (&c, 4 * DEADLINE);
  ck_assert_int_eq (status_of (1)->disk, TL_DISK_UPTODATE);
  ck_assert_str_eq (status_of (0)->peer, "c");
  ck_assert_uint_eq (s.copies, 2);
  cluster_free (&c);
}
END_TEST

/* ---- RAM that outlives its process ---- */

static void
keeping_pair (enum tl_policy policy)
{
  cluster_init (&c, policy);
  c.keep = true;
  cluster_create (&c);
}

/* Write eight blocks of 'a'. */
static void
fill_eight (void)
{
  for (unsigned i = 0; i < 8; i++) {
    cluster_write (&c, 0, &r, i * TL_BLOCK, TL_BLOCK, 'a');
    cluster_run (&c);
    ck_assert (r.done && r.core.error == 0);
  }
}

/* The secondary's process is killed and comes back with its RAM: it copies
 * what it missed and no more.
 */
START_TEST (kept_secondary_copies_what_it_missed)
{
  keeping_pair (TL_POLICY_ARBITER);
  fill_eight ();
  cluster_kill (&c, 1);
  cluster_run (&c);
  cluster_write (&c, 0, &r, 3 * TL_BLOCK, 100, 'b');
  ck_assert (r.done && r.core.error == 0);
  cluster_start (&c, 1);
  ck_assert_int_eq (status_of (1)->disk, TL_DISK_CONSISTENT);
  cluster_pass (&c, 2 * DEADLINE);
  ck_assert_uint_eq (status_of (0)->copies, 2);
  ck_assert_uint_eq (s.sent_bytes_resync, TL_BLOCK);
  ck_assert_int_eq (memcmp (c.nodes[0].bytes, c.nodes[1].bytes, SIZE), 0);
  cluster_free (&c);
}
END_TEST

/* The primary's process is killed with writes under way, and comes back before
 * anybody was promoted: it resumes, and what was under way is equal again.
 */
START_TEST (kept_primary_resumes)
{
  keeping_pair (TL_POLICY_ERROR);
  c.hold_frames = true;
  cluster_write (&c, 0, &r, 0, TL_BLOCK, 'x'); /* the peer never has it */
  cluster_kill (&c, 0);
  c.hold_frames = false;
  cluster_start (&c, 0);
  ck_assert_int_eq (status_of (0)->role, TL_SECONDARY);
  ck_assert_uint_eq (s.out_of_sync, TL_BLOCK);
  cluster_pass (&c, DEADLINE);
  ck_assert_int_eq (status_of (0)->role, TL_PRIMARY);
  ck_assert_uint_eq (s.copies, 2);
  ck_assert_uint_eq (s.view.number, 1);
  ck_assert_uint_eq (s.sent_bytes_resync, TL_BLOCK);
  ck_assert_int_eq (memcmp (c.nodes[0].bytes, c.nodes[1].bytes, SIZE), 0);
  cluster_free (&c);
}
END_TEST

/* A lone primary resumes by itself; one of two waits for the other's word. */
START_TEST (kept_lone_primary_resumes_alone)
{
  keeping_pair (TL_POLICY_ARBITER);
  cluster_crash (&c, 1);
  cluster_run (&c);
  cluster_write (&c, 0, &r, 0, TL_BLOCK, 'x');
  ck_assert (r.done);
  cluster_kill (&c, 0);
  cluster_start (&c, 0);
  cluster_run (&c);
  ck_assert_int_eq (status_of (0)->role, TL_PRIMARY);
  cluster_read (&c, 0, &r, 0, TL_BLOCK);
  ck_assert (r.done && r.bytes[0] == 'x');
  cluster_start (&c, 1);
  cluster_pass (&c, 2 * DEADLINE);
  ck_assert_uint_eq (status_of (0)->copies, 2);
  cluster_free (&c);
}
END_TEST

/* V2: after a restart an operator's word is not enough for one of two. */
START_TEST (kept_node_is_not_promoted_by_fencing)
{
  keeping_pair (TL_POLICY_ERROR);
  cluster_kill (&c, 1);
  cluster_kill (&c, 0);
  cluster_start (&c, 1);
  cluster_pass (&c, DEADLINE);
  ck_assert_int_eq (status_of (1)->disk, TL_DISK_CONSISTENT);
  ck_assert_int_eq (cluster_command (&c, 1, TL_CMD_PROMOTE, TL_FENCED),
                    TL_REFUSED);
  cluster_start (&c, 0);
  cluster_pass (&c, DEADLINE);
  ck_assert_int_eq (status_of (0)->role, TL_PRIMARY);
  cluster_free (&c);
}
END_TEST

/* The old primary comes back with its RAM, and with writes that nobody has,
 * after the other was promoted: they are gone, and nothing else is copied.
 */
START_TEST (kept_old_primary_follows)
{
  keeping_pair (TL_POLICY_ARBITER);
  fill_eight ();
  c.hold_frames = true;
  cluster_write (&c, 0, &r, 0, TL_BLOCK, 'x');
  cluster_kill (&c, 0);
  c.hold_frames = false;
  ck_assert_int_eq (cluster_command (&c, 1, TL_CMD_PROMOTE, 0), TL_DONE);
  cluster_write (&c, 1, &r2, 5 * TL_BLOCK, TL_BLOCK, 'b');
  ck_assert (r2.done && r2.core.error == 0);
  cluster_start (&c, 0);
  cluster_pass (&c, 2 * DEADLINE);
  ck_assert_uint_eq (status_of (1)->copies, 2);
  ck_assert_uint_eq (s.sent_bytes_resync, 2 * TL_BLOCK);
  ck_assert_int_eq (c.nodes[0].bytes[0], 'a');
  ck_assert_int_eq (memcmp (c.nodes[0].bytes, c.nodes[1].bytes, SIZE), 0);
  cluster_free (&c);
}
END_TEST

/* A target that is killed in the middle of its resync is no more than that. */
START_TEST (kept_target_stays_inconsistent)
{
  keeping_pair (TL_POLICY_ARBITER);
  fill_eight ();
  cluster_crash (&c, 1);
  cluster_run (&c);
  cluster_start (&c, 1);
  c.hold_acks = true;
  cluster_pass (&c, DEADLINE / 2);
  ck_assert_int_eq (status_of (1)->disk, TL_DISK_INCONSISTENT);
  cluster_kill (&c, 1);
  cluster_kill (&c, 0);
  cluster_start (&c, 1);
  cluster_run (&c);
  ck_assert_int_eq (status_of (1)->disk, TL_DISK_INCONSISTENT);
  ck_assert_int_eq (cluster_command (&c, 1, TL_CMD_PROMOTE, 0), TL_REFUSED);
  c.hold_acks = false;
  cluster_start (&c, 0);
  cluster_pass (&c, 4 * DEADLINE);
  ck_assert_uint_eq (status_of (0)->copies, 2);
  ck_assert_int_eq (memcmp (c.nodes[0].bytes, c.nodes[1].bytes, SIZE), 0);
  cluster_free (&c);
}
END_TEST

/* V3: killed while the arbiter's answer was on its way. */
START_TEST (kept_proposal_is_asked_again)
{
  keeping_pair (TL_POLICY_ARBITER);
  c.arbiter_mute = true;
  cluster_cut (&c, false);
  cluster_run (&c);
  ck_assert_uint_eq (c.arbiter_view.number, 2);
  cluster_kill (&c, 0);
  c.arbiter_mute = false;
  c.link = true;
  cluster_start (&c, 0);
  cluster_pass (&c, 2 * DEADLINE);
  ck_assert_int_eq (status_of (0)->role, TL_PRIMARY);
  ck_assert_uint_eq (s.copies, 2);
  cluster_free (&c);
}
END_TEST

/* ---- Options ---- */

START_TEST (secondary_asks_for_the_role)
{
  cluster_init (&c, TL_POLICY_ARBITER);
  c.extra.auto_promote = true;
  cluster_create (&c);
  cluster_crash (&c, 0);
  cluster_pass (&c, DEADLINE - 50000);
  ck_assert_int_eq (status_of (1)->role, TL_SECONDARY);
  cluster_pass (&c, 100000);
  ck_assert_int_eq (status_of (1)->role, TL_PRIMARY);
  cluster_free (&c);
}
END_TEST

/* A primary that lives has asked the arbiter first. */
START_TEST (secondary_asks_in_vain)
{
  cluster_init (&c, TL_POLICY_ARBITER);
  c.extra.auto_promote = true;
  cluster_create (&c);
  cluster_cut (&c, false);
  cluster_pass (&c, 3 * DEADLINE);
  ck_assert_int_eq (status_of (0)->role, TL_PRIMARY);
  ck_assert_int_eq (status_of (1)->role, TL_SECONDARY);
  ck_assert_int_eq (s.disk, TL_DISK_OUTDATED);
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

/* A frame of another view ends the session, and nothing is applied. */
START_TEST (frame_of_another_view_is_refused)
{
  struct tl_frame frame = {.type = TL_WRITE,
                           .session = 1,
                           .view = 2,
                           .sequence = 1,
                           .length = TL_BLOCK,
                           .payload = TL_BLOCK};
  static unsigned char bytes[TL_BLOCK] = {'z'};

  cluster_pair (&c, TL_POLICY_ERROR);
  /* Of another session: dropped. */
  cluster_inject (&c, 1, &frame, bytes);
  ck_assert_int_eq (c.nodes[1].bytes[0], 0);
  ck_assert_int_eq (status_of (1)->link, TL_LINK_CONNECTED);
  cluster_free (&c);
}
END_TEST

UNIT_MAIN ("rules", create_makes_two_members, write_waits_for_the_peer,
           error_policy_fails_after_the_deadline, write_survives_a_blip,
           arbiter_lets_one_go_on, arbiter_refuses_the_overtaken,
           unknown_answer_is_asked_again, view_is_stored_first,
           turns_with_an_arbiter, turns_by_fencing, empty_is_never_promoted,
           promote_against_empty_by_agreement, promote_against_empty_by_arbiter,
           roles_move_while_connected, demoted_is_promoted_again,
           creates_that_cross, overtaken_primary_steps_down,
           promotion_during_the_handshake, split_brain_is_held,
           join_of_a_target_that_died, lost_record_confirms_nothing,
           force_does_not_wipe_the_good_copy,
           continue_goes_on_past_a_frozen_partner,
           chunk_does_not_overtake_a_write,
           create_is_asked_again_after_a_restart, arbiter_without_a_record,
           creator_is_promoted_again, switchover_by_agreement,
           switchover_by_arbiter, switchover_that_was_not_told,
           discard_ends_a_split_brain, replaced_machine_joins,
           kept_secondary_copies_what_it_missed, kept_primary_resumes,
           kept_lone_primary_resumes_alone,
           kept_node_is_not_promoted_by_fencing, kept_old_primary_follows,
           kept_target_stays_inconsistent, kept_proposal_is_asked_again,
           secondary_asks_for_the_role, secondary_asks_in_vain,
           local_reads_need_no_word, resync_keeps_its_rate,
           frame_of_another_view_is_refused)
