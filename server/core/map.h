/* A set of 4 KiB blocks: one bit a block and their count.  The dirty map of
 * the core and the allocation map of the store are of this type.
 *
 * Not thread safe: the caller holds the lock of whatever owns the map.
 */
#ifndef TWINLOG_CORE_MAP_H
#define TWINLOG_CORE_MAP_H

#include <stdbool.h>
#include <stdint.h>

#define TL_BLOCK 4096u

struct tl_map {
  uint64_t *words;
  uint64_t blocks; /* how many bits there are */
  uint64_t count;  /* how many of them are set */
  uint64_t *owned; /* to be freed, NULL: somebody else's */
};

/* Make a map of BLOCKS bits, none set.  0, or -1 where memory is short. */
int tl_map_init (struct tl_map *map, uint64_t blocks);

/* Make a map of BLOCKS bits over the words at WORDS, which the caller keeps:
 * tl_map_words (BLOCKS) of them, whose bits stand.  tl_map_free leaves them.
 */
void tl_map_over (struct tl_map *map, uint64_t *words, uint64_t blocks);

static inline uint64_t
tl_map_words (uint64_t blocks)
{
  return blocks / 64 + 1;
}

/* Give the memory back.  A map of zero bytes may be given too. */
void tl_map_free (struct tl_map *map);

bool tl_map_test (const struct tl_map *map, uint64_t block);

/* Set or clear COUNT bits from FIRST on.  The range must lie in the map. */
void tl_map_set (struct tl_map *map, uint64_t first, uint64_t count);
void tl_map_clear (struct tl_map *map, uint64_t first, uint64_t count);

/* Is any of COUNT bits from FIRST on set? */
bool tl_map_any (const struct tl_map *map, uint64_t first, uint64_t count);

/* The first block at or after FROM whose bit is SET; map->blocks if none. */
uint64_t tl_map_next (const struct tl_map *map, uint64_t from, bool set);

/* The run of equal bits that starts at FROM, at most MOST blocks long: its
 * length.  FROM must lie in the map.
 */
uint64_t tl_map_run (const struct tl_map *map, uint64_t from, uint64_t most);

/* The blocks that the bytes OFFSET..OFFSET+LENGTH-1 touch.  LENGTH > 0. */
static inline uint64_t
tl_block_first (uint64_t offset)
{
  return offset / TL_BLOCK;
}

static inline uint64_t
tl_block_count (uint64_t offset, uint64_t length)
{
  return (offset + length - 1) / TL_BLOCK - offset / TL_BLOCK + 1;
}

#endif
