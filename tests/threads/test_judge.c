/* The judge itself, on histories made by hand: what is possible must pass, and
 * what is not must be found.
 */
#include "threads.h"

#include <check.h>
#include <stdarg.h>
#include <stdlib.h>

static struct test test;

void
violation (struct test *t, const char *format, ...)
{
  atomic_fetch_add (&t->violations, 1);
}

static void
setup (void)
{
  static const struct test empty;

  test = empty;
}

static void
teardown (void)
{
  for (unsigned i = 0; i < CLIENTS; i++)
    history_free (&test.clients[i].history);
}

static uint64_t
id_of_write (unsigned client, unsigned number)
{
  return ((uint64_t)(client + 1) << 40) | number;
}

/* Sectors 0 and 1 of one block, written by write NUMBER of CLIENT. */
static void
wrote (unsigned client, unsigned number, uint64_t start, uint64_t end, bool ok)
{
  struct op op = {.start = start,
                  .end = end,
                  .id = id_of_write (client, number),
                  .count = 2,
                  .kind = OP_WRITE,
                  .ok = ok};

  history_add (&test.clients[client].history, &op, NULL);
}

static void
zeroed (uint64_t start, uint64_t end, bool ok)
{
  struct op op = {
      .start = start, .end = end, .count = 2, .kind = OP_ZERO, .ok = ok};

  history_add (&test.clients[2].history, &op, NULL);
}

/* A read of both sectors that saw writes A and B. */
static void
saw (uint64_t start, uint64_t end, uint64_t a, uint64_t b)
{
  struct op op = {
      .start = start, .end = end, .count = 2, .kind = OP_READ, .ok = true};
  unsigned char bytes[2 * SECTOR] = {0};

  if (a)
    history_fill (bytes, a, 0, 1);
  if (b)
    history_fill (bytes + SECTOR, b, 1, 1);
  history_add (&test.clients[3].history, &op, bytes);
}

static unsigned
found (void)
{
  /* As many undisturbed requests as are asked for. */
  test.calm_end = 1000;
  for (unsigned i = 0; i < CLIENTS; i++) {
    struct op op = {.start = 1, .end = 2, .kind = OP_READ, .first = SECTORS};

    history_add (&test.clients[4].history, &op, NULL);
  }
  judge_histories (&test);
  return atomic_load (&test.violations);
}

#define A id_of_write (0, 1)
#define B id_of_write (1, 1)

START_TEST (possible)
{
  saw (1, 5, 0, 0);
  wrote (0, 1, 10, 20, true);
  saw (15, 25, A, A);
  wrote (1, 1, 30, 60, false); /* may take effect late */
  saw (40, 50, A, A);
  zeroed (70, 80, false);
  saw (90, 95, B, B);
  saw (96, 97, 0, 0);
  ck_assert_uint_eq (found (), 0);
}
END_TEST

START_TEST (concurrent_reads_agree_on_an_order)
{
  wrote (0, 1, 10, 50, true);
  wrote (1, 1, 10, 50, true);
  saw (11, 20, B, B);
  saw (21, 30, A, A);
  ck_assert_uint_eq (found (), 0);
}
END_TEST

START_TEST (lost)
{
  wrote (0, 1, 10, 20, true);
  wrote (1, 1, 30, 40, true);
  saw (50, 60, A, A);
  ck_assert_uint_ge (found (), 1);
}
END_TEST

START_TEST (lost_to_the_beginning)
{
  wrote (0, 1, 10, 20, true);
  saw (50, 60, 0, 0);
  ck_assert_uint_ge (found (), 1);
}
END_TEST

START_TEST (zeroes_lost)
{
  wrote (0, 1, 10, 20, true);
  zeroed (30, 40, true);
  saw (50, 60, A, A);
  ck_assert_uint_ge (found (), 1);
}
END_TEST

START_TEST (going_back)
{
  wrote (0, 1, 10, 20, true);
  wrote (1, 1, 30, 90, true);
  saw (40, 45, B, B);
  saw (50, 60, A, A);
  ck_assert_uint_ge (found (), 1);
}
END_TEST

START_TEST (failed_and_going_back)
{
  wrote (0, 1, 10, 20, true);
  wrote (1, 1, 30, 35, false);
  saw (40, 45, B, B);
  saw (50, 60, A, A);
  ck_assert_uint_ge (found (), 1);
}
END_TEST

START_TEST (from_the_future)
{
  saw (10, 20, A, A);
  wrote (0, 1, 30, 40, true);
  ck_assert_uint_ge (found (), 1);
}
END_TEST

START_TEST (from_nowhere)
{
  saw (10, 20, A, A);
  ck_assert_uint_ge (found (), 1);
}
END_TEST

START_TEST (torn_block)
{
  wrote (0, 1, 10, 50, true);
  wrote (1, 1, 10, 50, true);
  saw (20, 60, A, B);
  ck_assert_uint_ge (found (), 1);
}
END_TEST

START_TEST (torn_sector)
{
  struct op op = {.start = 1, .end = 2, .count = 1, .ok = true};
  unsigned char bytes[SECTOR];

  wrote (0, 1, 0, 1, true);
  history_fill (bytes, A, 0, 1);
  bytes[SECTOR - 1] ^= 1;
  history_add (&test.clients[3].history, &op, bytes);
  ck_assert_uint_ge (found (), 1);
}
END_TEST

START_TEST (too_long)
{
  wrote (0, 1, 10, 20 + request_bound (&test), true);
  ck_assert_uint_ge (found (), 1);
}
END_TEST

int
main (void)
{
  Suite *suite = suite_create ("judge");
  TCase *tcase = tcase_create ("histories");
  SRunner *runner = srunner_create (suite);
  int failed;

  tcase_add_checked_fixture (tcase, setup, teardown);
  tcase_add_test (tcase, possible);
  tcase_add_test (tcase, concurrent_reads_agree_on_an_order);
  tcase_add_test (tcase, lost);
  tcase_add_test (tcase, lost_to_the_beginning);
  tcase_add_test (tcase, zeroes_lost);
  tcase_add_test (tcase, going_back);
  tcase_add_test (tcase, failed_and_going_back);
  tcase_add_test (tcase, from_the_future);
  tcase_add_test (tcase, from_nowhere);
  tcase_add_test (tcase, torn_block);
  tcase_add_test (tcase, torn_sector);
  tcase_add_test (tcase, too_long);
  suite_add_tcase (suite, tcase);
  srunner_run_all (runner, CK_NORMAL);
  failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
