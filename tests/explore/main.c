/* twinlog-explore: twinlog-testing(7). */
#include "explore.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
    "usage: twinlog-explore [--scenario NAME] [--states N] [--seconds S]\n"
    "                       [--full] [--exhaust] [--trace] [--list]\n";

/* With --full. */
#define MOST_STATES 100000000u
#define MOST_SECONDS 86400u

static uint64_t
number (const char *option, const char *text)
{
  char *end;
  unsigned long long value;

  errno = 0;
  value = strtoull (text, &end, 10);
  if (errno != 0 || end == text || *end != '\0' || text[0] == '-' ||
      value == 0 || value > UINT32_MAX) {
    fprintf (stderr,
             "twinlog-explore: --%s %s: give a whole number from 1 to "
             "4294967295\n",
             option, text);
    exit (2);
  }
  return value;
}

/* Of all scenarios. */
static struct {
  uint64_t states;
  unsigned violations, bounded;
} all;

static void
explore (const struct scenario *s, uint64_t states, uint64_t seconds,
         bool trace)
{
  struct totals t;

  search (s, states, (double)seconds, trace, &t);

  printf ("%s: states %llu, transitions %llu, depth %u, %s, violations %d, "
          "%.1f s\n",
          s->name, (unsigned long long)t.states,
          (unsigned long long)t.transitions, t.depth,
          t.violated   ? "stopped"
          : t.bounded  ? "bound reached"
          : t.left > 0 ? "exhausted within the limits"
                       : "exhausted",
          t.violated, t.seconds);
  all.states += t.states;
  all.violations += t.violated;
  all.bounded += t.bounded;
}

int
main (int argc, char **argv)
{
  static const struct option options[] = {
      {"scenario", required_argument, NULL, 'n'},
      {"states", required_argument, NULL, 's'},
      {"seconds", required_argument, NULL, 't'},
      {"full", no_argument, NULL, 'f'},
      {"exhaust", no_argument, NULL, 'e'},
      {"trace", no_argument, NULL, 'v'},
      {"list", no_argument, NULL, 'l'},
      {"help", no_argument, NULL, 'h'},
      {NULL, 0, NULL, 0},
  };
  uint64_t states = 200000, seconds = 600;
  const char *name = NULL;
  bool trace = false, exhaust = false, found = false;
  int option;

  setvbuf (stdout, NULL, _IOLBF, 0);
  while ((option = getopt_long (argc, argv, "h", options, NULL)) != -1)
    switch (option) {
    case 'n':
      name = optarg;
      break;
    case 's':
      states = number ("states", optarg);
      break;
    case 't':
      seconds = number ("seconds", optarg);
      break;
    case 'f':
      states = MOST_STATES;
      seconds = MOST_SECONDS;
      break;
    case 'e':
      exhaust = true;
      break;
    case 'v':
      trace = true;
      break;
    case 'l':
      for (unsigned i = 0; i < n_scenarios; i++)
        puts (scenarios[i].name);
      return 0;
    case 'h':
      fputs (usage, stdout);
      return 0;
    default:
      fputs (usage, stderr);
      return 2;
    }
  if (optind < argc) {
    fputs (usage, stderr);
    return 2;
  }
  for (unsigned i = 0; i < n_scenarios; i++) {
    if (name != NULL && strcmp (name, scenarios[i].name) != 0)
      continue;
    found = true;
    explore (&scenarios[i], states, seconds, trace);
  }
  if (!found) {
    fprintf (stderr, "twinlog-explore: there is no scenario %s: see --list\n",
             name);
    return 2;
  }
  printf ("states %llu, violations %u\n", (unsigned long long)all.states,
          all.violations);
  return all.violations > 0 || (exhaust && all.bounded > 0);
}
