/* Did anybody wait too long? */
#include "threads.h"

/* How many requests began and ended while OP was under way? */
static size_t
overtook (struct test *test, const struct op *op)
{
  size_t n = 0;

  for (unsigned c = 0; c < CLIENTS; c++) {
    const struct history *h = &test->clients[c].history;

    for (size_t i = 0; i < h->n; i++)
      n += h->ops[i].start > op->start && h->ops[i].end < op->end;
  }
  return n;
}

/* Nobody waits longer than the bound.  A worker that is not woken looks for
 * itself after a second: while nothing is disturbed no request takes that long
 * with many others passing it.
 */
void
judge_times (struct test *test)
{
  size_t calm = 0, slow = 0;

  for (unsigned c = 0; c < CLIENTS; c++) {
    const struct history *h = &test->clients[c].history;

    for (size_t i = 0; i < h->n; i++) {
      const struct op *op = &h->ops[i];

      if (op->end - op->start > request_bound (test))
        violation (test, "a request took %.3f s",
                   (double)(op->end - op->start) / 1e6);
      if (op->end >= test->calm_end)
        continue;
      calm++;
      slow += op->end - op->start >= 900000 && overtook (test, op) >= 100;
    }
  }
  if (calm < CLIENTS || slow >= 2)
    violation (test,
               "undisturbed, %zu requests ended, of which %zu took 0.9 s or "
               "more while others passed them: somebody was not woken",
               calm, slow);
}
