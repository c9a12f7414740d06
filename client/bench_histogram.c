#include "bench_histogram.h"

#include <math.h>

/* Durations below 2 * HISTOGRAM_FINE have a bucket each; above, an octave is
 * HISTOGRAM_FINE buckets, found by the bits below the highest one.
 */
static unsigned
bucket_of (uint64_t value)
{
  unsigned shift, bucket;

  if (value < 2 * HISTOGRAM_FINE)
    return (unsigned)value;
  shift = 63 - (unsigned)__builtin_clzll (value) - 6;
  bucket = shift * HISTOGRAM_FINE + (unsigned)(value >> shift);
  return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

/* The largest value of a bucket. */
static uint64_t
most_of (unsigned bucket)
{
  unsigned shift;

  if (bucket < 2 * HISTOGRAM_FINE)
    return bucket;
  shift = bucket / HISTOGRAM_FINE - 1;
  return ((uint64_t)(bucket % HISTOGRAM_FINE + HISTOGRAM_FINE + 1) << shift) -
         1;
}

void
histogram_add (struct histogram *histogram, uint64_t nanoseconds)
{
  histogram->count++;
  histogram->buckets[bucket_of (nanoseconds)]++;
}

void
histogram_merge (struct histogram *histogram, const struct histogram *other)
{
  histogram->count += other->count;
  for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
    histogram->buckets[i] += other->buckets[i];
}

uint64_t
histogram_part (const struct histogram *histogram, double part)
{
  double wanted = ceil (part * (double)histogram->count);
  uint64_t seen = 0;

  if (histogram->count == 0)
    return 0;
  for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
    seen += histogram->buckets[i];
    if (seen > 0 && (double)seen >= wanted)
      return most_of (i);
  }
  return most_of (HISTOGRAM_BUCKETS - 1);
}
