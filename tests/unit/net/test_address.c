#include "net/address.h"
#include "net/node.h"

#include "unit.h"

static struct tl_address
parsed (const char *text)
{
  struct tl_address address;
  char error[256] = "";

  ck_assert_msg (tl_address_parse (text, &address, error, sizeof error) == 0,
                 "%s", error);
  return address;
}

START_TEST (good_ones_come_back_as_they_were)
{
  static const char *const texts[] = {
      "10.0.0.1:10810",    "127.0.0.1:1",          "0.0.0.0:65535",
      "[::1]:10810",       "[::]:10810",           "[fd00::1:2]:443",
      "[fe80::1%lo]:7001", "255.255.255.255:10810"};

  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    struct tl_address address = parsed (texts[i]);
    char text[TL_ADDRESS_TEXT];

    tl_address_format (&address, text);
    ck_assert_str_eq (text, texts[i]);
  }
}
END_TEST

START_TEST (bad_ones_are_named)
{
  static const char *const texts[] = {
      "",
      ":",
      "10.0.0.1",
      "10.0.0.1:",
      "10.0.0.1:0",
      "10.0.0.1:010",
      "10.0.0.1:65536",
      "10.0.0.1:99999999999999999999",
      "10.0.0.1:10810x",
      "10.0.0.1:-1",
      "10.0.0.1: 1",
      "10.0.0.1:1:2",
      "10.1:10810",
      "0x7f000001:10810",
      "host.example:10810",
      "::1:10810",
      "[::1]",
      "[::1]10810",
      "[::1:10810",
      "[10.0.0.1]:10810",
      "[host]:10810",
      "[]:10810",
      "[fd00::1]:0",
      "[ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff]"
      ":1"};

  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    char error[256] = "";

    ck_assert_msg (tl_address_check (texts[i], error, sizeof error) == -1,
                   "%s was let pass", texts[i]);
    assert_says (error, texts[i]);
    assert_says (error, "ADDRESS:PORT");
  }
}
END_TEST

START_TEST (hosts_are_compared_across_families)
{
  struct tl_address four = parsed ("10.0.0.1:1"),
                    mapped = parsed ("[::ffff:10.0.0.1]:2"),
                    other = parsed ("10.0.0.2:1"), six = parsed ("[fd00::1]:1");

  ck_assert (tl_address_same_host (&four, &mapped));
  ck_assert (tl_address_same_host (&mapped, &four));
  ck_assert (tl_address_same_host (&six, &six));
  ck_assert (!tl_address_same_host (&four, &other));
  ck_assert (!tl_address_same_host (&mapped, &other));
  ck_assert (!tl_address_same_host (&four, &six));
}
END_TEST

START_TEST (wildcards_are_known)
{
  static const struct {
    const char *text;
    bool wildcard;
  } cases[] = {{"0.0.0.0:1", true},
               {"[::]:1", true},
               {"[::ffff:0.0.0.0]:1", true},
               {"[::1]:1", false},
               {"0.0.0.1:1", false}};

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct tl_address address = parsed (cases[i].text);

    ck_assert_int_eq (tl_address_wildcard (&address), cases[i].wildcard);
  }
}
END_TEST

START_TEST (port_can_be_changed)
{
  struct tl_address four = parsed ("10.0.0.1:10810"),
                    six = parsed ("[::1]:10810");

  ck_assert_uint_eq (tl_address_port (&four), 10810);
  ck_assert_uint_eq (tl_address_port (&six), 10810);
  tl_address_set_port (&four, 0);
  tl_address_set_port (&six, 65535);
  ck_assert_uint_eq (tl_address_port (&four), 0);
  ck_assert_uint_eq (tl_address_port (&six), 65535);
}
END_TEST

UNIT_MAIN ("address", good_ones_come_back_as_they_were, bad_ones_are_named,
           hosts_are_compared_across_families, wildcards_are_known,
           port_can_be_changed)
