/* Who becomes primary, and who does not. */
#include "cluster.h"
#include "unit.h"

#include <errno.h>

static struct cluster c;
static struct unit_request r, r2;
static struct tl_status s;

#define status_of(i) (cluster_status (&c, i, &s), &s)

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
  struct tl_event event = {.type = TL_EV_REQUEST, .request = &r.core};

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
  /* A client that was let in before is not served. */
  r.done = false;
  r.core.epoch--;
  cluster_step (&c, 0, &event);
  ck_assert (r.done && r.core.error == ESHUTDOWN);
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
    ck_assert_int_eq (s.peer_role, TL_PRIMARY);
    ck_assert_int_eq (status_of (b)->role, TL_PRIMARY);
    ck_assert_int_eq (s.peer_role, TL_SECONDARY);
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

/* The same where nobody was primary: the one that gave its consent was
 * connected in the view that it consented to, and may be promoted when the
 * other dies.
 */
START_TEST (consent_that_was_not_told)
{
  cluster_pair (&c, TL_POLICY_ERROR);
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_DEMOTE, 0), TL_DONE);
  cluster_pass (&c, DEADLINE / 10);
  c.hold_stores = 1;
  ck_assert_int_eq (cluster_command (&c, 1, TL_CMD_PROMOTE, 0), -1);
  cluster_cut (&c, false);
  c.hold_stores = 0;
  cluster_run (&c);
  ck_assert_int_eq (c.nodes[1].replies[0].status, TL_FAILED);
  c.link = true;
  cluster_pass (&c, DEADLINE / 2);
  ck_assert_int_eq (status_of (1)->role, TL_PRIMARY);
  cluster_write (&c, 1, &r, 0, TL_BLOCK, 'x');
  cluster_run (&c);
  ck_assert (r.done && r.core.error == 0);
  cluster_crash (&c, 1);
  cluster_pass (&c, DEADLINE);
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_PROMOTE, TL_FENCED),
                    TL_DONE);
  ck_assert_int_eq (c.nodes[0].bytes[0], 'x');
  cluster_free (&c);
}
END_TEST

/* The handover cannot be stored: the primary serves on. */
static void
switch_over_in_vain (enum tl_policy policy)
{
  cluster_pair (&c, policy);
  c.fail_stores = 1; /* may be in the file all the same */
  c.hold_acks = true;
  cluster_write (&c, 0, &r, 0, TL_BLOCK, 'a');
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_SWITCHOVER, 0), -1);
  ck_assert (status_of (0)->suspended);
  ck_assert_ptr_nonnull (strstr (s.suspended_reason, "switchover"));
  c.hold_acks = false;
  cluster_run (&c);
  ck_assert_int_eq (c.nodes[0].replies[0].status, TL_FAILED);
  ck_assert_ptr_nonnull (strstr (cluster_reply (&c, 0), "disk is full"));
  ck_assert (!status_of (0)->suspended);
  cluster_write (&c, 0, &r2, 0, TL_BLOCK, 'b');
  cluster_run (&c);
  ck_assert (r2.done && r2.core.error == 0);
  c.fail_stores = 0;
  /* The record as it was goes over it before anything else. */
  c.nodes[0].record.view.number = 99;
  cluster_pass (&c, DEADLINE / 2);
  if (policy != TL_POLICY_ARBITER)
    ck_assert_uint_eq (c.nodes[0].record.view.number, 1);
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_SWITCHOVER, 0), TL_DONE);
  ck_assert_int_eq (status_of (1)->role, TL_PRIMARY);
  cluster_free (&c);
}

START_TEST (switchover_with_a_full_disk)
{
  switch_over_in_vain (TL_POLICY_ERROR);
  switch_over_in_vain (TL_POLICY_ARBITER);
}
END_TEST

/* A primary that is alone serves on, though it cannot take its partner in. */
START_TEST (join_with_a_full_disk)
{
  cluster_pair (&c, TL_POLICY_ARBITER);
  cluster_crash (&c, 1);
  cluster_pass (&c, DEADLINE);
  ck_assert_uint_eq (status_of (0)->copies, 1);
  c.fail_stores = 1;
  cluster_start (&c, 1);
  cluster_pass (&c, DEADLINE);
  ck_assert_uint_eq (status_of (0)->copies, 1);
  cluster_crash (&c, 1);
  cluster_pass (&c, DEADLINE);
  cluster_write (&c, 0, &r, 0, TL_BLOCK, 'a');
  cluster_run (&c);
  ck_assert (r.done && r.core.error == 0);
  c.fail_stores = 0;
  cluster_start (&c, 1);
  cluster_pass (&c, 2 * DEADLINE);
  ck_assert_uint_eq (status_of (0)->copies, 2);
  cluster_free (&c);
}
END_TEST

/* Else the role could go to the very copy that the verify finds damaged. */
START_TEST (switchover_waits_for_verify)
{
  cluster_pair (&c, TL_POLICY_ERROR);
  cluster_write (&c, 0, &r, 0, TL_BLOCK, 'a');
  cluster_run (&c);
  c.nodes[1].bytes[0] ^= 1;
  c.hold_frames = true;
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_VERIFY, 0), TL_DONE);
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_SWITCHOVER, 0), TL_REFUSED);
  c.hold_frames = false;
  cluster_pass (&c, DEADLINE / 2);
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_SWITCHOVER, 0), TL_DONE);
  ck_assert_int_eq (status_of (1)->role, TL_PRIMARY);
  ck_assert_int_eq (c.nodes[1].bytes[0], 'a');
  cluster_free (&c);
}
END_TEST

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

/* An arbiter that lost its record for a while is asked again. */
START_TEST (secondary_asks_again)
{
  struct tl_view view;

  cluster_init (&c, TL_POLICY_ARBITER);
  c.extra.auto_promote = true;
  cluster_create (&c);
  view = c.arbiter_view;
  c.arbiter_view.number = 0;
  cluster_crash (&c, 0);
  cluster_pass (&c, 2 * DEADLINE);
  ck_assert_int_eq (status_of (1)->role, TL_SECONDARY);
  ck_assert_ptr_nonnull (strstr (s.trouble, "no record"));
  c.arbiter_view = view;
  cluster_pass (&c, DEADLINE);
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

/* The primary is back within the deadline, without its RAM. */
START_TEST (secondary_takes_over_from_an_empty_one)
{
  cluster_init (&c, TL_POLICY_ARBITER);
  c.extra.auto_promote = true;
  cluster_create (&c);
  cluster_crash (&c, 0);
  cluster_start (&c, 0);
  cluster_pass (&c, DEADLINE - 50000);
  ck_assert_int_eq (status_of (0)->link, TL_LINK_CONNECTED);
  ck_assert_int_eq (s.role, TL_SECONDARY);
  ck_assert_int_eq (status_of (1)->role, TL_SECONDARY);
  cluster_pass (&c, DEADLINE);
  ck_assert_int_eq (status_of (1)->role, TL_PRIMARY);
  ck_assert_uint_eq (s.copies, 2);
  cluster_free (&c);
}
END_TEST

/* What an operator demoted stays so, and its partner leaves it at that. */
START_TEST (secondary_respects_a_demotion)
{
  cluster_init (&c, TL_POLICY_ARBITER);
  c.extra.auto_promote = true;
  cluster_create (&c);
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_DEMOTE, 0), TL_DONE);
  cluster_pass (&c, 5 * DEADLINE);
  ck_assert_int_eq (status_of (0)->role, TL_SECONDARY);
  ck_assert_int_eq (status_of (1)->role, TL_SECONDARY);
  cluster_free (&c);
}
END_TEST

UNIT_MAIN ("moves", turns_with_an_arbiter, turns_by_fencing,
           empty_is_never_promoted, promote_against_empty_by_agreement,
           promote_against_empty_by_arbiter, roles_move_while_connected,
           demoted_is_promoted_again, overtaken_primary_steps_down,
           promotion_during_the_handshake, force_does_not_wipe_the_good_copy,
           creator_is_promoted_again, switchover_by_agreement,
           switchover_by_arbiter, switchover_that_was_not_told,
           consent_that_was_not_told, switchover_with_a_full_disk,
           join_with_a_full_disk, switchover_waits_for_verify,
           secondary_asks_for_the_role, secondary_asks_again,
           secondary_asks_in_vain, secondary_takes_over_from_an_empty_one,
           secondary_respects_a_demotion)
