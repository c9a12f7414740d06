/* Durations counted in buckets, each 1/64 wide: bounded memory, however many
 * there are.  One thread at a time.
 */
#ifndef TWINLOG_CLIENT_BENCH_HISTOGRAM_H
#define TWINLOG_CLIENT_BENCH_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_FINE 64u                       /* buckets of an octave */
#define HISTOGRAM_BUCKETS (HISTOGRAM_FINE * 40u) /* to nearly 10 hours */

struct histogram {
  uint64_t count;
  uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add (struct histogram *histogram, uint64_t nanoseconds);

/* What OTHER counted, too. */
void histogram_merge (struct histogram *histogram,
                      const struct histogram *other);

/* Nanoseconds that PART (0.5: half) of all did not exceed, within 1/64; 0
 * where there is none.
 */
uint64_t histogram_part (const struct histogram *histogram, double part);

#endif
