/* The options of `twinlog bench`, from the command line on. */
#include "arguments.h"
#include "bench_options.h"

#include "../unit/unit.h"

static struct bench_options options;
static char error[1024];

/* Parse `twinlog bench FIRST [SECOND]`. */
static int
parse (const char *first, const char *second)
{
  const char *words[] = {"twinlog", "bench", first, second, NULL};
  struct arguments arguments;

  error[0] = '\0';
  if (arguments_parse (&arguments, second ? 4 : (first ? 3 : 2), (char **)words,
                       error, sizeof error) == -1)
    return -1;
  return bench_options_parse (&arguments, &options, error, sizeof error);
}

static void
refuses (const char *first, const char *second, const char *why)
{
  ck_assert_msg (parse (first, second) == -1, "%s was taken", first);
  ck_assert_msg (strstr (error, why), "%s: \"%s\"", first, error);
  ck_assert_ptr_null (strchr (error, '\n'));
}

START_TEST (defaults)
{
  static const uint32_t sizes[] = {4096, 8192, 32768, 131072, 1048576};
  static const uint32_t depths[] = {1, 4, 10, 16, 32};

  ck_assert_int_eq (parse (NULL, NULL), 0);
  ck_assert_uint_eq (options.sizes.n, 5);
  ck_assert_mem_eq (options.sizes.value, sizes, sizeof sizes);
  ck_assert_uint_eq (options.depths.n, 5);
  ck_assert_mem_eq (options.depths.value, depths, sizeof depths);
  ck_assert_uint_eq (options.connections.n, 2);
  ck_assert_uint_eq (options.connections.value[0], 1);
  ck_assert_uint_eq (options.connections.value[1], 4);
  ck_assert_int_eq (options.duration, 800000000);
  ck_assert_double_eq (options.rate, 0);
}
END_TEST

START_TEST (values)
{
  ck_assert_int_eq (parse ("--size=512,3k,16M", "--depth=256"), 0);
  ck_assert_uint_eq (options.sizes.n, 3);
  ck_assert_uint_eq (options.sizes.value[0], 512);
  ck_assert_uint_eq (options.sizes.value[1], 3072);
  ck_assert_uint_eq (options.sizes.value[2], BENCH_SIZE_MAX);
  ck_assert_uint_eq (options.depths.n, 1);
  ck_assert_uint_eq (options.depths.value[0], 256);
  ck_assert_int_eq (parse ("--seconds=0.05", "--link=12.5,25"), 0);
  ck_assert_int_eq (options.duration, 50000000);
  ck_assert_double_eq (options.round_trip, 12.5);
  ck_assert_double_eq (options.rate, 25);
}
END_TEST

START_TEST (bad_lists)
{
  static const char *const sizes[] = {
      "0",   "511", "513",    "4X",    "K",   "17M",  "16385K",
      "4K,", ",4K", "4K,,8K", "4K 8K", "-4K", "4.5K", "99999999999"};
  char text[64];

  for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    snprintf (text, sizeof text, "--size=%s", sizes[i]);
    refuses (text, NULL, "--size");
  }
  refuses ("--size=1K,1K,1K,1K,1K,1K,1K,1K,1K,1K,1K,1K,1K,1K,1K,1K,1K", NULL,
           "--size");
  refuses ("--depth=0", NULL, "from 1 to 256");
  refuses ("--depth=257", NULL, "from 1 to 256");
  refuses ("--depth=1K", NULL, "from 1 to 256");
  refuses ("--connections=65", NULL, "from 1 to 64");
}
END_TEST

START_TEST (bad_numbers)
{
  static const char *const links[] = {"12",     "12,",   ",25",    "0,25",
                                      "12,0",   "1e3,1", "12,25,", "inf,1",
                                      "12,nan", "-1,1"};
  char text[64];

  refuses ("--seconds=0", NULL, "--seconds");
  refuses ("--seconds=0.049", NULL, "--seconds");
  refuses ("--seconds=3601", NULL, "--seconds");
  refuses ("--seconds=1,2", NULL, "--seconds");
  refuses ("--seconds=0x10", NULL, "--seconds");
  for (unsigned i = 0; i < sizeof links / sizeof links[0]; i++) {
    snprintf (text, sizeof text, "--link=%s", links[i]);
    refuses (text, NULL, "--link");
  }
}
END_TEST

START_TEST (addresses)
{
  static const char *const bad[] = {
      "host:1", "1.2.3.4", "1.2.3.4:", "1.2.3.4:0", "1.2.3.4:65536",
      "::1:5",  "[]:5",    "[::1]",    ":5"};
  const char *port;
  char host[64], text[64];

  ck_assert (bench_split_address ("[::1]:65535", host, sizeof host, &port));
  ck_assert_str_eq (host, "::1");
  ck_assert_str_eq (port, "65535");
  ck_assert (bench_split_address ("10.0.0.1:1", host, sizeof host, &port));
  ck_assert_str_eq (host, "10.0.0.1");
  ck_assert (!bench_split_address ("10.0.0.1:1", host, 8, &port));
  for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    snprintf (text, sizeof text, "--ping=%s", bad[i]);
    refuses (text, NULL, "ADDRESS:PORT");
    snprintf (text, sizeof text, "--answer=%s", bad[i]);
    refuses (text, NULL, "ADDRESS:PORT");
  }
}
END_TEST

START_TEST (together)
{
  refuses ("--answer=127.0.0.1:5", "--json", "no other option");
  refuses ("--answer=127.0.0.1:5", "slog0", "no other option");
  refuses ("--uri=nbd://x", "slog0", "one target");
  refuses ("--uri=nbd://x", "--socket=/x", "one target");
  refuses ("--overwrite", NULL, "of what");
  refuses ("--control=/x", NULL, "--socket");
  refuses ("--link=10,10", "slog0", "--ping");
  refuses ("--link=10,10", "--uri=nbd://x", "--ping");
  ck_assert_int_eq (parse ("--control=/x", "slog0"), 0);
  ck_assert_int_eq (parse ("--control=/x", "--socket=/y"), 0);
  ck_assert_int_eq (parse ("--overwrite", "slog0"), 0);
}
END_TEST

UNIT_MAIN ("bench_options", defaults, values, bad_lists, bad_numbers, addresses,
           together)
