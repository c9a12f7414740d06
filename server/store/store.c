/* The RAM of a node.
 *
 * Two maps describe it.  `allocated` has the blocks with content: every other
 * block reads as zeroes and does hold zeroes, so that the first write into a
 * part of one is right.  `backed` has the blocks for which memory is known to
 * be there: all of them after a prefault, less those given back since.
 */
#include "internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* Fewer bytes are copied sooner than two threads agree about it. */
#define COPY_MIN (16u << 10)

static void
check_range (const struct tl_store *store, uint64_t offset, uint64_t length)
{
  assert (offset <= store->size && length <= store->size - offset);
}

static void
copy_now (struct tl_store *store, struct tl_copy *copy)
{
  memcpy (store->base + copy->offset, copy->bytes, copy->length);
  copy->length = 0;
}

/* The caller is about to touch the bytes of a range: what was written there
 * must be there.  A copy that the caller itself has still to make is made now,
 * since it would wait for itself.
 */
static void
enter_range (struct tl_store *store, uint64_t offset, uint64_t length)
{
  check_range (store, offset, length);
  if (store->later.length > 0)
    copy_now (store, &store->later);
  tl_copies_wait (&store->copies, offset, length);
}

/* The run of blocks that are in MAP, or not, as BLOCK is: at most MOST.  A
 * request has few blocks; tl_map_run is for whole maps.
 */
static uint64_t
run_from (const struct tl_map *map, uint64_t block, uint64_t most)
{
  bool set = tl_map_test (map, block);
  uint64_t run = 1;

  while (run < most && tl_map_test (map, block + run) == set)
    run++;
  return run;
}

int
tl_store_reserve (struct tl_store *store, uint64_t offset, uint64_t length)
{
  uint64_t block, end, run;

  check_range (store, offset, length);
  if (store->path == NULL || length == 0 ||
      store->backed.count == store->backed.blocks)
    return 0;
  block = tl_block_first (offset);
  end = block + tl_block_count (offset, length);
  for (; block < end; block += run) {
    run = run_from (&store->backed, block, end - block);
    if (tl_map_test (&store->backed, block))
      continue;
    if (tl_fallocate (store->backing.fd, 0, block * TL_BLOCK, run * TL_BLOCK) ==
            -1 &&
        errno != EOPNOTSUPP)
      return ENOSPC;
    tl_map_set (&store->backed, block, run);
  }
  return 0;
}

static void
write_piece (struct tl_store *store, uint64_t offset, uint64_t length,
             const void *bytes)
{
  uint64_t first = tl_block_first (offset);
  uint64_t count = tl_block_count (offset, length);

  tl_journal_write (store->header.journal, offset, length, bytes);
  tl_map_set (&store->allocated, first, count);
  memcpy (store->base + offset, bytes, length);
  tl_journal_done (store->header.journal);
  if (store->backed.count != store->backed.blocks)
    tl_map_set (&store->backed, first, count);
}

void
tl_store_write (struct tl_store *store, uint64_t offset, uint64_t length,
                const void *bytes)
{
  const unsigned char *from = bytes;
  uint64_t part;

  enter_range (store, offset, length);
  for (; length > 0; length -= part, offset += part, from += part) {
    /* What the journal holds, up to the end of a block. */
    part = TL_JOURNAL_MAX - offset % TL_BLOCK;
    if (part > length)
      part = length;
    write_piece (store, offset, part, from);
  }
}

void
tl_store_write_later (struct tl_store *store, uint64_t offset, uint64_t length,
                      const void *bytes)
{
  uint64_t first = tl_block_first (offset);
  uint64_t count = tl_block_count (offset, length);

  /* The journal has room for one write, which ends before the next begins. */
  if (length < COPY_MIN || store->header.journal != NULL) {
    tl_store_write (store, offset, length, bytes);
    return;
  }
  enter_range (store, offset, length);
  tl_map_set (&store->allocated, first, count);
  if (store->backed.count != store->backed.blocks)
    tl_map_set (&store->backed, first, count);
  store->later.offset = offset;
  store->later.length = length;
  store->later.bytes = bytes;
}

void
tl_store_take (struct tl_store *store, struct tl_copy *copy)
{
  copy->length = 0;
  if (store->later.length == 0)
    return;
  *copy = store->later;
  store->later.length = 0;
  copy->number = tl_copies_begin (&store->copies, copy->offset, copy->length);
  if (copy->number == -1)
    copy_now (store, copy);
}

void
tl_store_copy (struct tl_store *store, struct tl_copy *copy)
{
  if (copy->length == 0)
    return;
  copy_now (store, copy);
  tl_copies_end (&store->copies, copy->number);
}

void
tl_store_read (struct tl_store *store, uint64_t offset, uint64_t length,
               void *bytes)
{
  unsigned char *to = bytes;
  uint64_t block, run, part;

  enter_range (store, offset, length);
  while (length > 0) {
    block = tl_block_first (offset);
    run = run_from (&store->allocated, block, tl_block_count (offset, length));
    part = (block + run) * TL_BLOCK - offset;
    if (part > length)
      part = length;
    /* A block without content may be a hole: reading it would fault in the
     * memory that was given back.
     */
    if (tl_map_test (&store->allocated, block))
      memcpy (to, store->base + offset, part);
    else
      memset (to, 0, part);
    to += part;
    offset += part;
    length -= part;
  }
}

/* Zero whole blocks and give their memory back. */
static void
punch (struct tl_store *store, uint64_t first, uint64_t count)
{
  uint64_t block, end = first + count, run;

  if (!tl_map_any (&store->backed, first, count))
    return; /* holes already: unallocated too, as what has content is backed */
  if (!store->cannot_punch) {
    if (tl_fallocate (store->backing.fd,
                      FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                      first * TL_BLOCK, count * TL_BLOCK) == 0) {
      tl_map_clear (&store->allocated, first, count);
      tl_map_clear (&store->backed, first, count);
      return;
    }
    store->cannot_punch = errno == EOPNOTSUPP || errno == ENOSYS;
  }
  for (block = first;
       (block = tl_map_next (&store->allocated, block, true)) < end;
       block += run) {
    run = tl_map_run (&store->allocated, block, end - block);
    memset (store->base + block * TL_BLOCK, 0, run * TL_BLOCK);
  }
  tl_map_clear (&store->allocated, first, count);
}

/* Zero bytes within one block, which stays allocated if it is. */
static void
zero_within (struct tl_store *store, uint64_t offset, uint64_t length)
{
  if (length > 0 && tl_map_test (&store->allocated, tl_block_first (offset)))
    memset (store->base + offset, 0, length);
}

void
tl_store_zero (struct tl_store *store, uint64_t offset, uint64_t length)
{
  uint64_t end = offset + length, head, tail;

  enter_range (store, offset, length);
  head = (offset + TL_BLOCK - 1) / TL_BLOCK * TL_BLOCK; /* first whole block */
  tail = end / TL_BLOCK * TL_BLOCK;                     /* end of the last */
  tl_journal_zero (store->header.journal, offset, length);
  if (head > tail) { /* within one block, both edges not its own */
    zero_within (store, offset, length);
  } else {
    zero_within (store, offset, head - offset);
    if (tail > head)
      punch (store, head / TL_BLOCK, (tail - head) / TL_BLOCK);
    zero_within (store, tail, end - tail);
  }
  tl_journal_done (store->header.journal);
}

void
tl_store_clear (struct tl_store *store)
{
  uint64_t block = 0, run;

  enter_range (store, 0, store->size);
  /* What was never written keeps its prefaulted memory. */
  while ((block = tl_map_next (&store->allocated, block, true)) <
         store->allocated.blocks) {
    run =
        tl_map_run (&store->allocated, block, store->allocated.blocks - block);
    punch (store, block, run);
    block += run;
  }
}

struct tl_kept *
tl_store_kept (struct tl_store *store, uint64_t **dirty)
{
  *dirty = store->header.dirty;
  return store->header.kept;
}

const struct tl_map *
tl_store_allocated (const struct tl_store *store)
{
  return &store->allocated;
}

uint64_t
tl_store_resident (const struct tl_store *store)
{
  struct stat st;

  if (fstat (store->backing.fd, &st) == -1)
    return 0;
  return (uint64_t)st.st_blocks * 512;
}
