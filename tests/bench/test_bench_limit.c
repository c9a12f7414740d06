/* What limits a row, and what it would be over another link. */
#include "bench_limit.h"

#include "../unit/unit.h"

static struct bench_options options;
static struct bench_target target;
static struct bench_row row;
static struct bench_result result = {.options = &options,
                                     .target = &target,
                                     .cpus = 4,
                                     .rows = &row,
                                     .n_rows = 1};
static struct projection projection;

/* One write of 4 KiB at a time: 100 us, of which a ping is 60, and 20 us of
 * CPU all in all; the link has 1 GB/s.
 */
static void
begin (void)
{
  row = (struct bench_row){.size = 4096,
                           .depth = 1,
                           .connections = 1,
                           .done = 10000,
                           .per_second = 10000,
                           .bytes_per_second = 4096e4,
                           .p50 = 100000,
                           .cpu = {5, 10, 5}};
  result.link = (struct bench_link){
      .n = 2,
      .ping = {{.size = 512, .p50 = 1000}, {.size = 4096, .p50 = 60000}},
      .bytes_per_second = 1e9};
  options = (struct bench_options){.round_trip = 10, .rate = 100};
}

static void
is (enum limit expected)
{
  enum limit got = limit_of (&result, &row);

  ck_assert_msg (got == expected, "%s, expected %s", limit_words[got],
                 limit_words[expected]);
}

START_TEST (link_limits)
{
  begin ();
  is (LIMIT_LATENCY);
  result.link.ping[1].p50 = 50000;
  is (LIMIT_LATENCY);
  result.link.ping[1].p50 = 49000;
  is (LIMIT_PRIMARY);
  row.bytes_per_second = 0.8e9;
  is (LIMIT_RATE);
  result.link.n = 0;
  is (LIMIT_UNKNOWN);
}
END_TEST

START_TEST (cpu_limits)
{
  begin ();
  row.per_second = 150000; /* 3 of 4 CPUs */
  is (LIMIT_LATENCY);
  row.per_second = 170000;
  is (LIMIT_PRIMARY);
  row.cpu[BENCH_SECONDARY] = 11;
  is (LIMIT_SECONDARY);
  row.cpu[BENCH_CLIENT] = 12;
  is (LIMIT_CLIENT);
  result.link.n = 0; /* this is known without it */
  is (LIMIT_CLIENT);
}
END_TEST

/* One thread of the client drives one connection. */
START_TEST (client_thread)
{
  begin ();
  row.cpu[BENCH_PRIMARY] = row.cpu[BENCH_SECONDARY] = 1;
  row.per_second = 185000;
  is (LIMIT_CLIENT);
  row.connections = 2;
  is (LIMIT_LATENCY);
}
END_TEST

START_TEST (unknown_sides)
{
  begin ();
  row.cpu[BENCH_PRIMARY] = row.cpu[BENCH_SECONDARY] = -1;
  is (LIMIT_LATENCY);
  result.link.ping[1].p50 = 0;
  is (LIMIT_UNKNOWN);
}
END_TEST

START_TEST (sentence)
{
  char text[1024], small[16];

  begin ();
  limit_sentence (&result, text, sizeof text);
  ck_assert_str_eq (text, "What limits the pair: for one small write at a "
                          "time, link latency (60 of 100 us).");
  limit_sentence (&result, small, sizeof small);
  ck_assert_str_eq (small, "What limits the");
  row.pattern = BENCH_CHAINS;
  limit_sentence (&result, text, sizeof text);
  ck_assert_str_eq (text, "");
}
END_TEST

/* It is projected, to so many writes a second. */
static void
projects (double per_second)
{
  ck_assert (limit_project (&result, &row, &projection));
  ck_assert_double_eq_tol (projection.per_second, per_second, 1e-3);
}

START_TEST (latency_projected)
{
  double wire;

  begin ();
  wire = (4096 + 64) * 8 / (100e3 * 0.94); /* us: 100 Gbit/s */
  projects (1e6 / (50 + wire));
  ck_assert_double_eq_tol (projection.p50, 100 - 60 + 10 + wire, 1e-6);
  ck_assert_double_eq_tol (projection.bytes_per_second,
                           4096 * projection.per_second, 1e-3);
  options.round_trip = 1000;
  projects (1e6 / (1040 + wire));
  ck_assert_double_eq_tol (projection.p50, 1040 + wire, 1e-6);
}
END_TEST

START_TEST (rate_projected)
{
  begin ();
  row.depth = 16;
  row.per_second = 150000;
  options.rate = 1;
  projects (0.94e9 / 8 / (4096 + 64));
  ck_assert_double_eq (projection.p50, 0); /* it waits in a queue */
}
END_TEST

START_TEST (cpu_projected)
{
  begin ();
  row.depth = 32;
  row.per_second = 300000;
  options.rate = 1000;
  projects (4e6 / 15); /* client and primary share 4 CPUs and take 15 us */
  row.cpu[BENCH_SECONDARY] = 20;
  projects (4e6 / 20);
}
END_TEST

START_TEST (not_projected)
{
  begin ();
  row.pattern = BENCH_CHAINS;
  ck_assert (!limit_project (&result, &row, &projection));
  begin ();
  result.link.n = 0;
  ck_assert (!limit_project (&result, &row, &projection));
  begin ();
  options.rate = 0;
  ck_assert (!limit_project (&result, &row, &projection));
}
END_TEST

UNIT_MAIN ("bench_limit", link_limits, cpu_limits, client_thread, unknown_sides,
           sentence, latency_projected, rate_projected, cpu_projected,
           not_projected)
