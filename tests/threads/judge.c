/* Was what the clients saw possible?
 *
 * Each sector is a register whose values are the ids of writes, no two alike.
 * For those linearizability is decided without a search (Gibbons and Korach,
 * «Testing shared memories», 1997): a value with its write and its reads spans
 * from the first of their ends to the last of their starts.  Where the end
 * comes first, the value must have stood all the time between (forward zone),
 * else it must have stood at some moment in between (backward zone).  The
 * history is linearizable if and only if no two forward zones overlap, no
 * backward zone lies within a forward one, and no read ends before its write
 * starts.  A write that failed may have taken effect at any time from its
 * start on, or never: it has no end, and counts only where it was read.
 *
 * Zeroes have no id, so that less is known: a zero request that succeeded and
 * each read of zeroes is a backward zone of its own, and a read of zeroes must
 * not come after a write that came after every zero request.
 */
#include "threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A value of a sector: one write. */
struct value {
  uint64_t id, start;
  uint64_t first_end, last_start; /* of the write and all reads of it */
  bool counts;                    /* it succeeded, or was read */
};

struct zone {
  uint64_t low, high;
  uint64_t id; /* 0: zeroes */
  bool forward;
};

/* A request that touched a sector, and whose it was. */
struct touch {
  const struct op *op;
  const struct history *history;
};

/* What is judged at a time: one sector. */
struct sector {
  struct test *test;
  uint32_t number;
  const struct touch *touches; /* by client, then in order of time */
  size_t n_touches;
  struct value *values; /* in order of id */
  size_t n_values;
  struct zone *zones;
  size_t n_zones;
  const struct op **zeroes, **zero_reads;
  size_t n_zeroes, n_zero_reads;
};

static void *
get (size_t n, size_t size)
{
  void *memory = calloc (n + 1, size);

  if (!memory)
    abort ();
  return memory;
}

/* ---- One sector as a register ---- */

static int
by_id (const void *a, const void *b)
{
  const struct value *x = a, *y = b;

  return x->id < y->id ? -1 : x->id > y->id;
}

static int
by_first_end (const void *a, const void *b)
{
  const struct value *x = a, *y = b;

  return x->first_end < y->first_end ? -1 : x->first_end > y->first_end;
}

static int
by_low (const void *a, const void *b)
{
  const struct zone *x = a, *y = b;

  return x->low < y->low ? -1 : x->low > y->low;
}

static void
add_value (struct sector *s, const struct op *op)
{
  struct value *value = &s->values[s->n_values++];

  value->id = op->id;
  value->start = value->last_start = op->start;
  value->first_end = end_of (op);
  value->counts = op->ok;
}

static void
add_read (struct sector *s, const struct op *op, uint64_t id)
{
  struct value key = {.id = id}, *value;

  if (id == 0) {
    s->zero_reads[s->n_zero_reads++] = op;
    return;
  }
  value = id == TORN ? NULL
                     : bsearch (&key, s->values, s->n_values, sizeof *s->values,
                                by_id);
  if (!value) {
    violation (s->test, "sector %u: a read returned what nobody wrote there",
               s->number);
    return;
  }
  if (op->end < value->start)
    violation (s->test, "sector %u: write %llx was read before it began",
               s->number, (unsigned long long)id);
  value->counts = true;
  if (op->end < value->first_end)
    value->first_end = op->end;
  if (op->start > value->last_start)
    value->last_start = op->start;
}

static void
add_zone (struct sector *s, uint64_t id, uint64_t first_end,
          uint64_t last_start)
{
  struct zone *zone = &s->zones[s->n_zones++];

  zone->id = id;
  zone->forward = first_end < last_start;
  zone->low = zone->forward ? first_end : last_start;
  zone->high = zone->forward ? last_start : first_end;
}

static void
judge_zones (struct sector *s)
{
  const struct zone *widest = NULL; /* the forward one that ends last */

  qsort (s->zones, s->n_zones, sizeof *s->zones, by_low);
  for (size_t i = 0; i < s->n_zones; i++) {
    const struct zone *zone = &s->zones[i];

    if (widest && zone->low > widest->low &&
        (zone->forward ? zone->low < widest->high : zone->high < widest->high))
      violation (s->test,
                 "sector %u: write %llx stood from %.6f to %.6f s, but write "
                 "%llx at some time from %.6f to %.6f s",
                 s->number, (unsigned long long)widest->id,
                 (double)widest->low / 1e6, (double)widest->high / 1e6,
                 (unsigned long long)zone->id, (double)zone->low / 1e6,
                 (double)zone->high / 1e6);
    if (zone->forward && (!widest || zone->high > widest->high))
      widest = zone;
  }
}

static int
by_start (const void *a, const void *b)
{
  const struct op *x = *(const struct op *const *)a;
  const struct op *y = *(const struct op *const *)b;

  return x->start < y->start ? -1 : x->start > y->start;
}

/* LAST[i]: the last end of the first I zero requests, in order of start; the
 * volume begins as zeroes.
 */
static uint64_t *
last_zeroes (struct sector *s)
{
  uint64_t *last = get (s->n_zeroes, sizeof *last);

  qsort (s->zeroes, s->n_zeroes, sizeof *s->zeroes, by_start);
  for (size_t i = 0; i < s->n_zeroes; i++) {
    last[i + 1] = end_of (s->zeroes[i]);
    if (last[i] > last[i + 1])
      last[i + 1] = last[i];
  }
  return last;
}

/* How many zero requests of this sector may come before END? */
static size_t
zeroes_before (const struct sector *s, uint64_t end)
{
  size_t low = 0, high = s->n_zeroes;

  while (low < high) {
    size_t middle = (low + high) / 2;

    if (s->zeroes[middle]->start <= end)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static void
judge_zero_reads (struct sector *s)
{
  uint64_t *newest = get (s->n_values, sizeof *newest);
  uint64_t *last = last_zeroes (s);

  /* newest[i]: the last start of the values that stood before values[i] had
   * its first end, that one included.
   */
  qsort (s->values, s->n_values, sizeof *s->values, by_first_end);
  for (size_t i = 0; i < s->n_values; i++) {
    newest[i] = s->values[i].start;
    if (i > 0 && newest[i - 1] > newest[i])
      newest[i] = newest[i - 1];
  }
  for (size_t i = 0; i < s->n_zero_reads; i++) {
    const struct op *read = s->zero_reads[i];
    size_t low = 0, high = s->n_values;

    while (low < high) {
      size_t middle = (low + high) / 2;

      if (s->values[middle].first_end < read->start)
        low = middle + 1;
      else
        high = middle;
    }
    if (low > 0 && last[zeroes_before (s, read->end)] < newest[low - 1])
      violation (s->test,
                 "sector %u: zeroes were read at %.6f s, after a write that "
                 "began at %.6f s",
                 s->number, (double)read->end / 1e6,
                 (double)newest[low - 1] / 1e6);
  }
  free (newest);
  free (last);
}

static void
judge_sector (struct sector *s)
{
  s->n_values = s->n_zones = s->n_zeroes = s->n_zero_reads = 0;
  for (size_t i = 0; i < s->n_touches; i++) {
    const struct op *op = s->touches[i].op;

    if (op->kind == OP_WRITE)
      add_value (s, op); /* ids grow with client and time: in order */
    else if (op->kind == OP_ZERO)
      s->zeroes[s->n_zeroes++] = op;
  }
  for (size_t i = 0; i < s->n_touches; i++) {
    const struct op *op = s->touches[i].op;

    if (op->kind == OP_READ && op->ok)
      add_read (s, op,
                s->touches[i].history->seen[op->seen + s->number - op->first]);
  }
  for (size_t i = 0; i < s->n_values; i++)
    if (s->values[i].counts)
      add_zone (s, s->values[i].id, s->values[i].first_end,
                s->values[i].last_start);
  for (size_t i = 0; i < s->n_zeroes; i++)
    if (s->zeroes[i]->ok)
      add_zone (s, 0, s->zeroes[i]->end, s->zeroes[i]->start);
  for (size_t i = 0; i < s->n_zero_reads; i++)
    add_zone (s, 0, s->zero_reads[i]->end, s->zero_reads[i]->start);
  judge_zones (s);
  judge_zero_reads (s);
}

/* Put each request with all sectors that it touched: those of sector I are
 * from begin[I] to begin[I + 1].  The caller frees the result.
 */
static struct touch *
sort_touches (struct test *test, size_t begin[SECTORS + 1])
{
  size_t at[SECTORS + 1] = {0};
  struct touch *touches = NULL;

  for (unsigned turn = 0; turn < 2; turn++) {
    for (unsigned c = 0; c < CLIENTS; c++) {
      const struct history *h = &test->clients[c].history;

      for (size_t i = 0; i < h->n; i++)
        for (uint32_t s = 0; s < h->ops[i].count; s++) {
          size_t *next = &at[h->ops[i].first + s];

          if (turn == 1)
            touches[*next] = (struct touch){&h->ops[i], h};
          ++*next;
        }
    }
    if (turn == 1)
      break;
    begin[0] = 0;
    for (unsigned s = 0; s < SECTORS; s++) {
      begin[s + 1] = begin[s] + at[s];
      at[s] = begin[s];
    }
    touches = get (begin[SECTORS], sizeof *touches);
  }
  return touches;
}

static void
judge_sectors (struct test *test)
{
  size_t begin[SECTORS + 1];
  struct touch *touches = sort_touches (test, begin);

  for (unsigned i = 0; i < SECTORS; i++) {
    size_t n = begin[i + 1] - begin[i];
    struct sector s = {.test = test,
                       .number = i,
                       .touches = touches + begin[i],
                       .n_touches = n,
                       .values = get (n, sizeof *s.values),
                       .zones = get (n, sizeof *s.zones),
                       .zeroes = get (n, sizeof *s.zeroes),
                       .zero_reads = get (n, sizeof *s.zero_reads)};

    judge_sector (&s);
    free (s.values);
    free (s.zones);
    free (s.zeroes);
    free (s.zero_reads);
  }
  free (touches);
}

/* ---- All ---- */

void
judge_histories (struct test *test)
{
  size_t n = 0, ok = 0;
  uint64_t longest = 0;

  for (unsigned c = 0; c < CLIENTS; c++) {
    const struct history *h = &test->clients[c].history;

    n += h->n;
    for (size_t i = 0; i < h->n; i++) {
      ok += h->ops[i].ok;
      if (h->ops[i].end - h->ops[i].start > longest)
        longest = h->ops[i].end - h->ops[i].start;
    }
  }
  judge_times (test);
  judge_sectors (test);
  judge_blocks (test);
  printf ("%zu requests, %zu failed, longest %.3f s\n", n, n - ok,
          (double)longest / 1e6);
}
