#include "net/latency.h"

/* Values below 16 have a bucket each; above, a power of two has 16. */
static unsigned
bucket_of (uint64_t value)
{
  unsigned shift, bucket;

  if (value < 16)
    return (unsigned)value;
  shift = 59 - (unsigned)__builtin_clzll (value);
  bucket = (shift << 4) + (unsigned)(value >> shift);
  return bucket < TL_LATENCY_BUCKETS ? bucket : TL_LATENCY_BUCKETS - 1;
}

/* The largest value of a bucket. */
static uint64_t
upper_end (unsigned bucket)
{
  unsigned shift;

  if (bucket < 32)
    return bucket;
  shift = (bucket >> 4) - 1;
  return ((uint64_t)(16 + (bucket & 15) + 1) << shift) - 1;
}

void
tl_latency_add (struct tl_latency *latency, uint64_t microseconds)
{
  atomic_fetch_add_explicit (&latency->counts[bucket_of (microseconds)], 1,
                             memory_order_relaxed);
}

uint64_t
tl_latency_percentile (const struct tl_latency *latency, unsigned permille)
{
  uint64_t total = 0, seen = 0, rank;

  for (unsigned i = 0; i < TL_LATENCY_BUCKETS; i++)
    total += atomic_load_explicit (&latency->counts[i], memory_order_relaxed);
  if (!total)
    return 0;
  rank = (total * permille + 999) / 1000;
  for (unsigned i = 0; i < TL_LATENCY_BUCKETS; i++) {
    seen += atomic_load_explicit (&latency->counts[i], memory_order_relaxed);
    if (seen >= rank)
      return upper_end (i);
  }
  return upper_end (TL_LATENCY_BUCKETS - 1);
}
