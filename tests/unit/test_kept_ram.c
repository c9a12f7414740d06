/* Nodes whose RAM outlives their process. */
#include "cluster.h"
#include "unit.h"

#include <errno.h>

static struct cluster c;
static struct unit_request r, r2;
static struct tl_status s;

#define status_of(i) (cluster_status (&c, i, &s), &s)

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
  assert_says (status_of (1)->may_promote_reason, "start the other node");
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
  ck_assert_uint_eq (s.view.id, c.arbiter_view.id);
  cluster_free (&c);
}
END_TEST

/* V4: a node whose state file is an old one cannot know that what it holds is
 * of the view that the arbiter has, though that names it a member.
 */
START_TEST (kept_node_with_an_older_record)
{
  struct tl_record older;

  keeping_pair (TL_POLICY_ARBITER);
  older = c.nodes[1].record;
  cluster_kill (&c, 1);
  cluster_run (&c);
  cluster_start (&c, 1);
  cluster_pass (&c, 2 * DEADLINE);
  ck_assert_uint_eq (status_of (1)->view.number, 3);
  ck_assert_uint_eq (s.view.n_members, 2);
  cluster_kill (&c, 1);
  cluster_crash (&c, 0);
  c.nodes[1].record = older;
  cluster_start (&c, 1);
  for (unsigned i = 0; i < 2; i++) {
    ck_assert_int_eq (cluster_command (&c, 1, TL_CMD_PROMOTE, 0), TL_REFUSED);
    ck_assert_int_eq (status_of (1)->disk, TL_DISK_OUTDATED);
  }
  cluster_free (&c);
}
END_TEST

/* The state file is lost, the data is there: nobody creates over it. */
START_TEST (kept_data_is_not_created_over)
{
  keeping_pair (TL_POLICY_ERROR);
  fill_eight ();
  cluster_kill (&c, 1);
  cluster_kill (&c, 0);
  c.nodes[0].has_record = c.nodes[1].has_record = false;
  cluster_start (&c, 0);
  cluster_start (&c, 1);
  cluster_pass (&c, DEADLINE / 2);
  for (unsigned i = 0; i < 2; i++)
    ck_assert_int_eq (cluster_command (&c, i, TL_CMD_CREATE, TL_ALONE),
                      TL_REFUSED);
  ck_assert_int_eq (c.nodes[0].bytes[0], 'a');
  cluster_free (&c);
}
END_TEST

/* The record of a create is stored, and the process ends before it acts. */
START_TEST (kept_create_is_acted_on_later)
{
  cluster_init (&c, TL_POLICY_ERROR);
  c.keep = true;
  cluster_start (&c, 0);
  cluster_start (&c, 1);
  cluster_pass (&c, 100000);
  c.hold_stores = 1;
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_CREATE, 0), -1);
  c.nodes[0].record = *tl_core_pending (c.nodes[0].core);
  c.nodes[0].has_record = true;
  cluster_kill (&c, 0);
  c.hold_stores = 0;
  cluster_start (&c, 0);
  cluster_pass (&c, 2 * DEADLINE);
  ck_assert_int_eq (status_of (0)->role, TL_PRIMARY);
  ck_assert_uint_eq (s.copies, 2);
  cluster_free (&c);
}
END_TEST

/* A handover that only its giver has stored is no split brain. */
START_TEST (kept_handover_that_nobody_heard_of)
{
  keeping_pair (TL_POLICY_ERROR);
  fill_eight ();
  c.hold_stores = 1;
  ck_assert_int_eq (cluster_command (&c, 0, TL_CMD_SWITCHOVER, 0), -1);
  c.nodes[0].record = *tl_core_pending (c.nodes[0].core);
  cluster_kill (&c, 0);
  c.hold_stores = 0;
  ck_assert_int_eq (cluster_command (&c, 1, TL_CMD_PROMOTE, TL_FENCED),
                    TL_DONE);
  cluster_write (&c, 1, &r, 0, TL_BLOCK, 'b');
  ck_assert (r.done && r.core.error == 0);
  cluster_start (&c, 0);
  cluster_pass (&c, 2 * DEADLINE);
  ck_assert_int_eq (status_of (0)->disk, TL_DISK_UPTODATE);
  ck_assert_uint_eq (status_of (1)->copies, 2);
  ck_assert_int_eq (c.nodes[0].bytes[0], 'b');
  cluster_free (&c);
}
END_TEST

UNIT_MAIN ("kept_ram", kept_secondary_copies_what_it_missed,
           kept_primary_resumes, kept_lone_primary_resumes_alone,
           kept_node_is_not_promoted_by_fencing, kept_old_primary_follows,
           kept_target_stays_inconsistent, kept_proposal_is_asked_again,
           kept_node_with_an_older_record, kept_data_is_not_created_over,
           kept_create_is_acted_on_later, kept_handover_that_nobody_heard_of)
