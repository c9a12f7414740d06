/* The test itself runs in a child: whatever becomes of it, its directory is
 * removed.
 *
 * Bugs that it must find are in mutations/, planted one at a time by
 * tests/threads/mutate:
 *   two-senders          two workers are in sendmsg for one connection
 *   frames-out-of-order  a frame overtakes those that wait
 *   copy-outside         nobody waits for a copy that is made without the lock
 *   copy-wakes-nobody    who waits for a copy is not woken when it is made
 *   copy-after-the-lock  a worker takes the lock before it has made its copy
 *   partial-send         what a sendmsg took of a frame is sent once more
 *   lost-wake-up         one acknowledgement wakes only one of its workers
 *   two-readers          the loop reads while a worker does
 *   reading-kept         a worker that has read leaves nobody reading
 *   compressed-reused    what was compressed is overwritten before it has left
 */
#include "threads.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TOLD 8 /* violations that are printed */

static void
usage (FILE *to)
{
  fputs ("usage: twinlog-threads [--seconds N] [--seed S] [--keep] ARBITER\n"
         "\n"
         "Runs two nodes in one process, with their real threads and sockets,\n"
         "stops, starts, promotes and cuts them while clients read and write,\n"
         "and judges what the clients saw. ARBITER is "
         "scripts/twinlog-arbiter-file,\n"
         "used where the seed is even; else there is none.\n"
         "\n"
         "  --seconds N  disturb for so long (5)\n"
         "  --seed S     what is done (1); threads never repeat exactly\n"
         "  --keep       leave the directory of the nodes behind\n"
         "\n"
         "Exit status: 0 nothing found, 1 violations, 2 wrong arguments,\n"
         "3 the test itself could not run.\n",
         to);
}

uint64_t
now_us (void)
{
  struct timespec now;

  clock_gettime (CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void
pause_ms (unsigned ms)
{
  struct timespec time = {.tv_sec = ms / 1000,
                          .tv_nsec = (long)(ms % 1000) * 1000000};

  while (nanosleep (&time, &time) == -1 && errno == EINTR)
    ;
}

void
violation (struct test *test, const char *format, ...)
{
  char line[1024];
  va_list list;

  if (atomic_fetch_add (&test->violations, 1) >= TOLD)
    return;
  va_start (list, format);
  vsnprintf (line, sizeof line, format, list);
  va_end (list);
  fprintf (stderr, "violation: seed %llu: %s\n", (unsigned long long)test->seed,
           line);
}

#ifdef __SANITIZE_THREAD__
/* The sanitizer follows descriptors by the calls that it knows.  libuv closes
 * those of a loop that has ended with a bare system call, and it knows neither
 * openat nor memfd_create: where these get the same number, it takes their
 * close for that of the loop's descriptor.
 */
const char *__tsan_default_suppressions (void);

__attribute__ ((visibility ("default"))) const char *
__tsan_default_suppressions (void)
{
  return "race:^write_new$\n"
         "race:^tl_backing_close$\n";
}
#endif

/* End it all where a request hangs: nothing else would. */
static void *
watch_main (void *opaque)
{
  struct test *test = opaque;

  while (!atomic_load (&test->over)) {
    for (unsigned i = 0; i < CLIENTS; i++) {
      uint64_t since = atomic_load (&test->clients[i].since);
      uint64_t now = now_us ();

      if (since && now > since + request_bound (test)) {
        violation (test, "a request is under way for %.3f s",
                   (double)(now - since) / 1e6);
        _exit (1);
      }
    }
    pause_ms (50);
  }
  return NULL;
}

/* Others at the sockets.  Those of the mirror get little room, so that frames
 * leave in parts; at the control sockets some ask, some talk nonsense, some
 * leave before they are answered.
 */
static void *
callers_main (void *opaque)
{
  static const char *const lines[] = {"{\"command\":\"status\"}\n",
                                      "{\"command\":\"status\"}", "nonsense\n",
                                      "{\"command\":\"create\"}\n"};
  struct test *test = opaque;
  struct rng rng;

  rng_seed (&rng, test->seed + 999);
  while (!atomic_load (&test->stop)) {
    struct slot *slot = &test->slots[rng_below (&rng, 2)];

    inside_squeeze (slot);
    inside_watched (test, slot);
    slot_call (slot, lines[rng_below (&rng, 4)], rng_percent (&rng, 50));
    pause_ms ((unsigned)rng_between (&rng, 1, 20));
  }
  return NULL;
}

/* ---- The run ---- */

static void
prepare (struct test *test, const char *arbiter)
{
  struct rng rng;

  rng_seed (&rng, test->seed ^ ((uint64_t)getpid () << 32) ^ now_us ());
  snprintf (test->arbiter_command, sizeof test->arbiter_command, "'%s' '%s'",
            arbiter, test->directory);
  for (unsigned i = 0; i < 2; i++) {
    struct slot *slot = &test->slots[i];

    slot->test = test;
    slot->index = i;
    slot->name[0] = (char)('a' + i);
    slot->port = port_claim (&rng);
    slot->proxy_port = port_claim (&rng);
    pthread_mutex_init (&slot->lock, NULL);
    pthread_cond_init (&slot->idle, NULL);
    snprintf (slot->state, sizeof slot->state, "%s/%s.state", test->directory,
              slot->name);
    snprintf (slot->control, sizeof slot->control, "%s/%s.ctl", test->directory,
              slot->name);
    snprintf (slot->store, sizeof slot->store, "%s/%s.ram", test->directory,
              slot->name);
    snprintf (slot->listen, sizeof slot->listen, "127.0.0.1:%u", slot->port);
  }
  for (unsigned i = 0; i < 2; i++)
    snprintf (test->slots[i].peer, sizeof test->slots[i].peer, "127.0.0.1:%u",
              test->slots[!i].proxy_port);
}

/* Two nodes that are connected and have a volume. */
static bool
begin (struct test *test)
{
  uint64_t until = now_us () + CONVERGE;
  char text[512];

  for (unsigned i = 0; i < 2; i++)
    if (!slot_open (&test->slots[i], true))
      return false;
  while (slot_command (&test->slots[test->seed / 2 % 2],
                       "{\"command\":\"create\"}\n", text,
                       sizeof text) != TL_DONE) {
    if (now_us () >= until) {
      violation (test, "the volume cannot be created: %s", text);
      return false;
    }
    pause_ms (20);
  }
  if (faults_settle (test, true, CONVERGE))
    return true;
  violation (test, "the new nodes do not become whole");
  return false;
}

/* At rest and whole: both nodes hold the same, and either serves it. */
static void
end (struct test *test)
{
  struct tl_status status;

  proxy_set (test->proxy, WIRE_OPEN);
  for (unsigned turn = 0; turn < 2; turn++) {
    unsigned primary;

    if (!faults_settle (test, true, CONVERGE)) {
      violation (test, "the nodes do not become whole at the end");
      return;
    }
    judge_stores (test);
    primary =
        slot_status (&test->slots[1], &status) && status.role == TL_PRIMARY;
    clients_read_all (test, &test->slots[primary]);
    if (turn == 0)
      slot_command (&test->slots[primary], "{\"command\":\"switchover\"}\n",
                    NULL, 0);
  }
}

static int
run (struct test *test, const char *arbiter)
{
  static const char *const names[] = {"cuts",      "stalls",      "secondaries",
                                      "primaries", "switchovers", "overtakings",
                                      "demotions", "RAMs lost"};
  pthread_t watch, callers;

  prctl (PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  signal (SIGPIPE, SIG_IGN);
  prepare (test, arbiter);
  test->proxy = proxy_start (test->slots, test->seed);
  if (pthread_create (&watch, NULL, watch_main, test) != 0)
    abort ();
  if (begin (test)) {
    bool healed;

    test->calm_end = now_us () + (uint64_t)(test->seconds * 0.3e6);
    clients_start (test);
    if (pthread_create (&callers, NULL, callers_main, test) != 0)
      abort ();
    healed = faults_run (test);
    clients_stop (test);
    pthread_join (callers, NULL);
    if (healed)
      end (test);
  }
  for (unsigned i = 0; i < 2; i++)
    slot_close (&test->slots[i], false);
  atomic_store (&test->over, true);
  pthread_join (watch, NULL);
  proxy_stop (test->proxy);

  judge_histories (test);
  for (unsigned i = 0; i < CLIENTS; i++)
    history_free (&test->clients[i].history);
  for (unsigned i = 0; i < 8; i++)
    printf ("%s%s %u", i ? ", " : "", names[i], test->counts[i]);
  printf ("\nviolations %u\n", atomic_load (&test->violations));
  fflush (stdout);
  return atomic_load (&test->violations) ? 1 : 0;
}

/* ---- Around it ---- */

static void
remove_directory (const char *directory)
{
  char *arguments[] = {"rm", "-rf", "--", (char *)(uintptr_t)directory, NULL};
  pid_t pid = fork ();

  if (pid == 0) {
    execvp ("rm", arguments);
    _exit (127);
  }
  waitpid (pid, NULL, 0);
}

/* Wait for CHILD, with a bound; end it if we are to end. */
static int
supervise (pid_t child, double seconds)
{
  struct timespec bound = {.tv_sec = (time_t)seconds + 60 * SLOW};
  sigset_t signals;
  int status, got;

  sigemptyset (&signals);
  sigaddset (&signals, SIGCHLD);
  sigaddset (&signals, SIGTERM);
  sigaddset (&signals, SIGINT);
  got = sigtimedwait (&signals, NULL, &bound);
  if (got != SIGCHLD) {
    fprintf (stderr, "violation: the test %s\n",
             got == -1 ? "hangs" : "was ended from outside");
    kill (child, SIGKILL);
  }
  waitpid (child, &status, 0);
  if (WIFEXITED (status))
    return WEXITSTATUS (status);
  fprintf (stderr, "violation: the test was ended by signal %d\n",
           WTERMSIG (status));
  return 1;
}

static int
run_in_child (struct test *test, const char *arbiter, bool keep)
{
  /* RAM that outlives a node is a file in RAM. */
  char shm[] = "/dev/shm/twinlog-threads-XXXXXX";
  char tmp[] = "/tmp/twinlog-threads-XXXXXX";
  char *directory = mkdtemp (shm);
  sigset_t signals, before;
  pid_t child;
  int result;

  if (!directory)
    directory = mkdtemp (tmp);
  if (!directory) {
    fprintf (stderr, "twinlog-threads: no directory: %s\n", strerror (errno));
    return 3;
  }
  test->directory = directory;
  sigemptyset (&signals);
  sigaddset (&signals, SIGCHLD);
  sigaddset (&signals, SIGTERM);
  sigaddset (&signals, SIGINT);
  sigprocmask (SIG_BLOCK, &signals, &before);
  child = fork ();
  if (child == 0) {
    sigprocmask (SIG_SETMASK, &before, NULL);
    exit (run (test, arbiter));
  }
  result = child == -1 ? 3 : supervise (child, test->seconds);
  if (keep)
    printf ("kept %s\n", directory);
  else
    remove_directory (directory);
  return result;
}

/* A number from 1 to MOST.  0: it is none. */
static double
number (const char *text, double most)
{
  char *rest;
  double value = strtod (text, &rest);

  return *text && !*rest && value >= 1 && value <= most ? value : 0;
}

int
main (int argc, char *argv[])
{
  static const struct option options[] = {
      {"seconds", required_argument, NULL, 's'},
      {"seed", required_argument, NULL, 'e'},
      {"keep", no_argument, NULL, 'k'},
      {"help", no_argument, NULL, 'h'},
      {NULL, 0, NULL, 0}};
  static struct test test = {.seed = 1, .seconds = 5};
  bool keep = false, ok = true;
  int option;

  while (ok && (option = getopt_long (argc, argv, "", options, NULL)) != -1)
    switch (option) {
    case 's':
      test.seconds = number (optarg, 86400);
      ok = test.seconds > 0;
      break;
    case 'e':
      test.seed = (uint64_t)number (optarg, 1e15);
      ok = test.seed > 0;
      break;
    case 'k':
      keep = true;
      break;
    case 'h':
      usage (stdout);
      return 0;
    default:
      ok = false;
    }
  if (!ok || optind + 1 != argc) {
    usage (stderr);
    return 2;
  }
  test.arbiter = test.seed % 2 == 0;
  return run_in_child (&test, argv[optind], keep);
}
