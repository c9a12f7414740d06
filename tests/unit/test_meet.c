/* What a node makes of the views that a hello tells: rule V8. */
#include "lone.h"
#include "unit.h"

static struct lone l;

/* The view of VIEW's number, with another id, parent and primary. */
static void
make_view (struct tl_view *view, uint64_t number, uint64_t id, uint64_t parent,
           const char *primary, bool both)
{
  struct tl_view from = {.number = number - 1, .id = parent};
  const char *other = primary[0] == 'a' ? "b" : "a";

  tl_view_next (view, &from, id, primary, both ? other : NULL);
}

static void
history (const struct tl_view *view)
{
  l.record.history[l.record.n_history++] = *view;
}

static void
past (uint64_t number, uint64_t id)
{
  l.hello.past[l.hello.n_past++] = (struct tl_past){.number = number, .id = id};
}

/* The peer went on without us from view 2, which we handed over to it in a view
 * that it was never told.  We step back behind it, however long ago that was.
 */
START_TEST (own_handover_counts_for_nothing)
{
  struct tl_view agreed, common;

  lone_init (&l);
  make_view (&common, 2, 6, 5, "a", true);
  make_view (&l.record.view, 3, 7, 6, "b", true);
  history (&common);
  make_view (&agreed, 5, 9, 8, "b", true);
  l.hello.view = agreed;
  past (4, 8);
  past (3, 10);
  past (2, 6);
  lone_start (&l);
  lone_hello (&l);
  lone_welcome (&l);
  ck_assert (tl_view_equal (&tl_core_pending (l.core)->view, &agreed));
  ck_assert_uint_eq (tl_core_pending (l.core)->incarnation, 0);
  lone_free (&l);
}
END_TEST

/* The same seen from the other side: the peer is the one that is behind. */
START_TEST (handover_of_the_peer_counts_for_nothing)
{
  struct tl_view view;

  lone_init (&l);
  make_view (&l.record.view, 5, 9, 8, "a", false);
  make_view (&view, 4, 8, 10, "a", false);
  history (&view);
  make_view (&view, 3, 10, 6, "a", false);
  history (&view);
  make_view (&view, 2, 6, 5, "b", true);
  history (&view);
  make_view (&l.hello.view, 3, 7, 6, "a", true);
  past (2, 6);
  l.hello.role = TL_SECONDARY;
  lone_start (&l);
  lone_hello (&l);
  lone_welcome (&l);
  ck_assert_uint_eq (tl_core_epoch (l.core), 1); /* alone, it has resumed */

  struct tl_status s;

  tl_core_status (l.core, 1000000, &s);
  ck_assert (s.role == TL_PRIMARY && s.peer_known);
  ck_assert_int_eq (s.link, TL_LINK_CONNECTED);
  lone_free (&l);
}
END_TEST

/* But where the peer never knew the view that was handed over, both have gone
 * their ways.
 */
START_TEST (handover_from_elsewhere_is_a_split)
{
  struct tl_status s;

  lone_init (&l);
  make_view (&l.record.view, 3, 7, 6, "b", true);
  make_view (&l.hello.view, 5, 9, 8, "b", true);
  past (4, 8);
  past (3, 10);
  past (2, 11);
  lone_start (&l);
  lone_hello (&l);
  tl_core_status (l.core, 1000000, &s);
  ck_assert_int_eq (s.link, TL_LINK_STANDALONE);
  lone_free (&l);

  lone_init (&l);
  make_view (&l.record.view, 5, 9, 8, "a", false);
  make_view (&l.hello.view, 3, 7, 6, "a", true);
  l.hello.role = TL_SECONDARY;
  lone_start (&l);
  lone_hello (&l);
  tl_core_status (l.core, 1000000, &s);
  ck_assert_int_eq (s.link, TL_LINK_STANDALONE);
  lone_free (&l);
}
END_TEST

/* The primary tells a new view, which counts on all that it sent before.  A
 * frame of that has not come: who stores the view now lacks what others may
 * have read.
 */
START_TEST (view_waits_for_what_was_sent)
{
  for (unsigned missing = 0; missing < 2; missing++) {
    struct tl_frame frame = {.type = TL_VIEW, .view = 2, .sequence = missing};
    unsigned char bytes[TL_SMALL_MAX];
    struct tl_view view;

    lone_init (&l);
    tl_view_next (&view, &l.record.view, 9, "b", "a");
    lone_start (&l);
    lone_hello (&l);
    frame.session = lone_welcome (&l);
    frame.payload = (uint32_t)tl_view_encode (&l.record.uuid, &view, bytes);
    lone_give (&l, frame, bytes);
    if (missing)
      ck_assert_ptr_nonnull (lone_sent (&l, TL_BYE));
    else
      ck_assert (tl_view_equal (&tl_core_pending (l.core)->view, &view));
    lone_free (&l);
  }
}
END_TEST

UNIT_MAIN ("meet", view_waits_for_what_was_sent,
           own_handover_counts_for_nothing,
           handover_of_the_peer_counts_for_nothing,
           handover_from_elsewhere_is_a_split)
