#include "core/view.h"

#include "unit.h"

static struct tl_view
make (uint64_t number, uint64_t id, uint64_t parent, const char *primary,
      const char *first, const char *second)
{
  struct tl_view view = {.number = number, .id = id, .parent = parent};

  snprintf (view.primary, TL_NAME_SIZE, "%s", primary);
  view.n_members = second ? 2 : 1;
  snprintf (view.members[0], TL_NAME_SIZE, "%s", first);
  if (second)
    snprintf (view.members[1], TL_NAME_SIZE, "%s", second);
  return view;
}

/* A record with N views pushed; view I has the id 100 + I. */
static struct tl_record
grow (unsigned n)
{
  struct tl_record record = {.volume = "v", .node = "a", .size = 1 << 20};

  for (unsigned i = 1; i <= n; i++) {
    struct tl_view view;

    tl_view_next (&view, &record.view, 100 + i, "a", "b");
    tl_record_push (&record, &view);
  }
  return record;
}

START_TEST (names)
{
  static const char *const good[] = {
      "a",
      "A9",
      "x.y_z-1",
      "9",
      "_",
      "123456789012345678901234567890123456789012345678901234567890123"};
  static const char *const bad[] = {
      "",
      ".",
      "-a",
      ".a",
      "a b",
      "a/b",
      "a:b",
      "a+b",
      "\xc3\xa4",
      "a\n",
      "1234567890123456789012345678901234567890123456789012345678901234"};

  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
    ck_assert_msg (tl_name_valid (good[i]), "%s", good[i]);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    ck_assert_msg (!tl_name_valid (bad[i]), "%s", bad[i]);
}
END_TEST

START_TEST (uuids)
{
  struct tl_uuid a = {{0}}, b = {{0}};

  ck_assert (tl_uuid_zero (&a));
  ck_assert (tl_uuid_equal (&a, &b));
  b.bytes[15] = 1;
  ck_assert (!tl_uuid_zero (&b));
  ck_assert (!tl_uuid_equal (&a, &b));
}
END_TEST

START_TEST (well_formed)
{
  struct tl_view view = {0};

  ck_assert (tl_view_valid (&view)); /* the empty one */
  view.n_members = 1;
  ck_assert (!tl_view_valid (&view));
  view = make (1, 7, 0, "a", "a", "b");
  ck_assert (tl_view_valid (&view));
  view = make (2, 7, 6, "b", "a", "b");
  ck_assert (tl_view_valid (&view));
  view = make (2, 7, 6, "b", "b", NULL);
  ck_assert (tl_view_valid (&view));
  view = make (2, 0, 6, "b", "b", NULL); /* no id */
  ck_assert (!tl_view_valid (&view));
  view = make (2, 7, 6, "c", "a", "b"); /* primary no member */
  ck_assert (!tl_view_valid (&view));
  view = make (2, 7, 6, "a", "b", "a"); /* not sorted */
  ck_assert (!tl_view_valid (&view));
  view = make (2, 7, 6, "a", "a", "a"); /* twice */
  ck_assert (!tl_view_valid (&view));
  view = make (2, 7, 6, "a", "a", "b/c"); /* no name */
  ck_assert (!tl_view_valid (&view));
  view = make (2, 7, 6, "a", "a", "b");
  view.n_members = 0;
  ck_assert (!tl_view_valid (&view));
  view.n_members = TL_MEMBERS + 1;
  ck_assert (!tl_view_valid (&view));
}
END_TEST

START_TEST (successors)
{
  struct tl_view first, second, third, empty = {0};

  tl_view_next (&first, &empty, 11, "b", "a");
  ck_assert (tl_view_valid (&first));
  ck_assert_uint_eq (first.number, 1);
  ck_assert_uint_eq (first.parent, 0);
  ck_assert_str_eq (first.primary, "b");
  ck_assert_uint_eq (first.n_members, 2);
  ck_assert_str_eq (first.members[0], "a");
  ck_assert_str_eq (first.members[1], "b");
  tl_view_next (&second, &first, 12, "a", NULL);
  ck_assert (tl_view_valid (&second));
  ck_assert_uint_eq (second.number, 2);
  ck_assert_uint_eq (second.parent, 11);
  ck_assert_uint_eq (second.n_members, 1);
  ck_assert (tl_view_has (&second, "a"));
  ck_assert (!tl_view_has (&second, "b"));
  tl_view_next (&third, &second, 13, "a", "b");
  ck_assert_str_eq (third.members[0], "a");
  tl_view_next (&third, &third, 14, "b", NULL); /* in place */
  ck_assert_uint_eq (third.number, 4);
  ck_assert_uint_eq (third.parent, 13);
  ck_assert_str_eq (third.members[0], "b");
}
END_TEST

START_TEST (equality_sees_every_field)
{
  const struct tl_view view = make (3, 7, 6, "a", "a", "b");
  struct tl_view other = view;

  ck_assert (tl_view_equal (&view, &other));
  other = make (4, 7, 6, "a", "a", "b");
  ck_assert (!tl_view_equal (&view, &other));
  other = make (3, 8, 6, "a", "a", "b");
  ck_assert (!tl_view_equal (&view, &other));
  other = make (3, 7, 5, "a", "a", "b");
  ck_assert (!tl_view_equal (&view, &other));
  other = make (3, 7, 6, "b", "a", "b");
  ck_assert (!tl_view_equal (&view, &other));
  other = make (3, 7, 6, "a", "a", "c");
  ck_assert (!tl_view_equal (&view, &other));
  other = make (3, 7, 6, "a", "a", NULL);
  ck_assert (!tl_view_equal (&view, &other));
}
END_TEST

START_TEST (history_has_the_newest_first)
{
  struct tl_record record = grow (1);

  ck_assert_uint_eq (record.n_history, 0); /* the empty view is none */
  record = grow (3);
  ck_assert_uint_eq (record.view.id, 103);
  ck_assert_uint_eq (record.n_history, 2);
  ck_assert_uint_eq (record.history[0].id, 102);
  ck_assert_uint_eq (record.history[1].id, 101);
}
END_TEST

START_TEST (full_history_drops_the_oldest)
{
  struct tl_record record = grow (TL_HISTORY + 5);

  ck_assert_uint_eq (record.n_history, TL_HISTORY);
  for (unsigned i = 0; i < TL_HISTORY; i++)
    ck_assert_uint_eq (record.history[i].id, 100 + TL_HISTORY + 4 - i);
}
END_TEST

START_TEST (what_the_peer_has_stays)
{
  struct tl_record record = grow (5);
  struct tl_view theirs;

  record.peer_view = 102;
  theirs = record.history[2];
  ck_assert_uint_eq (theirs.id, 102);
  for (unsigned i = 6; i < 200; i++) {
    struct tl_view view;
    unsigned found = 0;

    tl_view_next (&view, &record.view, 100 + i, "a", NULL);
    tl_record_push (&record, &view);
    for (unsigned j = 0; j < record.n_history; j++)
      found += record.history[j].id == 102;
    ck_assert_uint_eq (found, 1);
    ck_assert_uint_eq (record.history[0].id, 100 + i - 1);
    ck_assert_int_eq (tl_view_compare (&record, &theirs, NULL, 0), TL_AHEAD);
  }
}
END_TEST

START_TEST (order)
{
  struct tl_record ours = grow (4);
  struct tl_record theirs = grow (6);
  struct tl_past past[TL_HISTORY];
  struct tl_view other, empty = {0};
  unsigned n;

  for (n = 0; n < theirs.n_history; n++)
    past[n] = (struct tl_past){theirs.history[n].number, theirs.history[n].id};
  ck_assert_int_eq (tl_view_compare (&ours, &ours.view, NULL, 0), TL_SAME);
  ck_assert_int_eq (tl_view_compare (&ours, &theirs.view, past, n), TL_BEHIND);
  ck_assert_int_eq (tl_view_compare (&theirs, &ours.view, NULL, 0), TL_AHEAD);
  /* Without their history, only a child is known as such. */
  ck_assert_int_eq (tl_view_compare (&ours, &theirs.view, NULL, 0),
                    TL_DIVERGED);
  tl_view_next (&other, &ours.view, 200, "b", NULL);
  ck_assert_int_eq (tl_view_compare (&ours, &other, NULL, 0), TL_BEHIND);
  /* Two children of one view. */
  ck_assert_int_eq (tl_view_compare (&theirs, &other, NULL, 0), TL_DIVERGED);
  other = ours.view;
  other.id = 999; /* the same number */
  ck_assert_int_eq (tl_view_compare (&ours, &other, NULL, 0), TL_DIVERGED);
  /* Never created. */
  ck_assert_int_eq (tl_view_compare (&ours, &empty, NULL, 0), TL_AHEAD);
  ours = grow (0);
  ck_assert_int_eq (tl_view_compare (&ours, &theirs.view, past, n), TL_BEHIND);
  ck_assert_int_eq (tl_view_compare (&ours, &empty, NULL, 0), TL_SAME);
}
END_TEST

START_TEST (order_needs_number_and_id)
{
  struct tl_record ours = grow (4);
  struct tl_view theirs = make (9, 300, 299, "b", "b", NULL);
  struct tl_past past = {.number = 4, .id = 104};

  ck_assert_int_eq (tl_view_compare (&ours, &theirs, &past, 1), TL_BEHIND);
  past.number = 3;
  ck_assert_int_eq (tl_view_compare (&ours, &theirs, &past, 1), TL_DIVERGED);
  past = (struct tl_past){.number = 4, .id = 105};
  ck_assert_int_eq (tl_view_compare (&ours, &theirs, &past, 1), TL_DIVERGED);
}
END_TEST

START_TEST (record_of_another)
{
  struct tl_record record = grow (1);
  char error[256];

  ck_assert (tl_record_check (&record, "v", "a", 1 << 20, error, sizeof error));
  ck_assert (
      !tl_record_check (&record, "w", "a", 1 << 20, error, sizeof error));
  assert_says (error, "volume v, not to w");
  ck_assert (
      !tl_record_check (&record, "v", "b", 1 << 20, error, sizeof error));
  assert_says (error, "node a, not to b");
  ck_assert (
      !tl_record_check (&record, "v", "a", 1 << 21, error, sizeof error));
  assert_says (error, "2097152");
}
END_TEST

UNIT_MAIN ("view", names, uuids, well_formed, successors,
           equality_sees_every_field, history_has_the_newest_first,
           full_history_drops_the_oldest, what_the_peer_has_stays, order,
           order_needs_number_and_id, record_of_another)
