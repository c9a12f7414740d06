/* States as bytes.  Taken are only the parts that are in use: of the histories
 * of views what is in them, of the slots of kept writes the TOP ones, of the
 * pipes the frames on the way.  What is left out is never read, or only shown.
 * A move changes one node, mostly: only what it changed is restored.
 */
#include "explore.h"

#include <assert.h>

struct range {
  void *at;
  size_t length;
  unsigned node; /* as a bit; 0: any move may have changed it */
};

#define RANGES 32u
static struct range ranges[RANGES];
static unsigned n_ranges;

#define HISTORIES 6u
static struct tl_record *histories[HISTORIES];

static void
add (unsigned node, void *from, void *to)
{
  assert (n_ranges < RANGES);
  ranges[n_ranges].node = node;
  ranges[n_ranges].at = from;
  ranges[n_ranges++].length =
      (size_t)((unsigned char *)to - (unsigned char *)from);
}

static void
find_ranges (void)
{
  add (0, &world, &world + 1);
  for (unsigned i = 0; i < 2; i++) {
    struct tl_core *c = arena_core (i);
    uint32_t *slots = arena_slots (i);
    unsigned own = 1u << i;

    add (own, c, &c->record.history);
    add (own, &c->record.n_history, &c->pending.history);
    add (own, &c->pending.n_history, &c->own);
    add (own, &c->own + 1, &c->counters);
    add (own, slots + TL_KEPT_WRITES - TOP, slots + TL_KEPT_WRITES);
    add (own, &records[i], &records[i].history);
    add (own, &records[i].n_history, &records[i] + 1);
    add (own, &kept[i], &kept[i].writes[0]);
    add (own, &kept[i].writes[TL_KEPT_WRITES - TOP],
         &kept[i].writes[TL_KEPT_WRITES]);
    histories[3 * i] = &c->record;
    histories[3 * i + 1] = &c->pending;
    histories[3 * i + 2] = &records[i];
  }
}

static void
put (unsigned char **at, const void *from, size_t length)
{
  memcpy (*at, from, length);
  *at += length;
}

static void
get (const unsigned char **at, void *to, size_t length)
{
  memcpy (to, *at, length);
  *at += length;
}

size_t
snapshot_take (unsigned char *bytes)
{
  unsigned char *at = bytes;

  if (n_ranges == 0)
    find_ranges ();
  for (unsigned i = 0; i < n_ranges; i++)
    put (&at, ranges[i].at, ranges[i].length);
  for (unsigned i = 0; i < HISTORIES; i++)
    put (&at, histories[i]->history,
         histories[i]->n_history * sizeof histories[i]->history[0]);
  for (unsigned i = 0; i < 2 * CONNS; i++) {
    const struct pipe *pipe = &pipes[i / 2][i % 2];

    put (&at, &pipe->n, sizeof pipe->n);
    for (unsigned k = 0; k < pipe->n; k++)
      put (&at, &pipe->packets[k],
           offsetof (struct packet, small) + pipe->packets[k].length);
  }
  while ((at - bytes) % 8 != 0)
    *at++ = 0;
  return (size_t)(at - bytes);
}

void
snapshot_restore (const unsigned char *bytes, size_t length, unsigned nodes)
{
  const unsigned char *at = bytes;

  for (unsigned i = 0; i < n_ranges; i++)
    if (ranges[i].node == 0 || (ranges[i].node & nodes))
      get (&at, ranges[i].at, ranges[i].length);
    else
      at += ranges[i].length;
  for (unsigned i = 0; i < HISTORIES; i++)
    get (&at, histories[i]->history,
         histories[i]->n_history * sizeof histories[i]->history[0]);
  for (unsigned i = 0; i < 2 * CONNS; i++) {
    struct pipe *pipe = &pipes[i / 2][i % 2];

    get (&at, &pipe->n, sizeof pipe->n);
    for (unsigned k = 0; k < pipe->n; k++) {
      get (&at, &pipe->packets[k], offsetof (struct packet, small));
      get (&at, pipe->packets[k].small, pipe->packets[k].length);
    }
  }
  assert ((size_t)(at - bytes) <= length);
}

/* ---- Differences ---- */

static _Alignas(8) unsigned char root[SNAPSHOT_MAX];
static size_t root_length;

void
snapshot_root (const unsigned char *bytes, size_t length)
{
  memset (root, 0, sizeof root);
  memcpy (root, bytes, length);
  root_length = length;
}

static uint64_t
word (const unsigned char *bytes, size_t i)
{
  uint64_t value;

  memcpy (&value, bytes + 8 * i, 8);
  return value;
}

/* How many words from I on equal those of the root, of N. */
static size_t
equal_words (const unsigned char *bytes, size_t i, size_t n)
{
  const size_t stride = 32;
  size_t from = i;

  while (i + stride <= n && i + stride - from <= UINT16_MAX &&
         memcmp (bytes + 8 * i, root + 8 * i, 8 * stride) == 0)
    i += stride;
  while (i < n && i - from < UINT16_MAX && word (bytes, i) == word (root, i))
    i++;
  return i - from;
}

/* Words in all, then: how many are equal, how many differ, those. */
size_t
snapshot_pack (const unsigned char *bytes, size_t length, unsigned char *packed)
{
  size_t n = length / 8, i = 0;
  unsigned char *at = packed;
  uint32_t head = (uint32_t)n;

  put (&at, &head, sizeof head);
  while (i < n) {
    size_t from = i, first = i + equal_words (bytes, i, n);
    uint16_t counts[2];

    i = first;
    while (i < n && i - first < UINT16_MAX && word (bytes, i) != word (root, i))
      i++;
    counts[0] = (uint16_t)(first - from);
    counts[1] = (uint16_t)(i - first);
    put (&at, counts, sizeof counts);
    put (&at, bytes + 8 * first, 8 * (i - first));
  }
  return (size_t)(at - packed);
}

size_t
snapshot_unpack (const unsigned char *packed, size_t length,
                 unsigned char *bytes)
{
  const unsigned char *at = packed;
  uint32_t n;
  size_t i = 0;

  get (&at, &n, sizeof n);
  memcpy (bytes, root, 8 * (size_t)n);
  while (i < n) {
    uint16_t counts[2];

    get (&at, counts, sizeof counts);
    i += counts[0];
    get (&at, bytes + 8 * i, 8 * (size_t)counts[1]);
    i += counts[1];
  }
  assert ((size_t)(at - packed) == length);
  return 8 * (size_t)n;
}
