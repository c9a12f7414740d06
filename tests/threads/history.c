/* What a client did, and what its reads returned.
 *
 * Every write has an id of its own, and fills each sector with words that
 * follow from the id and the place: a sector tells which write it is from, or
 * that no write ever wrote it so.
 */
#include "threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS (SECTOR / sizeof (uint64_t))

/* The words repeat themselves, so that they compress. */
static uint64_t
word (uint64_t id, uint32_t sector, unsigned i)
{
  uint64_t z = id * UINT64_C (0x9e3779b97f4a7c15) + sector * WORDS + i % 16;

  z = (z ^ (z >> 29)) * UINT64_C (0xbf58476d1ce4e5b9);
  return z ^ (z >> 32);
}

void
history_fill (unsigned char *bytes, uint64_t id, uint32_t first, uint32_t count)
{
  for (uint32_t s = 0; s < count; s++) {
    uint64_t words[WORDS];

    words[0] = id;
    for (unsigned i = 1; i < WORDS; i++)
      words[i] = word (id, first + s, i);
    memcpy (bytes + s * SECTOR, words, SECTOR);
  }
}

/* The id in a sector: 0 for zeroes, TORN for what is of no single write. */
static uint64_t
id_of (const unsigned char *bytes, uint32_t sector)
{
  uint64_t words[WORDS];

  memcpy (words, bytes, SECTOR);
  for (unsigned i = 1; i < WORDS; i++)
    if (words[i] != (words[0] ? word (words[0], sector, i) : 0))
      return TORN;
  return words[0];
}

static void *
grow (void *array, size_t *capacity, size_t needed, size_t size)
{
  void *larger;

  if (needed <= *capacity)
    return array;
  *capacity = needed * 2 > 4096 ? needed * 2 : 4096;
  larger = realloc (array, *capacity * size);
  if (!larger) {
    fprintf (stderr, "twinlog-threads: no memory for the history\n");
    abort ();
  }
  return larger;
}

void
history_add (struct history *history, const struct op *op,
             const unsigned char *bytes)
{
  struct op *entry;

  history->ops = grow (history->ops, &history->capacity, history->n + 1,
                       sizeof *history->ops);
  entry = &history->ops[history->n++];
  *entry = *op;
  entry->seen = history->n_seen;
  if (op->kind != OP_READ || !op->ok)
    return;
  history->seen = grow (history->seen, &history->seen_capacity,
                        history->n_seen + op->count, sizeof *history->seen);
  for (uint32_t i = 0; i < op->count; i++)
    history->seen[history->n_seen++] =
        id_of (bytes + i * SECTOR, op->first + i);
}

void
history_free (struct history *history)
{
  free (history->ops);
  free (history->seen);
}
