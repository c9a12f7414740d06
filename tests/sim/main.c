/* twinlog-sim: run seeds, print totals and violations. */
#include "sim.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define JOBS_MAX 64u
#define REPORTS 3u /* per worker; later violations get one line */
#define MANY (UINT64_C (1) << 40)
#define SEED_SECONDS 60 /* a seed that takes longer hangs */

struct options {
  uint64_t first;
  uint64_t seeds;
  uint64_t jobs;
  uint64_t seconds; /* to go on for, 0: for all SEEDS */
  bool trace;
  bool stop;
  uint64_t *list; /* of SEEDS seeds, NULL: they follow FIRST */
};

/* Shared with a worker process, so that it may die at any point. */
struct worker {
  pid_t pid;
  uint64_t at; /* of its seed: see seed_at */
  uint64_t violations;
  uint64_t deaths; /* of the process */
  uint64_t totals[TOTALS];
  struct trace_ring ring;
};

static struct sim sim;
static struct options options = {.first = 1, .seeds = 1000, .jobs = 1};
static struct worker *workers;
static uint64_t until; /* seconds of the monotonic clock */
static volatile bool *stop;

static void
usage (FILE *to)
{
  fputs ("usage: twinlog-sim [--seeds N] [--first SEED] [--seeds-from FILE]\n"
         "                   [--seconds S] [--jobs N] [--trace] [--stop]\n"
         "\n"
         "Simulate pairs of nodes under faults and check the guarantees.\n"
         "  --seeds N     how many seeds to run (1000)\n"
         "  --first SEED  the first of them (1)\n"
         "  --seeds-from FILE\n"
         "                the seeds to run, one a line; # begins a comment\n"
         "  --seconds S   begin no seed after so many seconds\n"
         "  --jobs N      worker processes (1)\n"
         "  --trace       print every event and action\n"
         "  --stop        end at the first violation\n"
         "Exit status: 0, 1 after a violation, 2 for wrong arguments.\n",
         to);
}

static uint64_t
seed_at (uint64_t at)
{
  return options.list ? options.list[at] : options.first + at;
}

/* Run SEED again with its trace kept, and print the end of that. */
static void
rerun (uint64_t seed, struct trace_ring *ring)
{
  static uint64_t unused[TOTALS];

  sim_trace_to (ring);
  sim.tracing = true;
  sim.totals = unused;
  sim_run (&sim, seed);
  sim.tracing = false;
}

static void
report (struct worker *worker, uint64_t seed)
{
  printf ("violation: seed %" PRIu64 ", step %" PRIu64 ": %s\n", seed,
          sim.steps, sim.violation);
  if (worker->violations <= REPORTS && !options.trace) {
    rerun (seed, &worker->ring);
    sim_trace_print (&worker->ring);
    printf ("again: twinlog-sim --first %" PRIu64 " --seeds 1 --trace\n", seed);
  }
  fflush (stdout);
}

/* Is the time up? */
static bool
over (void)
{
  struct timespec now;

  if (options.seconds == 0)
    return false;
  clock_gettime (CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec >= until;
}

static void
work (struct worker *worker)
{
  for (; worker->at < options.seeds && !*stop && !over ();
       worker->at += options.jobs) {
    uint64_t seed = seed_at (worker->at);

    alarm (SEED_SECONDS);
    sim.totals = worker->totals;
    sim.tracing = options.trace;
    sim_run (&sim, seed);
    if (sim.violated) {
      worker->violations++;
      *stop = options.stop;
      report (worker, seed);
    }
  }
}

static void
start (struct worker *worker)
{
  pid_t pid;

  fflush (stdout);
  pid = fork ();
  if (pid < 0) {
    perror ("twinlog-sim: fork");
    exit (3);
  }
  if (pid == 0) {
    work (worker);
    fflush (stdout);
    _exit (0);
  }
  worker->pid = pid;
}

/* A worker died: its seed made the code under test crash or hang. */
static void
died (struct worker *worker, int status)
{
  uint64_t seed = seed_at (worker->at);

  worker->violations++;
  worker->deaths++;
  *stop = options.stop;
  printf ("violation: seed %" PRIu64 ": died of %s %d\n", seed,
          WIFSIGNALED (status) ? "signal" : "exit status",
          WIFSIGNALED (status) ? WTERMSIG (status) : WEXITSTATUS (status));
  if (worker->violations > REPORTS)
    return;
  fflush (stdout);

  pid_t pid = fork ();

  if (pid == 0) {
    alarm (SEED_SECONDS);
    rerun (seed, &worker->ring);
    _exit (0);
  }
  if (pid > 0)
    while (waitpid (pid, NULL, 0) < 0 && errno == EINTR)
      ;
  sim_trace_print (&worker->ring);
  printf ("again: twinlog-sim --first %" PRIu64 " --seeds 1 --trace\n", seed);
}

static void
run_workers (void)
{
  unsigned running = 0;

  for (uint64_t w = 0; w < options.jobs; w++, running++) {
    workers[w].at = w;
    start (&workers[w]);
  }
  while (running > 0) {
    int status;
    pid_t pid = wait (&status);

    if (pid < 0 && errno == EINTR)
      continue;
    if (pid < 0)
      break;
    for (uint64_t w = 0; w < options.jobs; w++) {
      struct worker *worker = &workers[w];

      if (worker->pid != pid)
        continue;
      running--;
      if (WIFSIGNALED (status) || WEXITSTATUS (status) != 0) {
        died (worker, status);
        worker->at += options.jobs;
        start (worker);
        running++;
      }
    }
  }
}

static uint64_t
number (const char *name, const char *text, uint64_t low, uint64_t high)
{
  char *end;

  errno = 0;

  uint64_t n = strtoull (text, &end, 10);

  if (errno != 0 || end == text || *end || text[0] == '-' || n < low ||
      n > high) {
    fprintf (stderr,
             "twinlog-sim: --%s %s: a number from %" PRIu64 " to %" PRIu64
             " is needed\n",
             name, text, low, high);
    exit (2);
  }
  return n;
}

static void
read_seeds (const char *path)
{
  FILE *file = fopen (path, "re");
  char line[256];

  if (!file) {
    fprintf (stderr, "twinlog-sim: %s: %s\n", path, strerror (errno));
    exit (2);
  }
  options.seeds = 0;
  while (fgets (line, sizeof line, file)) {
    line[strcspn (line, "#\n")] = '\0';
    for (size_t n = strlen (line); n > 0 && line[n - 1] == ' ';)
      line[--n] = '\0';
    if (line[0] == '\0')
      continue;
    options.list =
        realloc (options.list, (options.seeds + 1) * sizeof *options.list);
    if (!options.list)
      abort ();
    options.list[options.seeds++] =
        number ("seeds-from", line, 0, UINT64_C (1) << 62);
  }
  fclose (file);
  if (options.seeds == 0) {
    fprintf (stderr, "twinlog-sim: %s: no seeds in it\n", path);
    exit (2);
  }
}

static void
parse (int argc, char **argv)
{
  static const struct option known[] = {
      {"seeds", required_argument, NULL, 'n'},
      {"first", required_argument, NULL, 'f'},
      {"seeds-from", required_argument, NULL, 'l'},
      {"seconds", required_argument, NULL, 'u'},
      {"jobs", required_argument, NULL, 'j'},
      {"trace", no_argument, NULL, 't'},
      {"stop", no_argument, NULL, 's'},
      {"help", no_argument, NULL, 'h'},
      {NULL, 0, NULL, 0},
  };
  bool given = false;
  int c;

  while ((c = getopt_long (argc, argv, "", known, NULL)) != -1) {
    switch (c) {
    case 'n':
      options.seeds = number ("seeds", optarg, 1, MANY);
      given = true;
      break;
    case 'f':
      options.first = number ("first", optarg, 0, UINT64_C (1) << 62);
      break;
    case 'l':
      read_seeds (optarg);
      break;
    case 'u':
      options.seconds = number ("seconds", optarg, 1, 1000000);
      break;
    case 'j':
      options.jobs = number ("jobs", optarg, 1, JOBS_MAX);
      break;
    case 't':
      options.trace = true;
      break;
    case 's':
      options.stop = true;
      break;
    case 'h':
      usage (stdout);
      exit (0);
    default:
      usage (stderr);
      exit (2);
    }
  }
  if (options.seconds && !given && !options.list)
    options.seeds = MANY;
  if (optind < argc) {
    fprintf (stderr, "twinlog-sim: what is «%s»?\n", argv[optind]);
    usage (stderr);
    exit (2);
  }
}

int
main (int argc, char **argv)
{
  uint64_t totals[TOTALS] = {0}, violations = 0, deaths = 0;
  struct timespec now;

  parse (argc, argv);
  if (options.trace)
    options.jobs = 1;

  size_t size = options.jobs * sizeof *workers + 64;
  void *shared = mmap (NULL, size, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

  if (shared == MAP_FAILED) {
    perror ("twinlog-sim: mmap");
    return 3;
  }
  workers = shared;
  stop = (bool *)(workers + options.jobs);
  clock_gettime (CLOCK_MONOTONIC, &now);
  until = (uint64_t)now.tv_sec + options.seconds;
  run_workers ();
  for (uint64_t w = 0; w < options.jobs; w++) {
    violations += workers[w].violations;
    deaths += workers[w].deaths;
    for (unsigned i = 0; i < TOTALS; i++)
      totals[i] += workers[w].totals[i];
  }
  totals_print (totals);
  if (!*stop && !over () && totals[T_SEEDS] + deaths != options.seeds) {
    fprintf (stderr, "twinlog-sim: only %" PRIu64 " seeds were run\n",
             totals[T_SEEDS]);
    return 3;
  }
  printf ("seeds %" PRIu64 ", violations %" PRIu64 "\n",
          totals[T_SEEDS] + deaths, violations);
  return violations ? 1 : 0;
}
