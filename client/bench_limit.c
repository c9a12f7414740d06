#include "bench_limit.h"

#include "core/frame.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define BUSY 0.8       /* of a rate, or of the CPUs: it is the limit */
#define ONE_CPU 0.9    /* of its CPU a connection's thread of the client */
#define USABLE 0.94    /* of a link's rate: what headers leave to TCP */
#define GBIT (1e9 / 8) /* a second, in bytes */

const char *const limit_words[LIMITS] = {
    [LIMIT_UNKNOWN] = "unknown",     [LIMIT_LATENCY] = "link-latency",
    [LIMIT_RATE] = "link-rate",      [LIMIT_CLIENT] = "client-cpu",
    [LIMIT_PRIMARY] = "primary-cpu", [LIMIT_SECONDARY] = "secondary-cpu",
};

/* Nanoseconds of a ping of that size, 0: it was not measured. */
static uint64_t
ping_of (const struct bench_link *link, uint32_t size)
{
  for (unsigned i = 0; i < link->n; i++)
    if (link->ping[i].size == size)
      return link->ping[i].p50;
  return 0;
}

/* The side that computes longest for a write, BENCH_SIDES: nothing is known. */
static unsigned
busiest (const struct bench_row *row)
{
  unsigned most = BENCH_SIDES;

  for (unsigned i = 0; i < BENCH_SIDES; i++)
    if (row->cpu[i] >= 0 &&
        (most == BENCH_SIDES || row->cpu[i] > row->cpu[most]))
      most = i;
  return most;
}

/* How many CPUs of this machine ROW kept busy. */
static double
cpus_busy (const struct bench_row *row)
{
  double sum = 0;

  for (unsigned i = 0; i < BENCH_SIDES; i++)
    if (row->cpu[i] > 0)
      sum += row->cpu[i];
  return sum * row->per_second / 1e6;
}

enum limit
limit_of (const struct bench_result *result, const struct bench_row *row)
{
  uint64_t ping = ping_of (&result->link, row->size);
  unsigned most = busiest (row);
  enum limit side =
      most == BENCH_SIDES ? LIMIT_UNKNOWN : (enum limit) (LIMIT_CLIENT + most);

  if (result->link.n &&
      row->bytes_per_second >= BUSY * result->link.bytes_per_second)
    return LIMIT_RATE;
  if (cpus_busy (row) >= BUSY * result->cpus)
    return side;
  if (row->cpu[BENCH_CLIENT] * row->per_second / 1e6 >=
      ONE_CPU * row->connections)
    return LIMIT_CLIENT;
  if (!ping)
    return LIMIT_UNKNOWN;
  return 2 * ping >= row->p50 ? LIMIT_LATENCY : side;
}

/* ---- The sentence ---- */

static void __attribute__ ((format (printf, 3, 4)))
add (char *text, size_t size, const char *format, ...)
{
  size_t used = strlen (text);
  va_list list;

  va_start (list, format);
  vsnprintf (text + used, size - used, format, list);
  va_end (list);
}

static void
explain (const struct bench_result *result, const struct bench_row *row,
         char *text, size_t size)
{
  static const char *const sides[] = {"client", "primary", "secondary"};
  enum limit limit = limit_of (result, row);
  uint64_t ping = ping_of (&result->link, row->size);

  switch (limit) {
  case LIMIT_LATENCY:
    add (text, size, "link latency (%.0f of %.0f us)", (double)ping / 1e3,
         (double)row->p50 / 1e3);
    return;
  case LIMIT_RATE:
    add (text, size, "link rate (%.0f of %.0f MB/s)",
         row->bytes_per_second / 1e6, result->link.bytes_per_second / 1e6);
    return;
  case LIMIT_UNKNOWN:
    add (text, size,
         "the link or what is beyond it (not measured; %.1f of %u CPUs are "
         "busy here)",
         cpus_busy (row), result->cpus);
    return;
  default:
    add (text, size,
         "CPU of the %s (%.1f us of it a write; %.1f of %u CPUs "
         "are busy)",
         sides[limit - LIMIT_CLIENT], row->cpu[limit - LIMIT_CLIENT],
         cpus_busy (row), result->cpus);
  }
}

void
limit_sentence (const struct bench_result *result, char *text, size_t size)
{
  const struct bench_row *one = NULL, *many = NULL, *large = NULL;

  for (unsigned i = 0; i < result->n_rows; i++) {
    const struct bench_row *row = &result->rows[i];

    if (row->pattern != BENCH_WRITES)
      continue;
    if (!one || row->size < one->size ||
        (row->size == one->size &&
         row->depth * row->connections < one->depth * one->connections))
      one = row;
    if (!many || row->per_second > many->per_second)
      many = row;
    if (!large || row->bytes_per_second > large->bytes_per_second)
      large = row;
  }
  text[0] = '\0';
  if (!one)
    return;
  add (text, size, "What limits the pair: for %s, ",
       one->depth * one->connections == 1 ? "one small write at a time"
                                          : "the fewest small writes at once");
  explain (result, one, text, size);
  if (many != one) {
    add (text, size, "; for the most writes a second, ");
    explain (result, many, text, size);
  }
  if (large != one && large != many) {
    add (text, size, "; for the most bytes a second, ");
    explain (result, large, text, size);
  }
  add (text, size, ".");
}

/* ---- Another link ---- */

/* See the formula in twinlog-bench(1). */
bool
limit_project (const struct bench_result *result, const struct bench_row *row,
               struct projection *out)
{
  double rate = result->options->rate * GBIT * USABLE;
  double ping = (double)ping_of (&result->link, row->size) / 1e3;
  double wire = (row->size + TL_FRAME_SIZE) / rate * 1e6;
  double link = result->options->round_trip + wire;
  double in_flight = (double)row->depth * row->connections;
  double each = in_flight / row->per_second * 1e6; /* microseconds, Little */
  double here = row->cpu[BENCH_CLIENT] + row->cpu[BENCH_PRIMARY];
  double busy =
      here > row->cpu[BENCH_SECONDARY] ? here : row->cpu[BENCH_SECONDARY];

  if (row->pattern != BENCH_WRITES || !ping || result->options->rate <= 0)
    return false;
  each = (each > ping ? each - ping : 0) + link;
  out->per_second = in_flight / each * 1e6;
  if (out->per_second > 1e6 / wire)
    out->per_second = 1e6 / wire;
  if (row->cpu[BENCH_PRIMARY] >= 0 && row->cpu[BENCH_SECONDARY] >= 0 &&
      out->per_second > result->cpus * 1e6 / busy)
    out->per_second = result->cpus * 1e6 / busy;
  out->bytes_per_second = out->per_second * row->size;
  out->p50 = 0;
  if (in_flight == 1) {
    double p50 = (double)row->p50 / 1e3;

    out->p50 = (p50 > ping ? p50 - ping : 0) + link;
  }
  return true;
}
