#include "bench_report.h"
#include "bench_limit.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#define SENTENCE 1024

static void
bytes_text (uint32_t size, char *text)
{
  if (size % (1u << 20) == 0)
    snprintf (text, 32, "%u MiB", size >> 20);
  else if (size % (1u << 10) == 0)
    snprintf (text, 32, "%u KiB", size >> 10);
  else
    snprintf (text, 32, "%u B", size);
}

const char *
report_size (const struct bench_row *row, char *text)
{
  if (row->pattern == BENCH_WRITES)
    bytes_text (row->size, text);
  else
    strcpy (text, row->pattern == BENCH_CHAINS ? "zil" : "zil+flush");
  return text;
}

/* The processor's name, as the kernel has it. */
static void
model_of (char *text, size_t size)
{
  FILE *file = fopen ("/proc/cpuinfo", "r");
  char line[256];

  snprintf (text, size, "unknown");
  while (file && fgets (line, sizeof line, file))
    if (strncmp (line, "model name", 10) == 0 && strchr (line, ':')) {
      line[strcspn (line, "\n")] = '\0';
      snprintf (text, size, "%s", strchr (line, ':') + 2);
      break;
    }
  if (file)
    fclose (file);
}

static void
date_of (char *text, size_t size)
{
  time_t now = time (NULL);
  struct tm tm;

  strftime (text, size, "%Y-%m-%d %H:%M", localtime_r (&now, &tm));
}

static const char *
target_name (const struct bench_target *target)
{
  return target->throw_away ? "a throw-away pair on 127.0.0.1"
         : target->socket   ? target->socket
                            : target->uri;
}

/* ---- For people ---- */

static void
cpu_cell (double cpu, FILE *stream)
{
  if (cpu < 0)
    fprintf (stream, " %7s", "-");
  else
    fprintf (stream, " %7.1f", cpu);
}

static void
print_link (const struct bench_link *link, FILE *stream)
{
  char size[32];

  if (!link->n) {
    fprintf (stream, "The link was not measured (--ping).\n\n");
    return;
  }
  fprintf (stream,
           "The link by itself, raw TCP with 16 bytes back: %.0f MB/s"
           "\n\n%9s %10s %9s\n",
           link->bytes_per_second / 1e6, "size", "p50 us", "p99 us");
  for (unsigned i = 0; i < link->n; i++) {
    bytes_text (link->ping[i].size, size);
    fprintf (stream, "%9s %10.1f %9.1f\n", size,
             (double)link->ping[i].p50 / 1e3, (double)link->ping[i].p99 / 1e3);
  }
  fputc ('\n', stream);
}

static void
print_projections (const struct bench_result *result, FILE *stream)
{
  struct projection projection;
  char size[32];

  fprintf (stream,
           "\nOver a link of %g us and %g Gbit/s, projected:\n\n"
           "%9s %5s %5s %9s %9s %9s\n",
           result->options->round_trip, result->options->rate, "size", "depth",
           "conn", "IOPS", "MB/s", "p50 us");
  for (unsigned i = 0; i < result->n_rows; i++) {
    const struct bench_row *row = &result->rows[i];

    if (!limit_project (result, row, &projection))
      continue;
    fprintf (stream, "%9s %5u %5u %9.0f %9.1f", report_size (row, size),
             row->depth, row->connections, projection.per_second,
             projection.bytes_per_second / 1e6);
    if (projection.p50 > 0)
      fprintf (stream, " %9.1f\n", projection.p50);
    else
      fprintf (stream, " %9s\n", "-");
  }
}

void
report_table (const struct bench_result *result, FILE *stream)
{
  char text[SENTENCE], date[32];

  model_of (text, sizeof text);
  date_of (date, sizeof date);
  fprintf (stream, "%s: %s; %u CPUs (%s)\n", date, target_name (result->target),
           result->cpus, text);
  print_link (&result->link, stream);
  fprintf (stream,
           "%9s %5s %5s %9s %9s %9s %9s %9s   CPU us: of a write\n"
           "%9s %5s %5s %9s %9s %9s %9s %9s %7s %7s %7s\n",
           "", "", "", "", "", "", "", "", "size", "depth", "conn", "IOPS",
           "MB/s", "p50 us", "p99 us", "p99.9 us", "client", "primary",
           "second.");
  for (unsigned i = 0; i < result->n_rows; i++) {
    const struct bench_row *row = &result->rows[i];

    fprintf (stream, "%9s %5u %5u %9.0f %9.1f %9.1f %9.1f %9.1f",
             report_size (row, text), row->depth, row->connections,
             row->per_second, row->bytes_per_second / 1e6,
             (double)row->p50 / 1e3, (double)row->p99 / 1e3,
             (double)row->p999 / 1e3);
    for (unsigned j = 0; j < BENCH_SIDES; j++)
      cpu_cell (row->cpu[j], stream);
    fputc ('\n', stream);
  }
  limit_sentence (result, text, sizeof text);
  fprintf (stream, "\n%s\n", text);
  if (result->options->rate > 0)
    print_projections (result, stream);
}

/* ---- For programs ---- */

static json_t *
known (double value)
{
  return value < 0 ? json_null () : json_real (value);
}

static json_t *
row_object (const struct bench_result *result, const struct bench_row *row)
{
  static const char *const patterns[] = {"writes", "zil", "zil+flush"};
  struct projection projection;
  json_t *object = json_pack (
      "{s:s, s:I, s:i, s:i, s:I, s:f, s:f, s:f, s:f, s:f, s:s, "
      "s:{s:o, s:o, s:o}}",
      "pattern", patterns[row->pattern], "size", (json_int_t)row->size, "depth",
      (int)row->depth, "connections", (int)row->connections, "done",
      (json_int_t)row->done, "iops", row->per_second, "bytes-per-second",
      row->bytes_per_second, "p50-us", (double)row->p50 / 1e3, "p99-us",
      (double)row->p99 / 1e3, "p999-us", (double)row->p999 / 1e3, "limit",
      limit_words[limit_of (result, row)], "cpu-us", "client",
      known (row->cpu[BENCH_CLIENT]), "primary",
      known (row->cpu[BENCH_PRIMARY]), "secondary",
      known (row->cpu[BENCH_SECONDARY]));
  json_t *projected = json_null ();

  if (limit_project (result, row, &projection))
    projected = json_pack (
        "{s:f, s:f, s:o}", "iops", projection.per_second, "bytes-per-second",
        projection.bytes_per_second, "p50-us",
        projection.p50 > 0 ? json_real (projection.p50) : json_null ());
  json_object_set_new (object, "projected", projected);
  return object;
}

static json_t *
link_object (const struct bench_link *link)
{
  json_t *pings = json_array ();

  if (!link->n) {
    json_decref (pings);
    return json_null ();
  }
  for (unsigned i = 0; i < link->n; i++)
    json_array_append_new (pings,
                           json_pack ("{s:I, s:f, s:f}", "size",
                                      (json_int_t)link->ping[i].size, "p50-us",
                                      (double)link->ping[i].p50 / 1e3, "p99-us",
                                      (double)link->ping[i].p99 / 1e3));
  return json_pack ("{s:f, s:o}", "bytes-per-second", link->bytes_per_second,
                    "pings", pings);
}

int
report_json (const struct bench_result *result, FILE *stream)
{
  char model[256], date[32], sentence[SENTENCE];
  json_t *rows = json_array (), *all;
  struct utsname system;
  int failed;

  model_of (model, sizeof model);
  date_of (date, sizeof date);
  uname (&system);
  limit_sentence (result, sentence, sizeof sentence);
  for (unsigned i = 0; i < result->n_rows; i++)
    json_array_append_new (rows, row_object (result, &result->rows[i]));
  all = json_pack (
      "{s:s, s:{s:s, s:i, s:s}, s:s, s:I, s:o, s:o, s:s}", "date", date,
      "machine", "processor", model, "cpus", (int)result->cpus, "kernel",
      system.release, "target", target_name (result->target), "volume-size",
      (json_int_t)result->target->size, "link", link_object (&result->link),
      "rows", rows, "sentence", sentence);
  failed = !all || json_dumpf (all, stream,
                               JSON_INDENT (2) | JSON_REAL_PRECISION (6)) != 0;
  json_decref (all);
  return failed || fputc ('\n', stream) == EOF ? -1 : 0;
}
