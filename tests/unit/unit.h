/* What every unit test has in common: one suite of one case, run by main.  A
 * test file defines its tests and
 *
 *   UNIT_MAIN ("name", first_test, second_test, ...)
 */
#ifndef TWINLOG_UNIT_H
#define TWINLOG_UNIT_H

#include <check.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNIT_TIMEOUT 60 /* seconds, each test */

#define UNIT_MAIN(name, ...)                                                   \
  int main (void)                                                              \
  {                                                                            \
    const TTest *const tests[] = {__VA_ARGS__};                                \
                                                                               \
    return unit_run (name, tests, sizeof tests / sizeof tests[0]);             \
  }

static inline int
unit_run (const char *name, const TTest *const tests[], size_t n)
{
  Suite *suite = suite_create (name);
  TCase *tcase = tcase_create (name);
  SRunner *runner = srunner_create (suite);
  size_t i;
  int failed;

  tcase_set_timeout (tcase, UNIT_TIMEOUT);
  for (i = 0; i < n; i++)
    tcase_add_test (tcase, tests[i]);
  suite_add_tcase (suite, tcase);
  srunner_run_all (runner, CK_ENV);
  failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* A small random source with a fixed start: a failure can be repeated. */
static inline uint64_t
unit_random (uint64_t *state)
{
  uint64_t z = *state += UINT64_C (0x9e3779b97f4a7c15);

  z = (z ^ z >> 30) * UINT64_C (0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C (0x94d049bb133111eb);
  return z ^ z >> 31;
}

/* Does TEXT say WORDS, on one line? */
#define assert_says(text, words)                                               \
  do {                                                                         \
    ck_assert_msg (strstr (text, words) != NULL, "«%s» does not say «%s»",     \
                   text, words);                                               \
    ck_assert_msg (strchr (text, '\n') == NULL, "more than a line: %s", text); \
  } while (0)

#endif
