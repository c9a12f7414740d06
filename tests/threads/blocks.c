/* Is a block ever torn?  What one read returns of a block is of one moment: of
 * two writes that both cover two of its sectors, not each can have left one;
 * and beside what a write left there is nothing that it would have replaced.
 */
#include "threads.h"

#include <stdlib.h>

/* The writes of each client, by the number in their id. */
struct index {
  const struct op **writes[CLIENTS];
  size_t n[CLIENTS];
};

static void
build_index (struct test *test, struct index *index)
{
  for (unsigned c = 0; c < CLIENTS; c++) {
    const struct history *h = &test->clients[c].history;

    index->n[c] = 0;
    index->writes[c] = calloc (h->n + 1, sizeof *index->writes[c]);
    if (!index->writes[c])
      abort ();
    for (size_t i = 0; i < h->n; i++)
      if (h->ops[i].kind == OP_WRITE)
        index->writes[c][index->n[c]++] = &h->ops[i];
  }
}

static const struct op *
write_of (const struct index *index, uint64_t id)
{
  uint64_t client = (id >> 40) - 1, number = id & ((UINT64_C (1) << 40) - 1);

  if (client >= CLIENTS || number < 1 || number > index->n[client])
    return NULL;
  return index->writes[client][number - 1];
}

/* READ saw write W in one sector, and OTHER (NULL: zeroes) in sector J of the
 * same block, which W covers too: so OTHER came after W.
 */
static bool
is_torn (const struct op *w, const struct op *other, uint32_t i, uint32_t j)
{
  if (!covers (w, j) || !other)
    return false;
  return covers (other, i) || end_of (other) < w->start;
}

static void
judge_block (struct test *test, const struct index *index,
             const struct op *read, const uint64_t *seen, uint32_t from,
             uint32_t to)
{
  for (uint32_t i = from; i < to; i++) {
    const struct op *w = write_of (index, seen[i - read->first]);

    for (uint32_t j = from; w && j < to; j++) {
      uint64_t other = seen[j - read->first];

      if (other != seen[i - read->first] &&
          is_torn (w, write_of (index, other), i, j)) {
        violation (test,
                   "block %u is torn: sector %u has write %llx, sector %u "
                   "write %llx",
                   i / SECTORS_OF_BLOCK, i,
                   (unsigned long long)seen[i - read->first], j,
                   (unsigned long long)other);
        return;
      }
    }
  }
}

void
judge_blocks (struct test *test)
{
  struct index index;

  build_index (test, &index);
  for (unsigned c = 0; c < CLIENTS; c++) {
    const struct history *h = &test->clients[c].history;

    for (size_t i = 0; i < h->n; i++) {
      const struct op *read = &h->ops[i];
      uint32_t from = read->first, end = read->first + read->count, to;

      for (; read->kind == OP_READ && read->ok && from < end; from = to) {
        to = (from / SECTORS_OF_BLOCK + 1) * SECTORS_OF_BLOCK;
        if (to > end)
          to = end;
        judge_block (test, &index, read, h->seen + read->seen, from, to);
      }
    }
  }
  for (unsigned c = 0; c < CLIENTS; c++)
    free (index.writes[c]);
}
