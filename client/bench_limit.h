/* What the figures mean: what limits a row, and what it would be over another
 * link.  Pure.
 */
#ifndef TWINLOG_CLIENT_BENCH_LIMIT_H
#define TWINLOG_CLIENT_BENCH_LIMIT_H

#include "bench.h"

enum limit {
  LIMIT_UNKNOWN, /* nothing here is busy, and the link was not measured */
  LIMIT_LATENCY, /* of the link */
  LIMIT_RATE,    /* of the link */
  LIMIT_CLIENT,  /* its CPU */
  LIMIT_PRIMARY,
  LIMIT_SECONDARY,
  LIMITS
};

/* A word for each, as in JSON. */
extern const char *const limit_words[LIMITS];

/* What limits ROW of RESULT. */
enum limit limit_of (const struct bench_result *result,
                     const struct bench_row *row);

/* One sentence about RESULT: one write at a time, many, and large ones. */
void limit_sentence (const struct bench_result *result, char *text,
                     size_t size);

struct projection {
  double per_second;
  double bytes_per_second;
  double p50; /* microseconds; of writes at depth 1 only, else 0 */
};

/* ROW over the link of --link.  False: it cannot be told, for the link was
 * not measured, or the row is one of chains.
 */
bool limit_project (const struct bench_result *result,
                    const struct bench_row *row, struct projection *out);

#endif
