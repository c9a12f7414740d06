#include "net/latency.h"

#include "unit.h"

static struct tl_latency latency; /* of each test's own process */

START_TEST (nothing_added_is_zero)
{
  ck_assert_uint_eq (tl_latency_percentile (&latency, 500), 0);
}
END_TEST

START_TEST (one_value_is_every_percentile)
{
  for (uint64_t value = 0; value < UINT64_C (1) << 37;
       value = value * 5 / 4 + 1) {
    uint64_t shown;

    memset (&latency, 0, sizeof latency);
    tl_latency_add (&latency, value);
    shown = tl_latency_percentile (&latency, 500);
    ck_assert_uint_ge (shown, value);
    ck_assert_uint_le (shown, value + value / 16);
    ck_assert_uint_eq (tl_latency_percentile (&latency, 1), shown);
    ck_assert_uint_eq (tl_latency_percentile (&latency, 999), shown);
  }
}
END_TEST

START_TEST (percentiles_of_many)
{
  static const unsigned permille[] = {1, 10, 500, 900, 990, 999, 1000};

  for (uint64_t value = 1; value <= 100000; value++)
    tl_latency_add (&latency, value);
  for (size_t i = 0; i < sizeof permille / sizeof *permille; i++) {
    uint64_t exact = 100 * permille[i];
    uint64_t shown = tl_latency_percentile (&latency, permille[i]);

    ck_assert_uint_ge (shown, exact);
    ck_assert_uint_le (shown, exact + exact / 16);
  }
}
END_TEST

START_TEST (huge_values_stay_in_the_last_bucket)
{
  tl_latency_add (&latency, UINT64_MAX);
  tl_latency_add (&latency, UINT64_C (1) << 40);
  ck_assert_uint_eq (tl_latency_percentile (&latency, 1),
                     (UINT64_C (1) << 37) - 1);
  ck_assert_uint_eq (tl_latency_percentile (&latency, 999),
                     (UINT64_C (1) << 37) - 1);
}
END_TEST

UNIT_MAIN ("latency", nothing_added_is_zero, one_value_is_every_percentile,
           percentiles_of_many, huge_values_stay_in_the_last_bucket)
