/* A histogram of latencies with a relative error of at most 1/16, filled by
 * any number of threads at once without a lock.
 */
#ifndef TWINLOG_NET_LATENCY_H
#define TWINLOG_NET_LATENCY_H

#include <stdatomic.h>
#include <stdint.h>

/* 16 buckets for each power of two up to 2^36 microseconds (19 hours). */
#define TL_LATENCY_BUCKETS (34 * 16)

struct tl_latency {
  _Atomic uint64_t counts[TL_LATENCY_BUCKETS];
};

void tl_latency_add (struct tl_latency *latency, uint64_t microseconds);

/* The latency, in microseconds, that PERMILLE of 1000 did not exceed: the upper
 * end of its bucket.  0 where nothing was added.
 */
uint64_t tl_latency_percentile (const struct tl_latency *latency,
                                unsigned permille);

#endif
