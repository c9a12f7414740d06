/* How views come about, and what two nodes make of each other. */
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
  cluster_cut (&c, true);
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

/* A connection that is just being made, or replaced, is no reason to refuse. */
START_TEST (create_waits_for_the_peer)
{
  cluster_init (&c, TL_POLICY_ERROR);
  cluster_start (&c, 0);
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_CREATE, 0), -1);
  cluster_pass (&c, DEADLINE / 2);
  cluster_start (&c, 1);
  cluster_pass (&c, DEADLINE);
  ck_assert_uint_eq (c.nodes[0].n_replies, 1);
  ck_assert_int_eq (c.nodes[0].replies[0].status, TL_DONE);
  ck_assert_uint_eq (status_of (0)->copies, 2);
  cluster_free (&c);

  cluster_init (&c, TL_POLICY_ERROR);
  cluster_start (&c, 0);
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_CREATE, 0), -1);
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_CREATE, TL_ALONE),
                    TL_FAILED); /* the first is under way */
  cluster_pass (&c, 3 * DEADLINE);
  ck_assert_uint_eq (c.nodes[0].n_replies, 2);
  ck_assert_int_eq (c.nodes[0].replies[1].status, TL_FAILED);
  ck_assert_ptr_nonnull (strstr (c.nodes[0].replies[1].text, "--alone"));
  ck_assert_uint_eq (status_of (0)->view.number, 0);
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_CREATE, TL_ALONE), TL_DONE);
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

UNIT_MAIN ("views", create_makes_two_members, arbiter_lets_one_go_on,
           arbiter_refuses_the_overtaken, unknown_answer_is_asked_again,
           view_is_stored_first, creates_that_cross, split_brain_is_held,
           join_of_a_target_that_died, lost_record_confirms_nothing,
           create_waits_for_the_peer, create_is_asked_again_after_a_restart,
           arbiter_without_a_record, discard_ends_a_split_brain,
           replaced_machine_joins)
