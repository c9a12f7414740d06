#include "bench_load.h"
#include "bench_connect.h"
#include "bench_worker.h"
#include "commands.h"

#include "core/core.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define LONGER 4 /* times as long, where nothing ended in time */

/* Nanoseconds that a process has computed for, -1: not known. */
static int64_t
cpu_time (pid_t pid)
{
  struct timespec ts;
  clockid_t clock;

  if (clock_getcpuclockid (pid, &clock) != 0 ||
      clock_gettime (clock, &ts) == -1)
    return -1;
  return ts.tv_sec * INT64_C (1000000000) + ts.tv_nsec;
}

static void
cpu_times (const struct bench_target *target, int64_t times[BENCH_SIDES])
{
  for (unsigned i = 0; i < BENCH_SIDES; i++)
    times[i] = i == BENCH_CLIENT || target->pid[i] > 0
                   ? cpu_time (target->pid[i]) /* 0: of this process */
                   : -1;
}

/* Until then, or a worker has failed. */
static void
sleep_until (struct load *load, int64_t until)
{
  int64_t left;

  while ((left = until - worker_now ()) > 0 && !atomic_load (&load->failed)) {
    struct timespec ts = {0, left < 100000000 ? (long)left : 100000000L};

    nanosleep (&ts, NULL);
  }
}

/* What is written: ARENA bytes, for all runs of the process. */
static char *arena;

/* As much of the file at PATH as there is room for.  How many bytes; 0 where
 * it could not be read or holds none, with one line in ERROR.
 */
static size_t
read_content (const char *path, char *error, size_t error_size)
{
  FILE *file = fopen (path, "re");
  size_t n = file ? fread (arena, 1, ARENA, file) : 0;

  if (!file || ferror (file))
    n = 0;
  if (n == 0)
    snprintf (error, error_size, "cannot read %s: %s", path,
              !file || ferror (file) ? strerror (errno) : "the file is empty");
  if (file)
    fclose (file);
  return n;
}

int
load_content (const char *path, char *error, size_t error_size)
{
  uint64_t random = 88172645463325252u;
  size_t n;

  arena = mmap (NULL, ARENA, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (arena == MAP_FAILED)
    return command_explain (TL_FAILED, error, error_size, "not enough memory");
  if (!path) {
    for (size_t i = 0; i < ARENA; i += sizeof random) {
      worker_random (&random);
      memcpy (arena + i, &random, sizeof random);
    }
    return TL_DONE;
  }
  n = read_content (path, error, error_size);
  if (n == 0)
    return TL_FAILED;
  for (size_t i = n; i < ARENA; i++)
    arena[i] = arena[i - n];
  return TL_DONE;
}

static void
conclude (struct load *load, const struct worker *workers,
          const int64_t before[], const int64_t after[], struct bench_row *row)
{
  double seconds = (double)(load->end - load->begin) / 1e9;
  struct histogram all = {0};
  uint64_t bytes = 0;

  row->done = 0;
  for (unsigned i = 0; i < row->connections; i++) {
    row->done += workers[i].done;
    bytes += workers[i].bytes;
    histogram_merge (&all, &workers[i].histogram);
  }
  row->per_second = (double)row->done / seconds;
  row->bytes_per_second = (double)bytes / seconds;
  row->p50 = histogram_part (&all, 0.5);
  row->p99 = histogram_part (&all, 0.99);
  row->p999 = histogram_part (&all, 0.999);
  for (unsigned i = 0; i < BENCH_SIDES; i++)
    row->cpu[i] =
        before[i] < 0 || after[i] < 0 || row->done == 0
            ? -1
            : (double)(after[i] - before[i]) / 1e3 / (double)row->done;
}

/* Start the workers, wait, and end them. */
static int
run (const struct bench_target *target, struct load *load,
     struct worker *workers, int64_t duration, struct bench_row *row,
     char *error, size_t error_size)
{
  int64_t before[BENCH_SIDES], after[BENCH_SIDES];
  unsigned started = 0;
  int status = TL_DONE;

  load->begin = worker_now () + duration / 10;
  load->end = load->begin + duration;
  while (started < row->connections) {
    worker_prepare (&workers[started], load, started);
    if (pthread_create (&workers[started].thread, NULL, worker_run,
                        &workers[started]) != 0) {
      snprintf (error, error_size, "cannot start a thread");
      atomic_store (&load->failed, true);
      status = TL_FAILED;
      break;
    }
    started++;
  }
  sleep_until (load, load->begin);
  cpu_times (target, before);
  sleep_until (load, load->end);
  cpu_times (target, after);
  for (unsigned i = 0; i < started; i++) {
    pthread_join (workers[i].thread, NULL);
    if (workers[i].failed && status == TL_DONE) {
      snprintf (error, error_size, "%s", workers[i].error);
      status = TL_FAILED;
    }
  }
  if (status == TL_DONE)
    conclude (load, workers, before, after, row);
  return status;
}

static int
run_once (const struct bench_target *target, int64_t duration,
          struct bench_row *row, char *error, size_t error_size)
{
  struct load load = {.row = row, .size = target->size, .arena = arena};
  struct worker *workers = calloc (row->connections, sizeof *workers);
  unsigned connected = 0;
  int status = TL_DONE;

  if (!workers) {
    snprintf (error, error_size, "not enough memory");
    status = TL_FAILED;
  } else if (row->size > target->size || row->size > target->request_max ||
             (row->pattern != BENCH_WRITES &&
              target->size / row->connections < CHAIN_REGION)) {
    snprintf (error, error_size,
              "the volume of %llu bytes is too small for this, or takes "
              "writes of %llu bytes only",
              (unsigned long long)target->size,
              (unsigned long long)target->request_max);
    status = TL_FAILED;
  }
  while (status == TL_DONE && connected < row->connections) {
    status = bench_connect (target, &workers[connected].nbd, error, error_size);
    connected += status == TL_DONE;
  }
  if (status == TL_DONE)
    status = run (target, &load, workers, duration, row, error, error_size);
  /* A worker that gave up still has requests under way: no farewell. */
  for (unsigned i = 0; i < connected; i++) {
    if (status == TL_DONE)
      nbd_shutdown (workers[i].nbd, 0);
    nbd_close (workers[i].nbd);
  }
  free (workers);
  return status;
}

int
load_run (const struct bench_target *target, int64_t duration,
          struct bench_row *row, char *error, size_t error_size)
{
  int status;

  /* It ends: a worker gives up where no answer comes for long enough. */
  do {
    status = run_once (target, duration, row, error, error_size);
    duration *= LONGER;
  } while (status == TL_DONE && row->done == 0);
  return status;
}
