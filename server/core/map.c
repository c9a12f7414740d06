#include "map.h"

#include <assert.h>
#include <stdlib.h>

#define BITS 64u

int
tl_map_init (struct tl_map *map, uint64_t blocks)
{
  map->owned = calloc (tl_map_words (blocks), sizeof map->words[0]);
  map->words = map->owned;
  map->blocks = blocks;
  map->count = 0;
  return map->words == NULL ? -1 : 0;
}

void
tl_map_over (struct tl_map *map, uint64_t *words, uint64_t blocks)
{
  map->owned = NULL;
  map->words = words;
  map->blocks = blocks;
  map->count = 0;
  for (uint64_t i = 0; i < tl_map_words (blocks); i++)
    map->count += (unsigned)__builtin_popcountll (words[i]);
}

void
tl_map_free (struct tl_map *map)
{
  free (map->owned);
  map->words = map->owned = NULL;
  map->blocks = map->count = 0;
}

bool
tl_map_test (const struct tl_map *map, uint64_t block)
{
  assert (block < map->blocks);
  return map->words[block / BITS] >> (block % BITS) & 1;
}

/* The bits of the word that holds FIRST which lie in FIRST..END-1. */
static uint64_t
mask (uint64_t first, uint64_t end)
{
  uint64_t bits = UINT64_MAX << (first % BITS);
  uint64_t last = (first / BITS + 1) * BITS;

  if (end < last)
    bits &= UINT64_MAX >> (last - end);
  return bits;
}

void
tl_map_set (struct tl_map *map, uint64_t first, uint64_t count)
{
  uint64_t end = first + count;

  assert (end >= first && end <= map->blocks);
  for (; first < end; first = (first / BITS + 1) * BITS) {
    uint64_t *word = &map->words[first / BITS];
    uint64_t bits = mask (first, end) & ~*word;

    *word |= bits;
    map->count += (unsigned)__builtin_popcountll (bits);
  }
}

void
tl_map_clear (struct tl_map *map, uint64_t first, uint64_t count)
{
  uint64_t end = first + count;

  assert (end >= first && end <= map->blocks);
  for (; first < end; first = (first / BITS + 1) * BITS) {
    uint64_t *word = &map->words[first / BITS];
    uint64_t bits = mask (first, end) & *word;

    *word &= ~bits;
    map->count -= (unsigned)__builtin_popcountll (bits);
  }
}

bool
tl_map_any (const struct tl_map *map, uint64_t first, uint64_t count)
{
  uint64_t end = first + count;

  assert (end >= first && end <= map->blocks);
  if (map->count == 0)
    return false;
  for (; first < end; first = (first / BITS + 1) * BITS)
    if (map->words[first / BITS] & mask (first, end))
      return true;
  return false;
}

/* The first bit of FROM..END-1 that is SET, END if none. */
static uint64_t
find (const struct tl_map *map, uint64_t from, uint64_t end, bool set)
{
  for (; from < end; from = (from / BITS + 1) * BITS) {
    uint64_t word = map->words[from / BITS];

    word = (set ? word : ~word) & mask (from, end);
    if (word != 0)
      return from / BITS * BITS + (unsigned)__builtin_ctzll (word);
  }
  return end;
}

uint64_t
tl_map_next (const struct tl_map *map, uint64_t from, bool set)
{
  return find (map, from, map->blocks, set);
}

uint64_t
tl_map_run (const struct tl_map *map, uint64_t from, uint64_t most)
{
  uint64_t end = map->blocks - from < most ? map->blocks : from + most;

  return find (map, from, end, !tl_map_test (map, from)) - from;
}
