#include "net/net.h"

#include "unit.h"

#include <signal.h>

#define SECOND 1000000

static struct tl_arbiter arbiter;

static void
fill (bool create)
{
  pthread_mutex_init (&arbiter.child_lock, NULL);
  arbiter.asking.create = create;
  arbiter.asking.uuid.bytes[0] = 0xab;
  arbiter.asking.before.number = 1;
  arbiter.asking.before.id = 11;
  strcpy (arbiter.asking.before.primary, "a");
  arbiter.asking.before.n_members = 2;
  strcpy (arbiter.asking.before.members[0], "a");
  strcpy (arbiter.asking.before.members[1], "b");
  arbiter.asking.after = arbiter.asking.before;
  arbiter.asking.after.number = 2;
  arbiter.asking.after.id = 12;
  arbiter.asking.after.parent = 11;
}

/* A command that runs SCRIPT with the arguments that the arbiter gets. */
static const char *
command (const char *script)
{
  static char text[PATH_MAX + 8];

  unit_file ("arbiter", script);
  snprintf (text, sizeof text, "sh %s", unit_path ("arbiter"));
  return text;
}

static void
run (const char *script)
{
  arbiter.reason[0] = '\0';
  tl_arbiter_run (&arbiter, command (script), "slog0", 20 * SECOND);
  ck_assert_int_eq (arbiter.child, 0);
}

/* The records arrive whole, as arguments, in their order. */
START_TEST (done)
{
  char before[TL_VIEW_TEXT], after[TL_VIEW_TEXT], script[2048];

  fill (false);
  tl_view_format (&arbiter.asking.uuid, &arbiter.asking.before, before);
  tl_view_format (&arbiter.asking.uuid, &arbiter.asking.after, after);
  snprintf (script, sizeof script,
            "[ $# = 4 ] && [ \"$1 $2 $3 $4\" = 'cas slog0 %s %s' ] || exit 9\n"
            "exit 0\n",
            before, after);
  run (script);
  ck_assert_msg (arbiter.result == TL_ANSWER_DONE, "%s", arbiter.reason);
}
END_TEST

START_TEST (create_swaps_from_none)
{
  fill (true);
  run ("[ \"$3\" = none ] || exit 9\nexit 0\n");
  ck_assert_msg (arbiter.result == TL_ANSWER_DONE, "%s", arbiter.reason);
}
END_TEST

START_TEST (lost_with_the_record_that_stands)
{
  char stands[TL_VIEW_TEXT], script[1024];

  fill (false);
  tl_view_format (&arbiter.asking.uuid, &arbiter.asking.after, stands);
  snprintf (script, sizeof script, "echo '%s'\nexit 1\n", stands);
  run (script);
  ck_assert_msg (arbiter.result == TL_ANSWER_LOST, "%s", arbiter.reason);
  ck_assert (arbiter.known);
  ck_assert (tl_view_equal (&arbiter.view, &arbiter.asking.after));
  ck_assert (tl_uuid_equal (&arbiter.uuid, &arbiter.asking.uuid));
}
END_TEST

START_TEST (lost_to_nothing)
{
  fill (false);
  run ("echo\nexit 1\n");
  ck_assert_int_eq (arbiter.result, TL_ANSWER_LOST);
  ck_assert (!arbiter.known);
}
END_TEST

START_TEST (what_is_no_record_is_unknown)
{
  fill (false);
  run ("echo rubbish\nexit 1\n");
  ck_assert_int_eq (arbiter.result, TL_ANSWER_UNKNOWN);
  assert_says (arbiter.reason, "no record");
  run ("head -c 100000 /dev/zero | tr '\\0' x\nexit 1\n");
  ck_assert_int_eq (arbiter.result, TL_ANSWER_UNKNOWN);
  assert_says (arbiter.reason, "no record");
}
END_TEST

START_TEST (other_ends_are_unknown_with_a_reason)
{
  fill (false);
  run ("exit 7\n");
  ck_assert_int_eq (arbiter.result, TL_ANSWER_UNKNOWN);
  assert_says (arbiter.reason, "status 7");
  run ("echo 'no quorum' >&2\necho more >&2\nexit 2\n");
  ck_assert_int_eq (arbiter.result, TL_ANSWER_UNKNOWN);
  ck_assert_str_eq (arbiter.reason, "no quorum");
  run ("kill -TERM $$\n");
  ck_assert_int_eq (arbiter.result, TL_ANSWER_UNKNOWN);
  assert_says (arbiter.reason, "signal 15");
  tl_arbiter_run (&arbiter, "/nonexistent/arbiter", "slog0", 20 * SECOND);
  ck_assert_int_eq (arbiter.result, TL_ANSWER_UNKNOWN);
  assert_says (arbiter.reason, "/nonexistent/arbiter");
}
END_TEST

static bool
alive (pid_t pid)
{
  char path[64], state = 'Z';
  FILE *file;

  snprintf (path, sizeof path, "/proc/%d/stat", pid);
  file = fopen (path, "r");
  if (!file)
    return false;
  if (fscanf (file, "%*d %*s %c", &state) != 1)
    state = 'Z';
  fclose (file);
  return state != 'Z';
}

/* All of it is killed when the time is up, whatever it ignores. */
START_TEST (slow_one_is_killed)
{
  char script[PATH_MAX + 128];
  uint64_t begin = tl_now ();
  int pid = 0;
  FILE *file;

  fill (false);
  snprintf (script, sizeof script,
            "trap '' TERM HUP INT\nsleep 60 &\necho $! > %s\nwait\nexit 0\n",
            unit_path ("child"));
  tl_arbiter_run (&arbiter, command (script), "slog0", SECOND);
  ck_assert_int_eq (arbiter.result, TL_ANSWER_UNKNOWN);
  assert_says (arbiter.reason, "no answer");
  ck_assert_uint_ge (tl_now () - begin, SECOND);
  ck_assert_uint_lt (tl_now () - begin, 10 * SECOND);
  file = fopen (unit_path ("child"), "r");
  ck_assert_ptr_nonnull (file);
  ck_assert_int_eq (fscanf (file, "%d", &pid), 1);
  fclose (file);
  for (begin = tl_now (); alive (pid) && tl_now () < begin + 10 * SECOND;)
    usleep (1000);
  ck_assert (!alive (pid));
}
END_TEST

/* What a command leaves behind may keep its output open: its own end counts.
 */
START_TEST (background_process_does_not_delay)
{
  char script[PATH_MAX + 128];
  uint64_t took = tl_now ();
  FILE *file;
  int pid;

  fill (false);
  snprintf (script, sizeof script, "sleep 60 &\necho $! > %s\nexit 0\n",
            unit_path ("left"));
  run (script);
  took = tl_now () - took;
  file = fopen (unit_path ("left"), "r");
  ck_assert_ptr_nonnull (file);
  ck_assert_int_eq (fscanf (file, "%d", &pid), 1);
  fclose (file);
  kill (pid, SIGKILL);
  ck_assert_int_eq (arbiter.result, TL_ANSWER_DONE);
  ck_assert_uint_lt (took, 10 * SECOND);
}
END_TEST

START_TEST (none_is_started_after_the_end)
{
  static struct tl_node node;

  fill (false);
  pthread_mutex_init (&node.arbiter.child_lock, NULL);
  node.arbiter.asking = arbiter.asking;
  tl_arbiter_end (&node);
  tl_arbiter_run (&node.arbiter, "true", "slog0", SECOND);
  ck_assert_int_eq (node.arbiter.result, TL_ANSWER_UNKNOWN);
}
END_TEST

UNIT_MAIN ("arbiter", done, create_swaps_from_none,
           lost_with_the_record_that_stands, lost_to_nothing,
           what_is_no_record_is_unknown, other_ends_are_unknown_with_a_reason,
           slow_one_is_killed, background_process_does_not_delay,
           none_is_started_after_the_end)
