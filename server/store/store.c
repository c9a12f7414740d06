/* The RAM of a node.
 *
 * Two maps describe it.  `allocated` has the blocks with content: every other
 * block reads as zeroes and does hold zeroes, so that the first write into a
 * part of one is right.  `backed` has the blocks for which memory is known to
 * be there: all of them after a prefault, less those given back since.
 */
#include "store.h"

#include "backing.h"
#include "limit.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/* A store of this size and not locked is not worth the look at the limits, nor
 * the prefault.
 */
#define SMALL_STORE (UINT64_C (16) << 20)

/* Prefault so much between two calls of progress. */
#define PIECE (UINT64_C (32) << 20)

/* To be left over once the store has its memory: for the process itself and
 * its page tables (8 bytes for each page of 4 KiB).
 */
#define SPARE(size) ((UINT64_C (32) << 20) + (size) / 512)

struct tl_store {
  unsigned char *base; /* the mapping */
  uint64_t size;       /* bytes */
  struct tl_backing backing;
  char *path;              /* of the file, NULL: a memfd */
  bool lock;               /* is to be locked */
  pid_t locked_by;         /* the process that holds the lock, 0: none */
  bool cannot_punch;       /* the file system has no holes to punch */
  struct tl_map allocated; /* blocks with content */
  struct tl_map backed;    /* blocks with memory */
};

static int
check_limits (const struct tl_store *store, char *error, size_t error_size)
{
  const struct tl_backing *backing = &store->backing;
  uint64_t needed =
      store->size > backing->present ? store->size - backing->present : 0;

  if (backing->path && tl_limit_space (backing->fd, backing->path, needed,
                                       error, error_size) == -1)
    return -1;
  if (tl_limit_file (store->size, error, error_size) == -1)
    return -1;
  if (store->size <= SMALL_STORE && !store->lock)
    return 0;
  if (store->lock && tl_limit_lock (store->size, error, error_size) == -1)
    return -1;
  if (!backing->from_memory && !(store->lock && backing->locks_memory))
    return 0;
  if (!backing->from_memory) /* what is on a disk has still to be read */
    needed = store->size;
  return tl_limit_memory ("/proc", needed + SPARE (store->size), error,
                          error_size);
}

/* Give a part of the store its memory.  0, or an errno value. */
static int
populate (struct tl_store *store, uint64_t offset, uint64_t length)
{
  volatile unsigned char *byte = store->base + offset;
  uint64_t i;
  int r;

  do
    r = madvise (store->base + offset, length, MADV_POPULATE_WRITE);
  while (r == -1 && (errno == EINTR || errno == EAGAIN));
  if (r == 0)
    return 0;
  if (errno == EFAULT) /* what a touch would have answered with SIGBUS */
    return store->path ? ENOSPC : ENOMEM;
  if (errno != EINVAL)
    return errno;
  for (i = 0; i < length; i += TL_BLOCK)
    byte[i] = byte[i];
  return 0;
}

static int
lock_part (struct tl_store *store, uint64_t offset, uint64_t length,
           char *error, size_t error_size)
{
  char a[TL_AMOUNT_TEXT];
  int r;

  do
    r = mlock (store->base + offset, length);
  while (r == -1 && (errno == EINTR || errno == EAGAIN));
  if (r == 0)
    return 0;
  snprintf (error, error_size,
            "cannot lock %s of memory: mlock: %m; raise RLIMIT_MEMLOCK "
            "(LimitMEMLOCK=, ulimit -l), give CAP_IPC_LOCK, or give lock=off",
            tl_amount (store->size, a));
  return -1;
}

/* Allocate, fault in and lock everything, piece by piece. */
static int
fill (struct tl_store *store, const struct tl_store_config *config, char *error,
      size_t error_size)
{
  const char *path = store->path;
  bool touch = store->lock || store->size > SMALL_STORE;
  uint64_t done, length;
  int r = 0;

  if (!touch && path == NULL)
    return 0;
  for (done = 0; done < store->size; done += length) {
    length = store->size - done < PIECE ? store->size - done : PIECE;
    /* Where a file cannot grow this fails, while a touch would be fatal. */
    if (path && tl_fallocate (store->backing.fd, 0, done, length) == -1 &&
        errno != EOPNOTSUPP)
      r = errno;
    if (r == 0 && touch)
      r = populate (store, done, length);
    if (r != 0) {
      errno = r;
      snprintf (error, error_size,
                "%s%scannot prefault the store, at %" PRIu64 " of %" PRIu64
                " bytes: %m",
                path ? path : "", path ? ": " : "", done, store->size);
      return -1;
    }
    if (store->lock && lock_part (store, done, length, error, error_size) == -1)
      return -1;
    if (config->progress)
      config->progress (config->opaque, done + length, store->size);
  }
  tl_map_set (&store->backed, 0, store->backed.blocks);
  if (store->lock)
    store->locked_by = getpid ();
  return 0;
}

static int
set_up (struct tl_store *store, const struct tl_store_config *config,
        char *error, size_t error_size)
{
  uint64_t blocks = config->size / TL_BLOCK;
  void *base;

  if (tl_backing_open (&store->backing, store->path, store->size, error,
                       error_size) == -1 ||
      check_limits (store, error, error_size) == -1 ||
      tl_backing_grow (&store->backing, error, error_size) == -1)
    return -1;
  if (tl_map_init (&store->allocated, blocks) == -1 ||
      tl_map_init (&store->backed, blocks) == -1) {
    snprintf (error, error_size, "not enough memory for the store's maps");
    return -1;
  }
  base = mmap (NULL, store->size, PROT_READ | PROT_WRITE, MAP_SHARED,
               store->backing.fd, 0);
  if (base == MAP_FAILED) {
    snprintf (error, error_size,
              "cannot map the store, %" PRIu64 " bytes: mmap: %m", store->size);
    return -1;
  }
  store->base = base;
  /* A crash dump of this process need not hold the volume. */
  madvise (base, store->size, MADV_DONTDUMP);
  if (fill (store, config, error, error_size) == -1)
    return -1;
  if (store->path && !store->backing.created && !store->backing.grown)
    tl_map_set (&store->allocated, 0, blocks);
  return 0;
}

static void
tear_down (struct tl_store *store, bool undo)
{
  if (store->base != NULL)
    munmap (store->base, store->size);
  tl_backing_close (&store->backing, undo);
  tl_map_free (&store->allocated);
  tl_map_free (&store->backed);
  free (store->path);
  free (store);
}

int
tl_store_open (struct tl_store **result, const struct tl_store_config *config,
               char *error, size_t error_size)
{
  struct tl_store *store;

  if (config->size == 0 || config->size % TL_BLOCK != 0 ||
      config->size > INT64_MAX || config->size > SIZE_MAX) {
    snprintf (error, error_size,
              "%" PRIu64 " bytes cannot be the size of a store: it must be a "
              "multiple of %u, and not 0",
              config->size, TL_BLOCK);
    return -1;
  }
  store = calloc (1, sizeof *store);
  if (store != NULL && config->path)
    store->path = strdup (config->path);
  if (store == NULL || (config->path && store->path == NULL)) {
    free (store);
    snprintf (error, error_size, "not enough memory to open the store");
    return -1;
  }
  store->backing.fd = -1;
  store->size = config->size;
  store->lock = config->lock;
  if (set_up (store, config, error, error_size) == -1) {
    tear_down (store, true);
    return -1;
  }
  *result = store;
  return 0;
}

int
tl_store_relock (struct tl_store *store, char *error, size_t error_size)
{
  uint64_t done, length;

  if (!store->lock || store->locked_by == getpid ())
    return 0;
  if (tl_limit_lock (store->size, error, error_size) == -1)
    return -1;
  for (done = 0; done < store->size; done += length) {
    length = store->size - done < PIECE ? store->size - done : PIECE;
    if (lock_part (store, done, length, error, error_size) == -1)
      return -1;
  }
  /* Locking has faulted in what had been given back. */
  tl_map_set (&store->backed, 0, store->backed.blocks);
  store->locked_by = getpid ();
  return 0;
}

void
tl_store_close (struct tl_store *store)
{
  if (store != NULL)
    tear_down (store, false);
}

static void
check_range (const struct tl_store *store, uint64_t offset, uint64_t length)
{
  assert (offset <= store->size && length <= store->size - offset);
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

void
tl_store_write (struct tl_store *store, uint64_t offset, uint64_t length,
                const void *bytes)
{
  uint64_t first, count;

  check_range (store, offset, length);
  if (length == 0)
    return;
  memcpy (store->base + offset, bytes, length);
  first = tl_block_first (offset);
  count = tl_block_count (offset, length);
  tl_map_set (&store->allocated, first, count);
  if (store->backed.count != store->backed.blocks)
    tl_map_set (&store->backed, first, count);
}

void
tl_store_read (struct tl_store *store, uint64_t offset, uint64_t length,
               void *bytes)
{
  unsigned char *to = bytes;
  uint64_t block, run, part;

  check_range (store, offset, length);
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

  check_range (store, offset, length);
  head = (offset + TL_BLOCK - 1) / TL_BLOCK * TL_BLOCK; /* first whole block */
  tail = end / TL_BLOCK * TL_BLOCK;                     /* end of the last */
  if (head > tail) { /* within one block, both edges not its own */
    zero_within (store, offset, length);
    return;
  }
  zero_within (store, offset, head - offset);
  if (tail > head)
    punch (store, head / TL_BLOCK, (tail - head) / TL_BLOCK);
  zero_within (store, tail, end - tail);
}

void
tl_store_clear (struct tl_store *store)
{
  uint64_t block = 0, run;

  /* What was never written keeps its prefaulted memory. */
  while ((block = tl_map_next (&store->allocated, block, true)) <
         store->allocated.blocks) {
    run =
        tl_map_run (&store->allocated, block, store->allocated.blocks - block);
    punch (store, block, run);
    block += run;
  }
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
