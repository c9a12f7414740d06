/* The only source of chance of the simulator: xoshiro256**, seeded through
 * splitmix64 (Blackman and Vigna, «Scrambled linear pseudorandom number
 * generators», 2018).  The same seed gives the same run on any machine.
 */
#ifndef TWINLOG_SIM_RNG_H
#define TWINLOG_SIM_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct rng {
  uint64_t s[4];
};

static inline void
rng_seed (struct rng *rng, uint64_t seed)
{
  for (unsigned i = 0; i < 4; i++) {
    seed += 0x9e3779b97f4a7c15u;
    uint64_t z = seed;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    rng->s[i] = z ^ (z >> 31);
  }
}

static inline uint64_t
rng_next (struct rng *rng)
{
  uint64_t *s = rng->s;
  uint64_t five = s[1] * 5;
  uint64_t result = ((five << 7) | (five >> 57)) * 9;
  uint64_t t = s[1] << 17;

  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = (s[3] << 45) | (s[3] >> 19);
  return result;
}

/* A number from 0 to N-1; N > 0. */
static inline uint64_t
rng_below (struct rng *rng, uint64_t n)
{
  return rng_next (rng) % n;
}

/* A number from LOW to HIGH, both included. */
static inline uint64_t
rng_between (struct rng *rng, uint64_t low, uint64_t high)
{
  return low + rng_below (rng, high - low + 1);
}

/* True in PERCENT of a hundred cases. */
static inline bool
rng_percent (struct rng *rng, unsigned percent)
{
  return rng_below (rng, 100) < percent;
}

#endif
