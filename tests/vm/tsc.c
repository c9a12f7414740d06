/* Prints how many thousand times a second this processor's time stamp counter
 * counts, which emulated machines see as their own; 0 where there is none.
 * A kernel that measures this itself, while others use the processor too, is
 * often wrong by a factor, and so is its clock then. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#ifdef __x86_64__
#include <x86intrin.h>

#define TRIES 1000
#define INTERVAL 200000000 /* nanoseconds */

struct moment {
  int64_t ns;
  uint64_t ticks;
};

static int64_t
now (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC_RAW, &t);
  return t.tv_sec * INT64_C (1000000000) + t.tv_nsec;
}

/* Both clocks at once: of many readings that with the least time around it. */
static struct moment
look (void)
{
  struct moment best = {0};
  int64_t least = INT64_MAX;

  for (int i = 0; i < TRIES; i++) {
    int64_t before = now ();
    uint64_t ticks = __rdtsc ();
    int64_t after = now ();

    if (after - before < least) {
      least = after - before;
      best.ns = before + least / 2;
      best.ticks = ticks;
    }
  }
  return best;
}

int
main (void)
{
  const struct timespec interval = {.tv_nsec = INTERVAL};
  struct moment begin = look (), end;

  nanosleep (&interval, NULL);
  end = look ();
  printf ("%" PRIu64 "\n", (end.ticks - begin.ticks) * UINT64_C (1000000) /
                               (uint64_t)(end.ns - begin.ns));
  return 0;
}
#else
int
main (void)
{
  puts ("0");
  return 0;
}
#endif
