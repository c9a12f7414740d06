/* The percentiles against those of the sorted values themselves. */
#include "bench_histogram.h"

#include "../unit/unit.h"

#include <math.h>

#define VALUES 20000

static struct histogram histogram, other;
static uint64_t values[VALUES];

static int
compare (const void *a, const void *b)
{
  const uint64_t *x = a, *y = b;

  return *x < *y ? -1 : *x > *y;
}

/* Magnitudes from 1 ns to hours, each as often. */
static void
fill (void)
{
  srand48 (1);
  for (unsigned i = 0; i < VALUES; i++)
    values[i] = (uint64_t)exp (drand48 () * 31);
}

static void
check_part (double part)
{
  uint64_t exact = values[(unsigned)ceil (part * VALUES) - 1];
  uint64_t got = histogram_part (&histogram, part);

  ck_assert_uint_ge (got, exact);
  ck_assert_uint_le (got - exact, exact / HISTOGRAM_FINE);
}

START_TEST (parts)
{
  fill ();
  for (unsigned i = 0; i < VALUES; i++)
    histogram_add (i % 3 ? &histogram : &other, values[i]);
  histogram_merge (&histogram, &other);
  ck_assert_uint_eq (histogram.count, VALUES);
  qsort (values, VALUES, sizeof values[0], compare);
  for (unsigned i = 1; i < 1000; i++)
    check_part (i / 1000.0);
  check_part (0.9999);
  check_part (1);
}
END_TEST

START_TEST (small_values_are_exact)
{
  for (uint64_t value = 0; value < 2 * HISTOGRAM_FINE; value++) {
    memset (&histogram, 0, sizeof histogram);
    histogram_add (&histogram, value);
    ck_assert_uint_eq (histogram_part (&histogram, 0.5), value);
  }
}
END_TEST

START_TEST (nothing_and_too_much)
{
  ck_assert_uint_eq (histogram_part (&histogram, 0.5), 0);
  histogram_add (&histogram, UINT64_MAX);
  ck_assert_uint_gt (histogram_part (&histogram, 0.5),
                     (UINT64_C (1) << 45) - 2);
}
END_TEST

UNIT_MAIN ("bench_histogram", parts, small_values_are_exact,
           nothing_and_too_much)
