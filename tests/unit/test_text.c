#include "state/state.h"

#include "unit.h"

#define UUID "00112233-4455-6677-8899-aabbccddeeff"
#define GOOD "twinlog1:" UUID ":7:00000000000000ab:00000000000000aa:a:a+b"

static const struct tl_uuid uuid = {{0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66,
                                     0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd,
                                     0xee, 0xff}};

START_TEST (uuid_round_trip)
{
  struct tl_uuid out;
  char text[37];

  tl_uuid_format (&uuid, text);
  ck_assert_str_eq (text, UUID);
  ck_assert_int_eq (tl_uuid_parse (text, &out), 0);
  ck_assert (tl_uuid_equal (&uuid, &out));
}
END_TEST

START_TEST (uuid_in_other_spellings)
{
  static const char *const bad[] = {"",
                                    "0",
                                    "00112233-4455-6677-8899-aabbccddeef",
                                    "00112233-4455-6677-8899-aabbccddeefff",
                                    "00112233-4455-6677-8899-aabbccddeefg",
                                    "00112233-4455-6677-8899-AABBCCDDEEFF",
                                    "0011223-34455-6677-8899-aabbccddeeff",
                                    "00112233 4455 6677 8899 aabbccddeeff",
                                    "001122334455-6677-8899-aabbccddeeff-",
                                    "-0112233-4455-6677-8899-aabbccddeeff",
                                    "0x112233-4455-6677-8899-aabbccddeeff",
                                    " 0112233-4455-6677-8899-aabbccddeeff",
                                    "------------------------------------",
                                    "1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-11",
                                    "00112233445566778899aabbccddeeff"};
  struct tl_uuid out;

  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    ck_assert_msg (tl_uuid_parse (bad[i], &out) == -1, "%s", bad[i]);
}
END_TEST

START_TEST (view_round_trip)
{
  struct tl_view in = {.number = 7,
                       .id = 0xab,
                       .parent = 0xaa,
                       .primary = "a",
                       .n_members = 2,
                       .members = {"a", "b"}};
  struct tl_view out;
  struct tl_uuid id;
  char text[TL_VIEW_TEXT];

  tl_view_format (&uuid, &in, text);
  ck_assert_str_eq (text, GOOD);
  ck_assert_int_eq (tl_view_parse (text, &id, &out), 0);
  ck_assert (tl_view_equal (&in, &out));
  ck_assert (tl_uuid_equal (&id, &uuid));
  strcpy (in.primary, "b");
  strcpy (in.members[0], "b");
  in.n_members = 1;
  tl_view_format (&uuid, &in, text);
  ck_assert_int_eq (tl_view_parse (text, &id, &out), 0);
  ck_assert (tl_view_equal (&in, &out));
}
END_TEST

START_TEST (largest_view_fits)
{
  struct tl_view in = {
      .number = UINT64_MAX, .id = UINT64_MAX, .parent = UINT64_MAX - 1};
  struct tl_view out;
  struct tl_uuid id;
  char text[TL_VIEW_TEXT];

  in.n_members = 2;
  memset (in.members[0], 'x', TL_NAME_SIZE - 1);
  memset (in.members[1], 'y', TL_NAME_SIZE - 1);
  memset (in.primary, 'y', TL_NAME_SIZE - 1);
  tl_view_format (&uuid, &in, text);
  ck_assert_uint_lt (strlen (text), TL_VIEW_TEXT - 1);
  ck_assert_ptr_null (strchr (text, ' '));
  ck_assert_int_eq (tl_view_parse (text, &id, &out), 0);
  ck_assert (tl_view_equal (&in, &out));
}
END_TEST

START_TEST (white_space_behind_is_let_pass)
{
  struct tl_view view;
  struct tl_uuid id;

  ck_assert_int_eq (tl_view_parse (GOOD "\n", &id, &view), 0);
  ck_assert_int_eq (tl_view_parse (GOOD " \r\n\n", &id, &view), 0);
  ck_assert_int_eq (tl_view_parse (" " GOOD, &id, &view), -1);
  ck_assert_int_eq (tl_view_parse (GOOD "\n" GOOD, &id, &view), -1);
}
END_TEST

START_TEST (not_a_view)
{
  static const char *const bad[] = {
      "",
      "\n",
      "none",
      ":",
      "twinlog1:" UUID ":7:00000000000000ab:00000000000000aa:a",
      GOOD ":",
      GOOD "+",
      GOOD "+c",
      GOOD "+a",
      "twinlog2:" UUID ":7:00000000000000ab:00000000000000aa:a:a+b",
      "twinlog1:" UUID ":0:00000000000000ab:00000000000000aa:a:a+b",
      "twinlog1:" UUID ":07:00000000000000ab:00000000000000aa:a:a+b",
      "twinlog1:" UUID ":+7:00000000000000ab:00000000000000aa:a:a+b",
      "twinlog1:" UUID ":-7:00000000000000ab:00000000000000aa:a:a+b",
      "twinlog1:" UUID ":7 :00000000000000ab:00000000000000aa:a:a+b",
      "twinlog1:" UUID
      ":18446744073709551616:00000000000000ab:00000000000000aa:a:a+b",
      "twinlog1:" UUID ":7:ab:00000000000000aa:a:a+b",
      "twinlog1:" UUID ":7:00000000000000AB:00000000000000aa:a:a+b",
      "twinlog1:" UUID ":7:0000000000000000:00000000000000aa:a:a+b",
      "twinlog1:" UUID ":7:00000000000000ab:00000000000000aa:c:a+b",
      "twinlog1:" UUID ":7:00000000000000ab:00000000000000aa:a:b+a",
      "twinlog1:" UUID ":7:00000000000000ab:00000000000000aa:a:a+a",
      "twinlog1:" UUID ":7:00000000000000ab:00000000000000aa::",
      "twinlog1:" UUID ":7:00000000000000ab:00000000000000aa:a:",
      "twinlog1:0:7:00000000000000ab:00000000000000aa:a:a+b"};
  struct tl_view view = {.number = 42};
  struct tl_uuid id = {{42}};

  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    ck_assert_msg (tl_view_parse (bad[i], &id, &view) == -1, "%s", bad[i]);
  ck_assert_uint_eq (view.number, 42); /* untouched */
  ck_assert_uint_eq (id.bytes[0], 42);
}
END_TEST

START_TEST (longer_than_any_view)
{
  struct tl_view view;
  struct tl_uuid id;
  char text[4 * TL_VIEW_TEXT];

  memset (text, 'a', sizeof text);
  memcpy (text, GOOD, strlen (GOOD));
  for (size_t length = strlen (GOOD) + TL_NAME_SIZE; length < sizeof text;
       length++) {
    text[length] = '\0';
    ck_assert_int_eq (tl_view_parse (text, &id, &view), -1);
    text[length] = 'a';
  }
}
END_TEST

/* Two texts that are let pass and differ are two views: change each character
 * of a good one to any other, drop it, or double it.
 */
START_TEST (every_text_is_canonical)
{
  const size_t length = strlen (GOOD);
  struct tl_view good, view;
  struct tl_uuid good_id, id;
  char text[TL_VIEW_TEXT], again[TL_VIEW_TEXT];
  unsigned passed = 0;

  ck_assert_int_eq (tl_view_parse (GOOD, &good_id, &good), 0);
  for (size_t i = 0; i < length; i++) {
    for (int c = 0; c < 256 + 2; c++) {
      strcpy (text, GOOD);
      if (c == 256)
        memmove (text + i, text + i + 1, length - i);
      else if (c == 257)
        memmove (text + i + 1, text + i, length - i + 1);
      else
        text[i] = (char)c;
      if (strcmp (text, GOOD) == 0 || tl_view_parse (text, &id, &view) == -1)
        continue;
      passed++;
      tl_view_format (&id, &view, again);
      ck_assert_str_eq (text, again);
      ck_assert (!tl_view_equal (&view, &good) ||
                 !tl_uuid_equal (&id, &good_id));
    }
  }
  ck_assert_uint_gt (passed, 100); /* other digits, another name */
}
END_TEST

UNIT_MAIN ("text", uuid_round_trip, uuid_in_other_spellings, view_round_trip,
           largest_view_fits, white_space_behind_is_let_pass, not_a_view,
           longer_than_any_view, every_text_is_canonical)
