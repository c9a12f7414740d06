/* The plugin's parameters: every wrong value, which source wins, what
 * contradicts what.  Messages are compared word for word, as they are what
 * the operator gets.
 */
#include "parameters.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct tl_parameters p;
static char error[1024];
static char directory[64];
static char file[128];

static char *
absolute_path (const char *path)
{
  char *absolute;

  ck_assert_int_ge (
      asprintf (&absolute, "%s%s", path[0] == '/' ? "" : "/cwd/", path), 0);
  return absolute;
}

static int
check_address (const char *text, char *why, size_t why_size)
{
  if (strchr (text, ':'))
    return 0;
  snprintf (why, why_size, "expected ADDRESS:PORT");
  return -1;
}

static void
setup (void)
{
  static const struct tl_host host = {absolute_path, check_address};

  tl_parameters_init (&p, &host);
  error[0] = '\0';
  strcpy (directory, "/tmp/twinlog-parameters-XXXXXX");
  ck_assert_ptr_nonnull (mkdtemp (directory));
  snprintf (file, sizeof file, "%s/x.conf", directory);
}

static void
teardown (void)
{
  tl_parameters_clear (&p);
  unlink (file);
  ck_assert_int_eq (rmdir (directory), 0);
}

static int
set (const char *key, const char *value)
{
  return tl_parameters_set (&p, key, value, error, sizeof error);
}

static void
set_required (void)
{
  ck_assert_int_eq (set ("size", "8G"), 0);
  ck_assert_int_eq (set ("name", "slog0"), 0);
  ck_assert_int_eq (set ("node", "a"), 0);
  ck_assert_int_eq (set ("listen", "10.0.0.1:10810"), 0);
  ck_assert_int_eq (set ("peer", "10.0.0.2:10810"), 0);
}

static int
check (void)
{
  return tl_parameters_check (&p, error, sizeof error);
}

static void
write_bytes (const void *bytes, size_t length)
{
  int fd = open (file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

  ck_assert_int_ge (fd, 0);
  ck_assert_int_eq (write (fd, bytes, length), (ssize_t)length);
  close (fd);
}

static void
write_file (const char *text)
{
  write_bytes (text, strlen (text));
}

/* ERROR is EXPECTED, where %s stands for the path of the file. */
static void
expect (const char *expected)
{
  char text[2048];
  const char *mark = strstr (expected, "%s");

  if (mark)
    snprintf (text, sizeof text, "%.*s%s%s", (int)(mark - expected), expected,
              file, mark + 2);
  else
    snprintf (text, sizeof text, "%s", expected);
  ck_assert_str_eq (error, text);
}

/* ---- Values ---- */

START_TEST (test_defaults)
{
  set_required ();
  ck_assert_int_eq (check (), 0);
  ck_assert_uint_eq (p.size, UINT64_C (8) << 30);
  ck_assert_str_eq (p.volume, "slog0");
  ck_assert_str_eq (p.node, "a");
  ck_assert_str_eq (p.listen, "10.0.0.1:10810");
  ck_assert_str_eq (p.peer, "10.0.0.2:10810");
  ck_assert_str_eq (p.control, "/run/twinlog/slog0.ctl");
  ck_assert_str_eq (p.state, "/var/lib/twinlog/slog0.state");
  ck_assert_ptr_null (p.store);
  ck_assert_ptr_null (p.arbiter);
  ck_assert (p.lock);
  ck_assert_int_eq (p.flush, TL_FLUSH_AUTO);
  ck_assert_int_eq (p.policy, TL_POLICY_ERROR);
  ck_assert_uint_eq (p.deadline, 5000000);
  ck_assert (!p.compress);
  ck_assert (!p.mptcp);
}
END_TEST

START_TEST (test_arbiter_makes_the_policy)
{
  set_required ();
  ck_assert_int_eq (set ("arbiter", "/usr/bin/arbiter /x"), 0);
  ck_assert_int_eq (check (), 0);
  ck_assert_int_eq (p.policy, TL_POLICY_ARBITER);
  ck_assert_str_eq (p.arbiter, "/usr/bin/arbiter /x");
}
END_TEST

static const struct {
  const char *text;
  uint64_t size;
} sizes[] = {
    {"4096", 4096},
    {"8192b", 8192},
    {"8192B", 8192},
    {"4k", 4096},
    {"64K", 65536},
    {"8s", 4096},
    {"16S", 8192},
    {"1m", 1 << 20},
    {"64M", 64 << 20},
    {"2g", UINT64_C (2) << 30},
    {"1T", UINT64_C (1) << 40},
    {"1p", UINT64_C (1) << 50},
    {"7E", UINT64_C (7) << 60},
    {"9223372036854771712", INT64_MAX - 4095},
};

START_TEST (test_size)
{
  ck_assert_int_eq (set ("size", sizes[_i].text), 0);
  ck_assert_uint_eq (p.size, sizes[_i].size);
}
END_TEST

static const struct {
  const char *text;
  uint64_t deadline;
} deadlines[] = {
    {"0.2", 200000},      {"0.200000", 200000}, {"0.5", 500000},
    {"1", 1000000},       {"1.25", 1250000},    {"300", 300000000},
    {"300.0", 300000000},
};

START_TEST (test_deadline)
{
  ck_assert_int_eq (set ("deadline", deadlines[_i].text), 0);
  ck_assert_uint_eq (p.deadline, deadlines[_i].deadline);
}
END_TEST

START_TEST (test_words)
{
  set_required ();
  ck_assert_int_eq (set ("lock", "off"), 0);
  ck_assert_int_eq (set ("flush", "on"), 0);
  ck_assert_int_eq (set ("compress", "lz4"), 0);
  ck_assert_int_eq (set ("mptcp", "on"), 0);
  ck_assert_int_eq (set ("on-partner-loss", "freeze"), 0);
  ck_assert_int_eq (set ("control", "run/x.ctl"), 0);
  ck_assert_int_eq (set ("state", "/s/x.state"), 0);
  ck_assert_int_eq (set ("store", "x.ram"), 0);
  ck_assert_int_eq (check (), 0);
  ck_assert (!p.lock);
  ck_assert_int_eq (p.flush, TL_FLUSH_ON);
  ck_assert (p.compress);
  ck_assert (p.mptcp);
  ck_assert_int_eq (p.policy, TL_POLICY_FREEZE);
  ck_assert_str_eq (p.control, "/cwd/run/x.ctl");
  ck_assert_str_eq (p.state, "/s/x.state");
  ck_assert_str_eq (p.store, "/cwd/x.ram");
}
END_TEST

#define SIZE_ALLOWED                                                           \
  "expected a size in bytes, with K, M, G or T for larger units"
#define NAME_ALLOWED                                                           \
  "expected 1 to 63 letters, digits, '.', '_' or '-', not beginning with "     \
  "'.' or '-'"
#define LONG_PATH                                                              \
  "/12345678901234567890123456789012345678901234567890"                        \
  "12345678901234567890123456789012345678901234567890.ctlxxx"

static const struct {
  const char *key, *value, *error;
} wrong[] = {
    {"size", "0", "size=0: the size must not be 0"},
    {"size", "0G", "size=0G: the size must not be 0"},
    {"size", "4095", "size=4095: the size must be a multiple of 4096 bytes"},
    {"size", "4097", "size=4097: the size must be a multiple of 4096 bytes"},
    {"size", "1K", "size=1K: the size must be a multiple of 4096 bytes"},
    {"size", "-4096", "size=-4096: " SIZE_ALLOWED},
    {"size", "+4096", "size=+4096: " SIZE_ALLOWED},
    {"size", " 4096", "size= 4096: " SIZE_ALLOWED},
    {"size", "4096 ", "size=4096 : " SIZE_ALLOWED},
    {"size", "0x1000", "size=0x1000: " SIZE_ALLOWED},
    {"size", "1.5G", "size=1.5G: " SIZE_ALLOWED},
    {"size", "8GB", "size=8GB: " SIZE_ALLOWED},
    {"size", "8Z", "size=8Z: " SIZE_ALLOWED},
    {"size", "G", "size=G: " SIZE_ALLOWED},
    {"size", "much", "size=much: " SIZE_ALLOWED},
    {"size", "8E", "size=8E: the size is out of range"},
    {"size", "9223372036854775808",
     "size=9223372036854775808: the size is out of range"},
    {"size", "99999999999999999999",
     "size=99999999999999999999: the size is out of range"},
    {"size", "18446744073709551615K",
     "size=18446744073709551615K: the size is out of range"},
    {"size", "", "size=: the value is empty"},
    {"name", "", "name=: the value is empty"},
    {"name", "a b", "name=a b: " NAME_ALLOWED},
    {"name", ".a", "name=.a: " NAME_ALLOWED},
    {"name", "../x", "name=../x: " NAME_ALLOWED},
    {"name", "1234567890123456789012345678901234567890123456789012345678901234",
     "name="
     "1234567890123456789012345678901234567890123456789012345678901234:"
     " " NAME_ALLOWED},
    {"name", "a\nb", "name=: the value holds a control character"},
    {"node", "a/b", "node=a/b: " NAME_ALLOWED},
    {"node", "-a", "node=-a: " NAME_ALLOWED},
    {"listen", "here", "listen=here: expected ADDRESS:PORT"},
    {"peer", "there", "peer=there: expected ADDRESS:PORT"},
    {"control", "/run/",
     "control=/run/: expected the path of a file, not of a "
     "directory"},
    {"control", "\"/run/x\"",
     "control=\"/run/x\": expected a path without quotes"},
    {"control", LONG_PATH,
     "control=" LONG_PATH ": the absolute path of a "
     "socket has at most 107 bytes"},
    {"state", "", "state=: the value is empty"},
    {"store", "/", "store=/: expected the path of a file, not of a directory"},
    {"lock", "yes", "lock=yes: expected on or off"},
    {"lock", "ON", "lock=ON: expected on or off"},
    {"flush", "never", "flush=never: expected auto, on or off"},
    {"on-partner-loss", "panic",
     "on-partner-loss=panic: expected error, "
     "arbiter, freeze or continue"},
    {"arbiter", "", "arbiter=: the value is empty"},
    {"deadline", "0", "deadline=0: expected seconds from 0.2 to 300"},
    {"deadline", "0.1", "deadline=0.1: expected seconds from 0.2 to 300"},
    {"deadline", "0.199999",
     "deadline=0.199999: expected seconds from 0.2 to 300"},
    {"deadline", "300.1", "deadline=300.1: expected seconds from 0.2 to 300"},
    {"deadline", "99999999999999999999",
     "deadline=99999999999999999999: expected seconds from 0.2 to 300"},
    {"deadline", "-1", "deadline=-1: expected seconds from 0.2 to 300"},
    {"deadline", "5s", "deadline=5s: expected seconds from 0.2 to 300"},
    {"deadline", "5.", "deadline=5.: expected seconds from 0.2 to 300"},
    {"deadline", ".5", "deadline=.5: expected seconds from 0.2 to 300"},
    {"deadline", "1,5", "deadline=1,5: expected seconds from 0.2 to 300"},
    {"deadline", "nan", "deadline=nan: expected seconds from 0.2 to 300"},
    {"deadline", "1.0000001",
     "deadline=1.0000001: expected seconds from 0.2 to 300"},
    {"reads", "fast", "reads=fast: expected confirmed or local"},
    {"auto-promote", "yes", "auto-promote=yes: expected on or off"},
    {"compress", "zstd", "compress=zstd: expected none or lz4"},
    {"mptcp", "2", "mptcp=2: expected on or off"},
    {"resync-rate", "1000",
     "resync-rate=1000: expected at least 64K bytes a second, or 0 for no "
     "limit"},
    {"resync-rate", "fast",
     "resync-rate=fast: expected a size in bytes, with K, M, G or T for larger "
     "units"},
    {"colour", "red",
     "unknown parameter \"colour\"; there are size, name, node, listen, peer, "
     "control, state, store, lock, flush, on-partner-loss, arbiter, deadline, "
     "reads, auto-promote, resync-rate, compress, mptcp, notify, config"},
    {"Size", "8G",
     "unknown parameter \"Size\"; there are size, name, node, listen, peer, "
     "control, state, store, lock, flush, on-partner-loss, arbiter, deadline, "
     "reads, auto-promote, resync-rate, compress, mptcp, notify, config"},
    {"config", "", "config=: expected the path of a file"},
    {"config", "/nonexistent/x.conf",
     "config=/nonexistent/x.conf: cannot open the file: No such file or "
     "directory"},
    {"config", "/tmp", "config=/tmp: cannot read the file: Is a directory"},
};

START_TEST (test_wrong_value)
{
  ck_assert_int_eq (set (wrong[_i].key, wrong[_i].value), -1);
  expect (wrong[_i].error);
}
END_TEST

/* The same value in the file is refused with its line. */
START_TEST (test_wrong_value_in_file)
{
  char text[512], expected[1024];

  if (strcmp (wrong[_i].key, "config") == 0 ||
      strcmp (wrong[_i].error + strlen (wrong[_i].key),
              "=: the value is empty") == 0 ||
      strpbrk (wrong[_i].value, " \n") ||
      strncmp (wrong[_i].error, "unknown", 7) == 0)
    return;
  snprintf (text, sizeof text, "# first\n%s = %s\n", wrong[_i].key,
            wrong[_i].value);
  write_file (text);
  ck_assert_int_eq (set ("config", file), -1);
  snprintf (expected, sizeof expected, "%%s:2: %s", wrong[_i].error);
  expect (expected);
}
END_TEST

START_TEST (test_missing)
{
  static const char *const required[][2] = {{"size", "8G"},
                                            {"name", "slog0"},
                                            {"node", "a"},
                                            {"listen", "10.0.0.1:10810"},
                                            {"peer", "10.0.0.2:10810"}};
  char expected[256];

  for (int i = 0; i < 5; i++)
    if (i != _i)
      ck_assert_int_eq (set (required[i][0], required[i][1]), 0);
  ck_assert_int_eq (check (), -1);
  snprintf (expected, sizeof expected,
            "%s= is missing; size, name, node, listen and peer must be given",
            required[_i][0]);
  expect (expected);
}
END_TEST

/* ---- Twice ---- */

START_TEST (test_same_value_twice)
{
  set_required ();
  ck_assert_int_eq (set ("node", "a"), 0);
  ck_assert_int_eq (check (), 0);
}
END_TEST

START_TEST (test_other_value_twice)
{
  set_required ();
  ck_assert_int_eq (set ("node", "b"), -1);
  expect ("node=b: given twice, before as node=a");
}
END_TEST

START_TEST (test_two_files)
{
  write_file ("node = a\n");
  ck_assert_int_eq (set ("config", file), 0);
  ck_assert_int_eq (set ("config", file), 0);
  ck_assert_int_eq (set ("config", "/etc/passwd"), -1);
  expect ("config=/etc/passwd: given twice, before as %s");
}
END_TEST

/* ---- The file ---- */

static const char whole[] = "; a comment\n"
                            "[volume]\n"
                            "size = 1M\n"
                            "  name=v1\n"
                            "\tnode = b   \n"
                            "listen = 10.0.0.2:1\r\n"
                            "peer= [fd00::1]:2\n"
                            "\n"
                            "[else]\n"
                            "# and more\n"
                            "arbiter = /x/arbiter a=b c\n"
                            "deadline=0.5\n"
                            "lock = off";

START_TEST (test_file)
{
  write_file (whole);
  ck_assert_int_eq (set ("config", file), 0);
  ck_assert_int_eq (check (), 0);
  ck_assert_uint_eq (p.size, 1 << 20);
  ck_assert_str_eq (p.volume, "v1");
  ck_assert_str_eq (p.node, "b");
  ck_assert_str_eq (p.listen, "10.0.0.2:1");
  ck_assert_str_eq (p.peer, "[fd00::1]:2");
  ck_assert_str_eq (p.control, "/run/twinlog/v1.ctl");
  ck_assert_str_eq (p.arbiter, "/x/arbiter a=b c");
  ck_assert_int_eq (p.policy, TL_POLICY_ARBITER);
  ck_assert_uint_eq (p.deadline, 500000);
  ck_assert (!p.lock);
}
END_TEST

START_TEST (test_command_line_wins)
{
  write_file (whole);
  if (_i == 0)
    ck_assert_int_eq (set ("config", file), 0);
  ck_assert_int_eq (set ("size", "2M"), 0);
  ck_assert_int_eq (set ("name", "v2"), 0);
  ck_assert_int_eq (set ("lock", "on"), 0);
  ck_assert_int_eq (set ("deadline", "7"), 0);
  ck_assert_int_eq (set ("on-partner-loss", "freeze"), 0);
  if (_i == 1)
    ck_assert_int_eq (set ("config", file), 0);
  ck_assert_int_eq (check (), 0);
  ck_assert_uint_eq (p.size, 2 << 20);
  ck_assert_str_eq (p.volume, "v2");
  ck_assert_str_eq (p.node, "b");
  ck_assert_str_eq (p.control, "/run/twinlog/v2.ctl");
  ck_assert (p.lock);
  ck_assert_uint_eq (p.deadline, 7000000);
  ck_assert_int_eq (p.policy, TL_POLICY_FREEZE);
}
END_TEST

static const struct {
  const char *text, *error;
} bad_files[] = {
    {"size = 1M\ncolour = red\n",
     "%s:2: unknown parameter \"colour\"; there are size, name, node, listen, "
     "peer, control, state, store, lock, flush, on-partner-loss, arbiter, "
     "deadline, reads, auto-promote, resync-rate, compress, mptcp, notify"},
    {"config = /x\n",
     "%s:1: unknown parameter \"config\"; there are size, name, node, listen, "
     "peer, control, state, store, lock, flush, on-partner-loss, arbiter, "
     "deadline, reads, auto-promote, resync-rate, compress, mptcp, notify"},
    {"node = a\n\nnode = b\n", "%s:3: node=b: given twice, line 1 says node=a"},
    {"node = a\nnonsense\n", "%s:2: expected KEY = VALUE"},
    {"[open\n", "%s:1: expected KEY = VALUE"},
    {"nonsense\ncolour = red\n", "%s:1: expected KEY = VALUE"},
    {"nonsense\nnode = a", "%s:1: expected KEY = VALUE"},
    {"size = 5000\nnonsense\n",
     "%s:1: size=5000: the size must be a multiple of 4096 bytes"},
    {"size =\n", "%s:1: size=: the value is empty"},
    {"name = a b\n", "%s:1: name=a b: " NAME_ALLOWED},
    /* An indented line is a line of its own. */
    {"name = v1\n  colour = red\n",
     "%s:2: unknown parameter \"colour\"; there are size, name, node, listen, "
     "peer, control, state, store, lock, flush, on-partner-loss, arbiter, "
     "deadline, reads, auto-promote, resync-rate, compress, mptcp, notify"},
    {"name = a\001b\n", "%s:1: name=: the value holds a control character"},
};

START_TEST (test_bad_file)
{
  write_file (bad_files[_i].text);
  ck_assert_int_eq (set ("config", file), -1);
  expect (bad_files[_i].error);
}
END_TEST

START_TEST (test_long_line)
{
  char text[400] = "node = a\narbiter = ";

  memset (text + strlen (text), 'x', 300);
  write_file (text);
  ck_assert_int_eq (set ("config", file), -1);
  expect ("%s:2: the line is longer than 197 bytes or is not text");
}
END_TEST

START_TEST (test_longest_line)
{
  char text[300] = "arbiter = ";

  memset (text + 10, 'x', 187);
  text[197] = '\n';
  write_file (text);
  ck_assert_int_eq (set ("config", file), 0);
  set_required ();
  ck_assert_int_eq (check (), 0);
  ck_assert_uint_eq (strlen (p.arbiter), 187);
}
END_TEST

START_TEST (test_binary_file)
{
  write_bytes ("node = a\n\0\0name = b\n", 20);
  ck_assert_int_eq (set ("config", file), -1);
  expect ("%s:2: the line is longer than 197 bytes or is not text");
}
END_TEST

START_TEST (test_binary_end)
{
  write_bytes ("node = a\0b", 10);
  ck_assert_int_eq (set ("config", file), -1);
  expect ("%s:1: the line is longer than 197 bytes or is not text");
}
END_TEST

/* ---- Contradictions ---- */

static const struct {
  const char *text, *key, *value, *error;
} contradictions[] = {
    {"", "on-partner-loss", "arbiter",
     "on-partner-loss=arbiter needs an arbiter; give arbiter=COMMAND"},
    {"on-partner-loss = arbiter\n", "lock", "on",
     "on-partner-loss=arbiter (%s:1) needs an arbiter; give arbiter=COMMAND"},
    {"\narbiter = /x y\n", "on-partner-loss", "continue",
     "on-partner-loss=continue contradicts arbiter=/x y (%s:2): a node that "
     "goes "
     "on unasked makes an arbiter useless; leave one of them out"},
    {"control = /x\n", "state", "/x",
     "control=/x (%s:1) and state=/x are one file; each needs its own"},
    {"store = /x\n", "state", "/x",
     "state=/x and store=/x (%s:1) are one file; each needs its own"},
    {"store = x\n", "control", "/cwd/x",
     "control=/cwd/x and store=x (%s:1) are one file; each needs its own"},
};

START_TEST (test_contradiction)
{
  write_file (contradictions[_i].text);
  ck_assert_int_eq (set ("config", file), 0);
  ck_assert_int_eq (set (contradictions[_i].key, contradictions[_i].value), 0);
  set_required ();
  ck_assert_int_eq (check (), -1);
  expect (contradictions[_i].error);
}
END_TEST

START_TEST (test_own_address)
{
  ck_assert_int_eq (set ("size", "8G"), 0);
  ck_assert_int_eq (set ("name", "slog0"), 0);
  ck_assert_int_eq (set ("node", "a"), 0);
  ck_assert_int_eq (set ("listen", "10.0.0.1:10810"), 0);
  ck_assert_int_eq (set ("peer", "10.0.0.1:10810"), 0);
  ck_assert_int_eq (check (), -1);
  expect ("peer=10.0.0.1:10810 is this node's own address, "
          "listen=10.0.0.1:10810; give that of the other node");
}
END_TEST

#define N(array) (int)(sizeof (array) / sizeof (array)[0])

int
main (void)
{
  Suite *suite = suite_create ("parameters");
  TCase *tcase = tcase_create ("parameters");
  SRunner *runner;
  int failed;

  tcase_add_checked_fixture (tcase, setup, teardown);
  tcase_add_test (tcase, test_defaults);
  tcase_add_test (tcase, test_arbiter_makes_the_policy);
  tcase_add_loop_test (tcase, test_size, 0, N (sizes));
  tcase_add_loop_test (tcase, test_deadline, 0, N (deadlines));
  tcase_add_test (tcase, test_words);
  tcase_add_loop_test (tcase, test_wrong_value, 0, N (wrong));
  tcase_add_loop_test (tcase, test_wrong_value_in_file, 0, N (wrong));
  tcase_add_loop_test (tcase, test_missing, 0, 5);
  tcase_add_test (tcase, test_same_value_twice);
  tcase_add_test (tcase, test_other_value_twice);
  tcase_add_test (tcase, test_two_files);
  tcase_add_test (tcase, test_file);
  tcase_add_loop_test (tcase, test_command_line_wins, 0, 2);
  tcase_add_loop_test (tcase, test_bad_file, 0, N (bad_files));
  tcase_add_test (tcase, test_long_line);
  tcase_add_test (tcase, test_longest_line);
  tcase_add_test (tcase, test_binary_file);
  tcase_add_test (tcase, test_binary_end);
  tcase_add_loop_test (tcase, test_contradiction, 0, N (contradictions));
  tcase_add_test (tcase, test_own_address);
  suite_add_tcase (suite, tcase);
  runner = srunner_create (suite);
  srunner_run_all (runner, CK_NORMAL);
  failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
