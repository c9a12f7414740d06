#include "bench.h"
#include "arguments.h"
#include "bench_connect.h"
#include "bench_link.h"
#include "bench_load.h"
#include "bench_pair.h"
#include "bench_report.h"
#include "commands.h"
#include "control.h"
#include "wait.h"

#include "core/core.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PATTERNS 2 /* of chains */
/* A size of the link takes a part of a figure's time, and at most so long. */
#define PING_PART 4
#define PING_MOST 500000000 /* nanoseconds */
#define CHAINS_DEPTH 1      /* ZFS commits one chain after the other */

int
bench_check_options (const struct arguments *arguments, char *error,
                     size_t error_size)
{
  struct bench_options options;

  return arguments->command->run == command_bench
             ? bench_options_parse (arguments, &options, error, error_size)
             : 0;
}

/* ---- The target ---- */

/* Is the node one that may be written over: the primary, and not in use? */
static int
check_node (const struct arguments *arguments, char *error, size_t error_size)
{
  json_t *node;
  int status = command_ask_status (arguments, CONTROL_ASK_TIMEOUT, &node, error,
                                   error_size);

  if (status != TL_DONE)
    return status;
  if (!wait_matches (node, "Primary")) {
    snprintf (error, error_size, "this node is not the primary; run it there");
    status = TL_REFUSED;
  } else if (json_integer_value (json_object_get (node, "clients")) > 0) {
    snprintf (error, error_size,
              "another NBD client is attached, whose data this would write "
              "over; detach it first");
    status = TL_REFUSED;
  }
  json_decref (node);
  return status;
}

static int
choose_target (const struct arguments *arguments, struct bench_target *target,
               char *path, size_t path_size, char *error, size_t error_size)
{
  bool node = arguments->volume || arguments->given[OPTION_CONTROL];

  target->uri = arguments->value[OPTION_URI];
  target->socket = arguments->value[OPTION_SOCKET];
  if (node && !target->socket) {
    snprintf (path, path_size, CONTROL_DIRECTORY "/%s.sock", arguments->volume);
    target->socket = path;
  }
  target->throw_away = !target->uri && !target->socket;
  if (target->throw_away)
    return TL_DONE;
  if (!arguments->given[OPTION_OVERWRITE]) {
    snprintf (
        error, error_size,
        "this writes over all of %.200s; where its content may be lost, say "
        "--overwrite",
        target->uri ? target->uri : target->socket);
    return TL_REFUSED;
  }
  return node ? check_node (arguments, error, error_size) : TL_DONE;
}

/* ---- The measurement ---- */

static struct bench_row *
plan_rows (const struct bench_options *options,
           const struct bench_target *target, unsigned *n_rows)
{
  unsigned most = options->sizes.n * options->depths.n * options->connections.n;
  struct bench_row *rows;

  most += PATTERNS * options->connections.n;
  rows = calloc (most, sizeof *rows);
  *n_rows = 0;
  if (!rows)
    return NULL;
  for (unsigned c = 0; c < options->connections.n; c++)
    for (unsigned s = 0; s < options->sizes.n; s++)
      for (unsigned d = 0; d < options->depths.n; d++)
        rows[(*n_rows)++] = (struct bench_row){
            .size = options->sizes.value[s],
            .depth = options->depths.value[d],
            .connections = options->connections.value[c],
        };
  for (unsigned p = BENCH_CHAINS; p <= BENCH_FLUSHED_CHAINS; p++)
    for (unsigned c = 0; c < options->connections.n; c++)
      if (p == BENCH_CHAINS || target->flush)
        rows[(*n_rows)++] = (struct bench_row){
            .pattern = p,
            .depth = CHAINS_DEPTH,
            .connections = options->connections.value[c],
        };
  return rows;
}

static void
show_progress (const struct bench_result *result, unsigned i)
{
  const struct bench_row *row = &result->rows[i];
  char size[32];

  if (isatty (STDERR_FILENO))
    fprintf (stderr, "\r%u of %u: %s, depth %u, connections %u        ", i + 1,
             result->n_rows, report_size (row, size), row->depth,
             row->connections);
}

static int
measure (const struct arguments *arguments, struct bench_result *result,
         char *error, size_t error_size)
{
  const struct bench_options *options = result->options;
  const struct bench_target *target = result->target;
  int64_t ping = options->duration / PING_PART;
  int status = TL_DONE;

  if (target->throw_away || arguments->given[OPTION_PING])
    status = link_measure (arguments->value[OPTION_PING], &options->sizes,
                           ping < PING_MOST ? ping : PING_MOST, &result->link,
                           error, error_size);
  if (status == TL_DONE)
    status = bench_fill (target, error, error_size);
  for (unsigned i = 0; i < result->n_rows && status == TL_DONE; i++) {
    show_progress (result, i);
    status = load_run (target, options->duration, &result->rows[i], error,
                       error_size);
  }
  if (isatty (STDERR_FILENO))
    fprintf (stderr, "\r%60s\r", "");
  return status;
}

static int
show (const struct arguments *arguments, const struct bench_result *result,
      char *error, size_t error_size)
{
  if (!arguments->given[OPTION_JSON])
    report_table (result, stdout);
  else if (report_json (result, stdout) == -1)
    clearerr (stdout); /* the next write tells */
  if (fflush (stdout) != 0 || ferror (stdout)) {
    snprintf (error, error_size, "cannot write: %m");
    return TL_FAILED;
  }
  return arguments->given[OPTION_PLOT]
             ? report_plot (result, arguments->value[OPTION_PLOT], error,
                            error_size)
             : TL_DONE;
}

/* The CPUs that this process may use. */
static unsigned
count_cpus (void)
{
  cpu_set_t set;

  return sched_getaffinity (0, sizeof set, &set) == 0
             ? (unsigned)CPU_COUNT (&set)
             : 1;
}

static int
bench (const struct arguments *arguments, const struct bench_options *options,
       struct bench_target *target, char *error, size_t error_size)
{
  struct bench_result result = {
      .options = options, .target = target, .cpus = count_cpus ()};
  int status = bench_look (target, error, error_size);

  if (status != TL_DONE)
    return status;
  result.rows = plan_rows (options, target, &result.n_rows);
  if (!result.rows) {
    snprintf (error, error_size, "not enough memory");
    return TL_FAILED;
  }
  status = measure (arguments, &result, error, error_size);
  if (status == TL_DONE)
    status = show (arguments, &result, error, error_size);
  free (result.rows);
  return status;
}

int
command_bench (const struct arguments *arguments)
{
  struct bench_target target = {0};
  struct bench_options options;
  struct bench_pair pair;
  char error[1024], path[CONTROL_PATH_SIZE];
  int status = TL_DONE;

  if (bench_options_parse (arguments, &options, error, sizeof error) == -1)
    return command_complain (TL_USAGE, "%s", error);
  if (arguments->given[OPTION_ANSWER])
    status = link_answer (arguments->value[OPTION_ANSWER], error, sizeof error);
  else {
    if (arguments->given[OPTION_PLOT])
      status = report_plot_check (arguments->value[OPTION_PLOT], error,
                                  sizeof error);
    if (status == TL_DONE)
      status =
          load_content (arguments->value[OPTION_CONTENT], error, sizeof error);
    if (status == TL_DONE)
      status = choose_target (arguments, &target, path, sizeof path, error,
                              sizeof error);
    if (status == TL_DONE && target.throw_away) {
      status = pair_start (&pair, error, sizeof error);
      if (status == TL_DONE) {
        target.socket = pair.socket;
        target.pid[BENCH_PRIMARY] = pair.primary;
        target.pid[BENCH_SECONDARY] = pair.secondary;
        status = bench (arguments, &options, &target, error, sizeof error);
        pair_end (&pair);
      }
    } else if (status == TL_DONE)
      status = bench (arguments, &options, &target, error, sizeof error);
  }
  return status == TL_DONE ? TL_DONE : command_complain (status, "%s", error);
}
