/* The parts of the `twinlog` command: its arguments, the states that `wait`
 * knows, what `status` shows, and a node that does not answer as it should.
 * The last needs a false node, since a real one answers.
 */
#include "arguments.h"
#include "commands.h"
#include "control.h"
#include "show.h"
#include "wait.h"
#include "watch.h"

#include "core/core.h"

#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define N(array) (int)(sizeof (array) / sizeof (array)[0])

/* ---- Arguments ---- */

static struct arguments arguments;
static char error[1024];

/* LINE is split at blanks; its words live until the next call. */
static int
parse (const char *line)
{
  static char words[512];
  char *argv[32] = {"twinlog"}, *save = NULL;
  int argc = 1;

  snprintf (words, sizeof words, "%s", line);
  for (char *word = strtok_r (words, " ", &save); word;
       word = strtok_r (NULL, " ", &save))
    argv[argc++] = word;
  argv[argc] = NULL;
  error[0] = '\0';
  return arguments_parse (&arguments, argc, argv, error, sizeof error);
}

static const struct {
  const char *line, *error;
} wrong[] = {
    {"", "a command is missing; see twinlog --help"},
    {"--control /x", "a command is missing; see twinlog --help"},
    {"explode", "unknown command \"explode\"; see twinlog --help"},
    {"Status", "unknown command \"Status\"; see twinlog --help"},
    {"status --jsonx", "unknown option --jsonx; see twinlog --help"},
    {"status --js", "unknown option --js; see twinlog --help"},
    {"status -j", "unknown option -j; see twinlog --help"},
    {"status -", "unknown option -; see twinlog --help"},
    {"status --=x", "unknown option --=x; see twinlog --help"},
    {"status --json=1", "--json takes no value"},
    {"status --force", "status takes no --force; see twinlog status --help"},
    {"create --fenced", "create takes no --fenced; see twinlog create --help"},
    {"demote --alone", "demote takes no --alone; see twinlog demote --help"},
    {"promote --timeout 3",
     "promote takes no --timeout; see twinlog promote --help"},
    {"status a b", "one volume, not two: \"a\" and \"b\""},
    {"status ../a", "\"../a\" is not the name of a volume"},
    {"status -- --json", "\"--json\" is not the name of a volume"},
    {"status --control", "--control needs a value: --control PATH"},
    {"status --control=", "--control needs a value: --control PATH"},
    {"status --control --json", "--control needs a value: --control PATH"},
    {"status --control a --control b", "--control is given twice: a and b"},
    {"promote --force", "--force demands that the volume is named: twinlog "
                        "promote VOLUME --force"},
    {"promote --force --control /x", "--force demands that the volume is "
                                     "named: twinlog promote VOLUME --force"},
    {"degrade", "degrade needs --fenced: twinlog degrade [VOLUME] --fenced"},
    {"attach --alone", "attach takes no --alone; see twinlog attach --help"},
    {"attach --device sda", "--device sda: expected /dev/nbdN"},
    {"attach --device /dev/nbd", "--device /dev/nbd: expected /dev/nbdN"},
    {"attach --device /dev/nbd1p1", "--device /dev/nbd1p1: expected /dev/nbdN"},
    {"detach --device /dev/nbd9999999",
     "--device /dev/nbd9999999: expected /dev/nbdN"},
    {"attach --reconnect 0", "--reconnect 0: expected seconds from 1 to 86400"},
    {"attach --reconnect 1.5",
     "--reconnect 1.5: expected seconds from 1 to 86400"},
    {"attach --reconnect 86401",
     "--reconnect 86401: expected seconds from 1 to 86400"},
    {"detach --reconnect 5",
     "detach takes no --reconnect; see twinlog detach --help"},
    {"wait --timeout 1",
     "wait needs --for: twinlog wait [VOLUME] --for STATE --timeout S"},
    {"wait --for Primary",
     "wait needs --timeout: twinlog wait [VOLUME] --for STATE --timeout S"},
    {"wait --for Primary --timeout -1",
     "--timeout -1: expected seconds from 0 to 1000000"},
    {"wait --for Primary --timeout 1s",
     "--timeout 1s: expected seconds from 0 to 1000000"},
    {"wait --for Primary --timeout .",
     "--timeout .: expected seconds from 0 to 1000000"},
    {"wait --for Primary --timeout 1.2.3",
     "--timeout 1.2.3: expected seconds from 0 to 1000000"},
    {"wait --for Primary --timeout 1000001",
     "--timeout 1000001: expected seconds from 0 to 1000000"},
    {"wait --for Primary --timeout nan",
     "--timeout nan: expected seconds from 0 to 1000000"},
    {"wait --for primary --timeout 1",
     "--for primary: expected Primary Secondary UpToDate Consistent Outdated "
     "Inconsistent Empty StandAlone Connecting Connected SyncSource "
     "SyncTarget, "
     "or peer: with a role or disk-state"},
    {"wait --for peer:Connected --timeout 1",
     "--for peer:Connected: expected Primary Secondary UpToDate Consistent "
     "Outdated Inconsistent Empty StandAlone Connecting Connected SyncSource "
     "SyncTarget, or peer: with a role or disk-state"},
};

START_TEST (test_wrong_arguments)
{
  ck_assert_int_eq (parse (wrong[_i].line), -1);
  ck_assert_str_eq (error, wrong[_i].error);
}
END_TEST

START_TEST (test_options_anywhere)
{
  static const char *const lines[] = {
      "--control /x promote slog0 --fenced --force",
      "--fenced --force promote --control=/x slog0",
      "promote --force slog0 --control /x --fenced --fenced",
      "--force --control /x --control /x --fenced promote -- slog0",
  };

  for (int i = 0; i < N (lines); i++) {
    ck_assert_int_eq (parse (lines[i]), 0);
    ck_assert_str_eq (arguments.command->name, "promote");
    ck_assert_str_eq (arguments.volume, "slog0");
    ck_assert_str_eq (arguments.value[OPTION_CONTROL], "/x");
    ck_assert (arguments.given[OPTION_FENCED]);
    ck_assert (arguments.given[OPTION_FORCE]);
    ck_assert (!arguments.given[OPTION_JSON]);
  }
}
END_TEST

START_TEST (test_every_command)
{
  static const struct {
    const char *line, *name;
  } lines[] = {{"status", "status"},
               {"status --json", "status"},
               {"create", "create"},
               {"create --alone v", "create"},
               {"promote", "promote"},
               {"demote --disconnect", "demote"},
               {"degrade --fenced", "degrade"},
               {"wait --for Primary --timeout 0", "wait"}};

  for (int i = 0; i < N (lines); i++) {
    ck_assert_int_eq (parse (lines[i].line), 0);
    ck_assert_str_eq (arguments.command->name, lines[i].name);
  }
}
END_TEST

START_TEST (test_timeout)
{
  static const struct {
    const char *line;
    unsigned timeout;
  } lines[] = {{"wait --for Primary --timeout 0", 0},
               {"wait --for Primary --timeout 0.25", 250},
               {"wait --for Primary --timeout=30", 30000},
               {"wait --for Primary --timeout 1000000", 1000000000}};

  for (int i = 0; i < N (lines); i++) {
    ck_assert_int_eq (parse (lines[i].line), 0);
    ck_assert_uint_eq (arguments.timeout, lines[i].timeout);
  }
}
END_TEST

START_TEST (test_help_wins)
{
  ck_assert_int_eq (parse ("--help"), 0);
  ck_assert_ptr_null (arguments.command);
  ck_assert (arguments.given[OPTION_HELP]);
  ck_assert_int_eq (parse ("wait -h"), 0);
  ck_assert_str_eq (arguments.command->name, "wait");
  ck_assert (arguments.given[OPTION_HELP]);
  ck_assert_int_eq (parse ("--version"), 0);
  ck_assert (arguments.given[OPTION_VERSION]);
}
END_TEST

/* ---- States ---- */

static json_t *
load (const char *text)
{
  json_t *json = json_loads (text, 0, NULL);

  ck_assert_ptr_nonnull (json);
  return json;
}

START_TEST (test_states)
{
  static const struct {
    const char *state;
    bool there;
  } states[] = {{"Secondary", true},     {"Primary", false},
                {"peer:Primary", true},  {"peer:Secondary", false},
                {"Inconsistent", true},  {"UpToDate", false},
                {"peer:UpToDate", true}, {"peer:Inconsistent", false},
                {"SyncTarget", true},    {"Connected", false},
                {"peer:Unknown", false}, {"peer:DUnknown", false}};
  json_t *node =
      load ("{\"role\":\"Secondary\",\"peer-role\":\"Primary\","
            "\"disk-state\":\"Inconsistent\",\"peer-disk-state\":\"UpToDate\","
            "\"connection-state\":\"SyncTarget\"}");
  json_t *none = load ("{\"role\":7}");

  for (int i = 0; i < N (states); i++) {
    ck_assert_int_eq (wait_check_state (states[i].state, error, sizeof error),
                      0);
    ck_assert_int_eq (wait_matches (node, states[i].state), states[i].there);
    ck_assert (!wait_matches (none, states[i].state));
  }
  json_decref (node);
  json_decref (none);
}
END_TEST

START_TEST (test_not_a_state)
{
  static const char *const words[] = {
      "",         "peer:",   "peer:peer:Primary",
      "DUnknown", "Unknown", "peer:SyncSource",
      "role"};

  for (int i = 0; i < N (words); i++)
    ck_assert_int_eq (wait_check_state (words[i], error, sizeof error), -1);
}
END_TEST

/* ---- What status shows ---- */

static const struct {
  const char *json, *text;
} shown[] = {
    {"{\"name\":\"slog0\",\"node\":\"a\",\"role\":\"Primary\",\"size\":"
     "67108864,"
     "\"disk-state\":\"UpToDate\",\"connection-state\":\"Connected\","
     "\"peer-node\":\"b\",\"peer-role\":\"Secondary\","
     "\"peer-disk-state\":\"UpToDate\",\"view\":{\"number\":3,\"primary\":"
     "\"a\","
     "\"members\":[\"a\",\"b\"]},\"copies\":2,\"suspended\":false,"
     "\"may-promote\":false,\"clients\":1,\"ap-in-flight\":16,"
     "\"counters\":{\"failed\":0},"
     "\"latency-us\":{\"write\":{\"p50\":45,\"p99\":120},"
     "\"read\":{\"p50\":0,\"p99\":0}},\"trouble\":\"\","
     "\"disconnect-reason\":\"\",\"seconds-since-change\":12.4,"
     "\"seconds-since-peer\":0.2}",
     "slog0 node:a role:Primary size:64MiB\n"
     "  disk:UpToDate copies:2 view:3 (primary a, members a b)\n"
     "  b connection:Connected role:Secondary disk:UpToDate\n"
     "  clients:1 in-flight:16 write-p50:45us write-p99:120us\n"
     "  last change 12 s ago, last word from the peer 0.2 s ago\n"},
    {"{\"name\":\"slog0\",\"node\":\"a\",\"role\":\"Primary\",\"size\":"
     "67108864,"
     "\"disk-state\":\"UpToDate\",\"connection-state\":\"SyncSource\","
     "\"peer-node\":\"b\",\"peer-role\":\"Secondary\","
     "\"peer-disk-state\":\"Inconsistent\",\"view\":{\"number\":4,"
     "\"primary\":\"a\",\"members\":[\"a\"]},\"copies\":1,\"suspended\":true,"
     "\"suspended-reason\":\"the arbiter\\ndoes not answer\","
     "\"out-of-sync\":38839255,\"percent-in-sync\":42.1,"
     "\"estimated-seconds-to-finish\":12,\"clients\":0,\"ap-in-flight\":0,"
     "\"counters\":{\"failed\":3},\"trouble\":\"state file: disk full\","
     "\"disconnect-reason\":\"connection reset\","
     "\"seconds-since-change\":7201,\"seconds-since-peer\":0}",
     "slog0 node:a role:Primary size:64MiB\n"
     "  disk:UpToDate copies:1 view:4 (primary a, member a)\n"
     "  ONE COPY ONLY: what is acknowledged is lost if this node fails now\n"
     "  b connection:SyncSource role:Secondary disk:Inconsistent\n"
     "    resync done:42.10% left:37MiB eta:12 s\n"
     "  clients:0 in-flight:0 failed:3\n"
     "  suspended: the arbiter?does not answer\n"
     "  trouble: state file: disk full\n"
     "  last change 2 h ago, last word from the peer 0.0 s ago\n"
     "  last disconnect: connection reset\n"},
    {"{\"name\":\"v\",\"node\":\"b\",\"role\":\"Secondary\",\"size\":4096,"
     "\"disk-state\":\"Empty\",\"connection-state\":\"Connecting\","
     "\"peer-node\":null,\"peer-role\":\"Unknown\","
     "\"peer-disk-state\":\"DUnknown\",\"view\":{\"number\":0,\"primary\":\"\","
     "\"members\":[]},\"copies\":0,\"may-promote\":false,"
     "\"may-promote-reason\":\"the volume was never created\","
     "\"seconds-since-change\":1.25,\"seconds-since-peer\":null}",
     "v node:b role:Secondary size:4.0KiB\n"
     "  disk:Empty copies:0 view:none (not created yet)\n"
     "  peer connection:Connecting\n"
     "  may-promote:no (the volume was never created)\n"
     "  last change 1.2 s ago\n"},
    {"{\"name\":\"v\",\"node\":\"b\",\"role\":\"Secondary\",\"size\":4096,"
     "\"disk-state\":\"Outdated\",\"connection-state\":\"StandAlone\","
     "\"peer-node\":\"a\",\"peer-role\":\"Unknown\","
     "\"view\":{\"number\":2,\"primary\":\"a\",\"members\":[\"a\",\"b\"]},"
     "\"copies\":1,\"may-promote\":true,\"seconds-since-change\":500}",
     "v node:b role:Secondary size:4.0KiB\n"
     "  disk:Outdated copies:1 view:2 (primary a, members a b)\n"
     "  ONE COPY ONLY: what is acknowledged is lost if the other node fails "
     "now\n"
     "  a connection:StandAlone\n"
     "  may-promote:yes\n"
     "  last change 8 min ago\n"},
    {"{\"name\":\"v\",\"node\":\"b\",\"role\":\"Secondary\",\"size\":4096,"
     "\"disk-state\":\"Consistent\",\"connection-state\":\"Connecting\","
     "\"peer-node\":\"a\",\"peer-role\":\"Unknown\","
     "\"view\":{\"number\":2,\"primary\":\"a\",\"members\":[\"a\",\"b\"]},"
     "\"copies\":1,\"may-promote\":false,\"may-promote-reason\":\"x\","
     "\"seconds-since-change\":400000}",
     "v node:b role:Secondary size:4.0KiB\n"
     "  disk:Consistent copies:1 view:2 (primary a, members a b)\n"
     "  ONE COPY IN REACH, this node's: the other node may have newer data\n"
     "  a connection:Connecting\n"
     "  may-promote:no (x)\n"
     "  last change 5 days ago\n"},
    {"{\"name\":\"v\",\"node\":\"b\",\"role\":\"Secondary\",\"size\":4096,"
     "\"disk-state\":\"Empty\",\"connection-state\":\"Connecting\","
     "\"view\":{\"number\":2,\"primary\":\"a\",\"members\":[\"a\",\"b\"]},"
     "\"peer-node\":\"a\",\"peer-role\":\"Unknown\",\"copies\":0}",
     "v node:b role:Secondary size:4.0KiB\n"
     "  disk:Empty copies:0 view:2 (primary a, members a b)\n"
     "  NO COPY IN REACH: no node that this one can see holds every "
     "acknowledged write\n"
     "  a connection:Connecting\n"
     "  may-promote:no\n"
     "  last change 0.0 s ago\n"},
};

START_TEST (test_show)
{
  json_t *node = load (shown[_i].json);
  char *text;
  size_t size;
  FILE *stream = open_memstream (&text, &size);

  show_status (node, stream);
  fclose (stream);
  ck_assert_str_eq (text, shown[_i].text);
  free (text);
  json_decref (node);
}
END_TEST

/* Nothing that a node may leave out or garble brings the command down. */
START_TEST (test_show_anything)
{
  static const char *const nodes[] = {
      "{}", "{\"role\":[],\"view\":7,\"copies\":\"x\",\"name\":{}}",
      "{\"view\":{\"number\":1,\"members\":[1,null]},\"latency-us\":[]}"};

  for (int i = 0; i < N (nodes); i++) {
    json_t *node = load (nodes[i]);
    char *text;
    size_t size;
    FILE *stream = open_memstream (&text, &size);

    show_status (node, stream);
    fclose (stream);
    ck_assert_ptr_nonnull (strstr (text, "last change"));
    free (text);
    json_decref (node);
  }
}
END_TEST

/* ---- Finding and asking a node ---- */

static char directory[64];
static char path[CONTROL_PATH_SIZE];

static void
setup (void)
{
  strcpy (directory, "/tmp/twinlog-client-XXXXXX");
  ck_assert_ptr_nonnull (mkdtemp (directory));
  error[0] = '\0';
}

static void
remove_file (const char *name)
{
  char file[128];

  snprintf (file, sizeof file, "%s/%s", directory, name);
  unlink (file);
}

static void
teardown (void)
{
  remove_file ("a.ctl");
  remove_file ("b.ctl");
  remove_file ("other");
  ck_assert_int_eq (rmdir (directory), 0);
}

static void
touch (const char *name)
{
  char file[128];
  int fd;

  snprintf (file, sizeof file, "%s/%s", directory, name);
  fd = open (file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  ck_assert_int_ge (fd, 0);
  close (fd);
}

static int
find (const char *control, const char *volume)
{
  return control_find (directory, control, volume, path, error, sizeof error);
}

START_TEST (test_find)
{
  char expected[256];

  ck_assert_int_eq (find ("/x/y", "v"), TL_DONE);
  ck_assert_str_eq (path, "/x/y");
  ck_assert_int_eq (find (NULL, "v"), TL_DONE);
  snprintf (expected, sizeof expected, "%s/v.ctl", directory);
  ck_assert_str_eq (path, expected);

  touch ("other");
  ck_assert_int_eq (find (NULL, NULL), TL_UNREACHABLE);
  snprintf (expected, sizeof expected,
            "no node runs here: there is no %s/*.ctl; is nbdkit running, or "
            "is --control needed?",
            directory);
  ck_assert_str_eq (error, expected);

  touch ("b.ctl");
  ck_assert_int_eq (find (NULL, NULL), TL_DONE);
  snprintf (expected, sizeof expected, "%s/b.ctl", directory);
  ck_assert_str_eq (path, expected);

  touch ("a.ctl");
  ck_assert_int_eq (find (NULL, NULL), TL_USAGE);
  ck_assert_str_eq (error, "there are several volumes here, name one: a, b");
}
END_TEST

/* A node that reads one request, says REPLY and then closes, or where CLOSES
 * is not set waits for the client to do so.
 */
struct false_node {
  int listener;
  const char *reply;
  bool closes;
  char request[256];
  pthread_t thread;
};

static void *
serve (void *opaque)
{
  struct false_node *node = opaque;
  int fd = accept4 (node->listener, NULL, NULL, SOCK_CLOEXEC);
  char rest[64];
  ssize_t n;

  n = recv (fd, node->request, sizeof node->request - 1, 0);
  node->request[n > 0 ? n : 0] = '\0';
  if (send (fd, node->reply, strlen (node->reply), MSG_NOSIGNAL) == -1 ||
      node->closes)
    shutdown (fd, SHUT_RDWR);
  while (recv (fd, rest, sizeof rest, 0) > 0)
    continue;
  close (fd);
  return NULL;
}

static void
start (struct false_node *node)
{
  struct sockaddr_un address = {.sun_family = AF_UNIX};

  snprintf (path, sizeof path, "%s/a.ctl", directory);
  strcpy (address.sun_path, path);
  node->listener = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ck_assert_int_eq (
      bind (node->listener, (struct sockaddr *)&address, sizeof address), 0);
  ck_assert_int_eq (listen (node->listener, 1), 0);
  ck_assert_int_eq (pthread_create (&node->thread, NULL, serve, node), 0);
}

static void
stop (struct false_node *node)
{
  pthread_join (node->thread, NULL);
  close (node->listener);
}

static int
ask (json_t **answer, unsigned timeout)
{
  json_t *request = json_pack ("{s:s}", "command", "status");
  int status =
      control_ask (path, request, timeout, answer, error, sizeof error);

  json_decref (request);
  return status;
}

/* ERROR is EXPECTED, where %s stands for the path of the socket. */
static void
expect (const char *expected)
{
  const char *mark = strstr (expected, "%s");
  char text[CONTROL_PATH_SIZE + 256];

  snprintf (text, sizeof text, "%.*s%s%s", (int)(mark - expected), expected,
            path, mark + 2);
  ck_assert_str_eq (error, text);
}

START_TEST (test_answer)
{
  struct false_node node = {
      .reply = "{\"status\":3,\"text\":\"refused\"}\n{\"status\":0}\n"};
  json_t *answer;

  start (&node);
  ck_assert_int_eq (ask (&answer, 5000), TL_DONE);
  stop (&node);
  ck_assert_str_eq (node.request, "{\"command\":\"status\"}\n");
  ck_assert_int_eq (json_integer_value (json_object_get (answer, "status")), 3);
  ck_assert_str_eq (json_string_value (json_object_get (answer, "text")),
                    "refused");
  json_decref (answer);
}
END_TEST

#define NOT_UNDERSTOOD                                                         \
  "the answer of the node at %s is not understood; is it a node of twinlog, "  \
  "of this version?"
#define CLOSED "the node at %s closed the connection without an answer"

static const struct {
  const char *reply;
  bool closes;
  int status;
  const char *error;
} replies[] = {
    {"", false, TL_TIMED_OUT, "no answer from the node at %s in time"},
    {"{\"status\":0", false, TL_TIMED_OUT,
     "no answer from the node at %s in time"},
    {"", true, TL_UNREACHABLE, CLOSED},
    {"{\"status\":0", true, TL_UNREACHABLE, CLOSED},
    {"\n", false, TL_FAILED, NOT_UNDERSTOOD},
    {"garbage\n", false, TL_FAILED, NOT_UNDERSTOOD},
    {"\xff\xfe\n", false, TL_FAILED, NOT_UNDERSTOOD},
    {"[]\n", false, TL_FAILED, NOT_UNDERSTOOD},
    {"{}\n", false, TL_FAILED, NOT_UNDERSTOOD},
    {"{\"status\":\"0\"}\n", false, TL_FAILED, NOT_UNDERSTOOD},
    {"{\"status\":0.0}\n", false, TL_FAILED, NOT_UNDERSTOOD},
    {"{\"status\":6}\n", false, TL_FAILED, NOT_UNDERSTOOD},
    {"{\"status\":-1}\n", false, TL_FAILED, NOT_UNDERSTOOD},
    {"{\"status\":0,\"status\":1}\n", false, TL_FAILED, NOT_UNDERSTOOD},
    {"{\"status\":0} x\n", false, TL_FAILED, NOT_UNDERSTOOD},
};

START_TEST (test_bad_answer)
{
  struct false_node node = {.reply = replies[_i].reply,
                            .closes = replies[_i].closes};
  json_t *answer;

  start (&node);
  ck_assert_int_eq (
      ask (&answer, replies[_i].status == TL_TIMED_OUT ? 200 : 5000),
      replies[_i].status);
  stop (&node);
  ck_assert_ptr_null (answer);
  expect (replies[_i].error);
}
END_TEST

START_TEST (test_endless_answer)
{
  struct false_node node = {0};
  char *reply = malloc ((2 << 20) + 1);
  json_t *answer;

  memset (reply, 'x', 2 << 20);
  reply[2 << 20] = '\0';
  node.reply = reply;
  start (&node);
  ck_assert_int_eq (ask (&answer, 5000), TL_FAILED);
  stop (&node);
  free (reply);
  expect ("the answer of the node at %s is longer than 1048576 bytes");
}
END_TEST

START_TEST (test_no_node)
{
  json_t *answer;

  snprintf (path, sizeof path, "%s/a.ctl", directory);
  ck_assert_int_eq (ask (&answer, 200), TL_UNREACHABLE);
  expect ("no node at %s; is nbdkit running?");
  touch ("a.ctl");
  ck_assert_int_eq (ask (&answer, 200), TL_UNREACHABLE);
  expect ("the node at %s has ended; nobody listens there");
}
END_TEST

START_TEST (test_long_path)
{
  json_t *answer;

  memset (path, 'x', 108);
  path[108] = '\0';
  ck_assert_int_eq (ask (&answer, 200), TL_USAGE);
  expect ("%s: the path of a socket has at most 107 bytes");
}
END_TEST

/* Nobody accepts and the queue is full: connecting is bounded too. */
START_TEST (test_full_queue)
{
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int listener, fds[8], n = 0;
  json_t *answer;

  snprintf (path, sizeof path, "%s/a.ctl", directory);
  strcpy (address.sun_path, path);
  listener = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ck_assert_int_eq (
      bind (listener, (struct sockaddr *)&address, sizeof address), 0);
  ck_assert_int_eq (listen (listener, 0), 0);
  for (n = 0; n < N (fds); n++) {
    fds[n] = socket (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (connect (fds[n], (struct sockaddr *)&address, sizeof address) == -1)
      break;
  }
  ck_assert_int_lt (n, N (fds));
  ck_assert_int_eq (ask (&answer, 200), TL_TIMED_OUT);
  expect ("the node at %s lets nobody in");
  for (int i = 0; i <= n; i++)
    close (fds[i]);
  close (listener);
}
END_TEST

/* Is a change of NODE at KEY to VALUE, which is used up, of note? */
static bool
of_note (const char *key, json_t *value)
{
  json_t *before = json_pack (
      "{s:s,s:s,s:i,s:f,s:f}", "role", "Primary", "peer-role", "Secondary",
      "copies", 2, "percent-in-sync", 41.0, "seconds-since-change", 1.0);
  json_t *after = json_copy (before), *a, *b;
  bool changed;

  json_object_set_new (after, key, value);
  a = watch_facts (before);
  b = watch_facts (after);
  changed = !json_equal (a, b);
  json_decref (a);
  json_decref (b);
  json_decref (before);
  json_decref (after);
  return changed;
}

START_TEST (test_watch)
{
  ck_assert (of_note ("role", json_string ("Secondary")));
  ck_assert (of_note ("peer-role", json_string ("Unknown")));
  ck_assert (of_note ("copies", json_integer (1)));
  ck_assert (of_note ("percent-in-sync", json_real (55.0)));
  ck_assert (!of_note ("percent-in-sync", json_real (44.0)));
  ck_assert (!of_note ("seconds-since-change", json_real (9.0)));
}
END_TEST

int
main (void)
{
  Suite *suite = suite_create ("client");
  TCase *words = tcase_create ("words"), *node = tcase_create ("node");
  SRunner *runner;
  int failed;

  tcase_add_loop_test (words, test_wrong_arguments, 0, N (wrong));
  tcase_add_test (words, test_options_anywhere);
  tcase_add_test (words, test_every_command);
  tcase_add_test (words, test_timeout);
  tcase_add_test (words, test_help_wins);
  tcase_add_test (words, test_states);
  tcase_add_test (words, test_not_a_state);
  tcase_add_loop_test (words, test_show, 0, N (shown));
  tcase_add_test (words, test_show_anything);
  tcase_add_test (words, test_watch);
  suite_add_tcase (suite, words);

  tcase_add_checked_fixture (node, setup, teardown);
  tcase_set_timeout (node, 20);
  tcase_add_test (node, test_find);
  tcase_add_test (node, test_answer);
  tcase_add_loop_test (node, test_bad_answer, 0, N (replies));
  tcase_add_test (node, test_endless_answer);
  tcase_add_test (node, test_no_node);
  tcase_add_test (node, test_long_path);
  tcase_add_test (node, test_full_queue);
  suite_add_tcase (suite, node);

  runner = srunner_create (suite);
  srunner_run_all (runner, CK_NORMAL);
  failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
