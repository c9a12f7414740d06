/* What every unit test has in common: one suite, with a case for each test, run
 * by main.  A test file defines its tests and
 *
 *   UNIT_MAIN ("name", first_test, second_test, ...)
 *
 * Each test runs in a process of its own.  They share the directory
 * unit_scratch, which is removed at the end, however they end.
 */
#ifndef TWINLOG_UNIT_H
#define TWINLOG_UNIT_H

#include <check.h>
#include <ftw.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNIT_TIMEOUT 60 /* seconds, each test */

#define UNIT_MAIN(name, ...)                                                   \
  int main (void)                                                              \
  {                                                                            \
    const TTest *const tests[] = {__VA_ARGS__};                                \
                                                                               \
    return unit_run (name, tests, sizeof tests / sizeof tests[0]);             \
  }

static char unit_scratch[PATH_MAX / 2];

static inline int
unit_remove (const char *path, const struct stat *st, int type, struct FTW *ftw)
{
  return remove (path);
}

/* The path of NAME in the scratch directory, valid until the fourth call from
 * now.
 */
static inline const char *
unit_path (const char *name)
{
  static char paths[4][PATH_MAX];
  static unsigned next;
  char *path = paths[next++ % 4];

  ck_assert_int_lt (snprintf (path, PATH_MAX, "%s/%s", unit_scratch, name),
                    PATH_MAX);
  return path;
}

static inline int
unit_run (const char *name, const TTest *const tests[], size_t n)
{
  Suite *suite = suite_create (name);
  SRunner *runner = srunner_create (suite);
  const char *base = getenv ("TL_TMPFS"); /* with-tmpfs.sh */
  size_t i;
  int failed;

  if (base == NULL)
    base = getenv ("TMPDIR");
  snprintf (unit_scratch, sizeof unit_scratch, "%s/twinlog-unit-XXXXXX",
            base ? base : "/tmp");
  if (mkdtemp (unit_scratch) == NULL) {
    perror (unit_scratch);
    return EXIT_FAILURE;
  }
  /* CK_RUN_CASE chooses one by its name. */
  for (i = 0; i < n; i++) {
    TCase *tcase = tcase_create (tests[i]->name);

    tcase_set_timeout (tcase, UNIT_TIMEOUT);
    tcase_add_test (tcase, tests[i]);
    suite_add_tcase (suite, tcase);
  }
  srunner_run_all (runner, CK_ENV);
  failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  nftw (unit_scratch, unit_remove, 16, FTW_DEPTH | FTW_PHYS);
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

/* Make the file NAME of the scratch directory hold TEXT. */
static inline void
unit_file (const char *name, const char *text)
{
  FILE *file = fopen (unit_path (name), "w");

  ck_assert_ptr_nonnull (file);
  ck_assert_int_ge (fputs (text, file), 0);
  ck_assert_int_eq (fclose (file), 0);
}

/* Does TEXT say WORDS, on one line? */
#define assert_says(text, words)                                               \
  do {                                                                         \
    ck_assert_msg (strstr (text, words) != NULL, "«%s» does not say «%s»",     \
                   text, words);                                               \
    ck_assert_msg (strchr (text, '\n') == NULL, "more than a line: %s", text); \
  } while (0)

#endif
