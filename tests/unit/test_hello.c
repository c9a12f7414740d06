#include "core/core.h"

#include "unit.h"

static struct tl_hello
good (unsigned n_past)
{
  struct tl_hello hello = {.version_min = TL_PROTOCOL_MIN,
                           .version_max = TL_PROTOCOL_MAX,
                           .volume = "slog0",
                           .node = "a",
                           .uuid = {{1, 2, 3}},
                           .size = UINT64_C (8) << 30,
                           .incarnation = UINT64_C (0xfedcba9876543210),
                           .role = TL_PRIMARY,
                           .data = TL_COMPLETE,
                           .member = 1,
                           .arbiter = 1,
                           .n_past = n_past};

  hello.view.number = 100;
  hello.view.id = 200;
  hello.view.parent = 199;
  hello.view.n_members = 2;
  strcpy (hello.view.primary, "a");
  strcpy (hello.view.members[0], "a");
  strcpy (hello.view.members[1], "b");
  for (unsigned i = 0; i < n_past; i++)
    hello.past[i] = (struct tl_past){99 - i, 199 - i};
  return hello;
}

static bool
passes (const struct tl_hello *hello)
{
  unsigned char buffer[TL_SMALL_MAX];
  size_t length = tl_hello_encode (hello, buffer);
  struct tl_hello out;

  return tl_hello_decode (&out, buffer, length) == 0;
}

START_TEST (hello_round_trip)
{
  for (unsigned n = 0; n <= TL_HISTORY; n++) {
    struct tl_hello in = good (n), out;
    unsigned char buffer[TL_SMALL_MAX];
    size_t length = tl_hello_encode (&in, buffer);

    ck_assert_uint_le (length, TL_SMALL_MAX);
    ck_assert_int_eq (tl_hello_decode (&out, buffer, length), 0);
    ck_assert_uint_eq (out.version_min, in.version_min);
    ck_assert_uint_eq (out.version_max, in.version_max);
    ck_assert_uint_eq (out.features, in.features);
    ck_assert_str_eq (out.volume, in.volume);
    ck_assert_str_eq (out.node, in.node);
    ck_assert (tl_uuid_equal (&out.uuid, &in.uuid));
    ck_assert_uint_eq (out.size, in.size);
    ck_assert_uint_eq (out.incarnation, in.incarnation);
    ck_assert_uint_eq (out.role, in.role);
    ck_assert_uint_eq (out.data, in.data);
    ck_assert_uint_eq (out.member, in.member);
    ck_assert_uint_eq (out.arbiter, in.arbiter);
    ck_assert (tl_view_equal (&out.view, &in.view));
    ck_assert_uint_eq (out.n_past, n);
    for (unsigned i = 0; i < n; i++) {
      ck_assert_uint_eq (out.past[i].number, in.past[i].number);
      ck_assert_uint_eq (out.past[i].id, in.past[i].id);
    }
  }
}
END_TEST

START_TEST (hello_of_another_length)
{
  struct tl_hello in = good (3), out;
  unsigned char buffer[TL_SMALL_MAX];
  size_t length = tl_hello_encode (&in, buffer);

  for (size_t l = 0; l < length; l++) {
    unsigned char *exact = malloc (l + 1); /* so that a sanitizer would see */

    memcpy (exact, buffer, l);
    ck_assert_msg (tl_hello_decode (&out, exact, l) == -1, "%zu", l);
    free (exact);
  }
  buffer[length] = 0;
  ck_assert_int_eq (tl_hello_decode (&out, buffer, length + 1), -1);
}
END_TEST

/* Whatever the bytes are, what is let pass is well formed. */
START_TEST (hello_flipped)
{
  struct tl_hello in = good (3), out;
  unsigned char buffer[TL_SMALL_MAX];
  size_t length = tl_hello_encode (&in, buffer);

  for (size_t bit = 0; bit < length * 8; bit++) {
    buffer[bit / 8] ^= (unsigned char)(1 << bit % 8);
    if (tl_hello_decode (&out, buffer, length) == 0 &&
        out.version_min <= TL_PROTOCOL_MAX &&
        out.version_max >= TL_PROTOCOL_MIN) {
      ck_assert (tl_name_valid (out.volume));
      ck_assert (tl_name_valid (out.node));
      ck_assert (tl_view_valid (&out.view));
      ck_assert_uint_le (out.n_past, TL_HISTORY);
      ck_assert_uint_le (out.role, TL_PRIMARY);
      ck_assert_uint_le (out.data, TL_COMPLETE);
      ck_assert_uint_ne (out.incarnation, 0);
    }
    buffer[bit / 8] ^= (unsigned char)(1 << bit % 8);
  }
}
END_TEST

START_TEST (hello_not_well_formed)
{
  struct tl_hello hello = good (0);

  ck_assert (passes (&hello));
  strcpy (hello.volume, "");
  ck_assert (!passes (&hello));
  hello = good (0);
  strcpy (hello.node, "../a");
  ck_assert (!passes (&hello));
  hello = good (0);
  hello.incarnation = 0;
  ck_assert (!passes (&hello));
  hello = good (0);
  hello.role = TL_PRIMARY + 1;
  ck_assert (!passes (&hello));
  hello = good (0);
  hello.data = TL_COMPLETE + 1;
  ck_assert (!passes (&hello));
  hello = good (0);
  hello.member = 2;
  ck_assert (!passes (&hello));
  hello = good (0);
  hello.arbiter = 2;
  ck_assert (!passes (&hello));
  hello = good (0);
  strcpy (hello.view.primary, "c"); /* no member */
  ck_assert (!passes (&hello));
}
END_TEST

/* The first words stay what they are in every version, so that the refusal
 * can name the versions.
 */
START_TEST (hello_of_another_version)
{
  struct tl_hello in = good (0), out;
  unsigned char buffer[TL_SMALL_MAX];
  size_t length;

  in.version_min = TL_PROTOCOL_MAX + 1;
  in.version_max = TL_PROTOCOL_MAX + 2;
  length = tl_hello_encode (&in, buffer);
  memset (buffer + 8, 0xff, length - 8);
  ck_assert_int_eq (tl_hello_decode (&out, buffer, length), 0);
  ck_assert_uint_eq (out.version_min, TL_PROTOCOL_MAX + 1);
  ck_assert_uint_eq (out.version_max, TL_PROTOCOL_MAX + 2);
  ck_assert_int_eq (tl_hello_decode (&out, buffer, 7), -1);
}
END_TEST

START_TEST (view_round_trip)
{
  struct tl_hello hello = good (0);
  struct tl_uuid uuid;
  struct tl_view view;
  unsigned char buffer[TL_SMALL_MAX];
  size_t length;

  for (unsigned members = 1; members <= 2; members++) {
    hello.view.n_members = members;
    length = tl_view_encode (&hello.uuid, &hello.view, buffer);
    ck_assert_uint_le (length, TL_SMALL_MAX);
    ck_assert_int_eq (tl_view_decode (&uuid, &view, buffer, length), 0);
    ck_assert (tl_uuid_equal (&uuid, &hello.uuid));
    ck_assert (tl_view_equal (&view, &hello.view));
    for (size_t l = 0; l < length; l++)
      ck_assert_int_eq (tl_view_decode (&uuid, &view, buffer, l), -1);
    buffer[length] = 0;
    ck_assert_int_eq (tl_view_decode (&uuid, &view, buffer, length + 1), -1);
    for (size_t bit = 0; bit < length * 8; bit++) {
      buffer[bit / 8] ^= (unsigned char)(1 << bit % 8);
      if (tl_view_decode (&uuid, &view, buffer, length) == 0) {
        ck_assert (tl_view_valid (&view));
        ck_assert (!tl_view_equal (&view, &hello.view) ||
                   !tl_uuid_equal (&uuid, &hello.uuid) ||
                   bit / 8 >= 40 /* padding of a name */);
      }
      buffer[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
  }
}
END_TEST

START_TEST (view_must_be_one)
{
  struct tl_hello hello = good (0);
  struct tl_uuid uuid, zero = {{0}};
  struct tl_view view, empty = {0};
  unsigned char buffer[TL_SMALL_MAX];
  size_t length;

  length = tl_view_encode (&hello.uuid, &empty, buffer);
  ck_assert_int_eq (tl_view_decode (&uuid, &view, buffer, length), -1);
  length = tl_view_encode (&zero, &hello.view, buffer);
  ck_assert_int_eq (tl_view_decode (&uuid, &view, buffer, length), -1);
}
END_TEST

START_TEST (runs_round_trip)
{
  static struct tl_run in[TL_RUNS_MAX], out[TL_RUNS_MAX];
  unsigned char buffer[TL_SMALL_MAX + 16];
  unsigned n = 99;
  size_t length;

  ck_assert_uint_eq (tl_runs_encode (in, 0, buffer), 0);
  ck_assert_int_eq (tl_runs_decode (out, &n, 10, buffer, 0), 0);
  ck_assert_uint_eq (n, 0);
  for (unsigned i = 0; i < TL_RUNS_MAX; i++)
    in[i] = (struct tl_run){i * 10, 1 + i % 5};
  length = tl_runs_encode (in, TL_RUNS_MAX, buffer);
  ck_assert_uint_eq (length, TL_SMALL_MAX);
  ck_assert_int_eq (tl_runs_decode (out, &n, 10000, buffer, length), 0);
  ck_assert_uint_eq (n, TL_RUNS_MAX);
  for (unsigned i = 0; i < n; i++) {
    ck_assert_uint_eq (out[i].first, in[i].first);
    ck_assert_uint_eq (out[i].count, in[i].count);
  }
  for (size_t l = length - 15; l < length; l++)
    ck_assert_int_eq (tl_runs_decode (out, &n, 10000, buffer, l), -1);
  /* One more than there may be. */
  memcpy (buffer + length, buffer, 16);
  ck_assert_int_eq (tl_runs_decode (out, &n, 10000, buffer, length + 16), -1);
}
END_TEST

START_TEST (runs_stay_within_the_volume)
{
  static const struct {
    struct tl_run run;
    int result;
  } cases[] = {
      {{0, 10}, 0},          {{9, 1}, 0},           {{0, 11}, -1},
      {{9, 2}, -1},          {{10, 1}, -1},         {{0, 0}, -1},
      {{UINT64_MAX, 1}, -1}, {{1, UINT64_MAX}, -1}, {{9, UINT64_MAX - 8}, -1}};

  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct tl_run out[TL_RUNS_MAX];
    unsigned char buffer[TL_SMALL_MAX];
    unsigned n;
    size_t length = tl_runs_encode (&cases[i].run, 1, buffer);

    ck_assert_msg (tl_runs_decode (out, &n, 10, buffer, length) ==
                       cases[i].result,
                   "case %zu", i);
  }
}
END_TEST

UNIT_MAIN ("hello", hello_round_trip, hello_of_another_length, hello_flipped,
           hello_not_well_formed, hello_of_another_version, view_round_trip,
           view_must_be_one, runs_round_trip, runs_stay_within_the_volume)
