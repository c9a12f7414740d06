/* Opening a store: the limits are compared, then the memory is mapped, faulted
 * in and locked, piece by piece.  A failure at any point takes back what was
 * done.
 */
#include "internal.h"
#include "limit.h"

#include <errno.h>
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
  /* All of it is filled, so that large pages take no more of it. */
  if (touch)
    madvise (store->base, store->size, MADV_HUGEPAGE);
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
open_header (struct tl_store *store, bool *valid, char *error,
             size_t error_size)
{
  struct stat st;

  if (fstat (store->backing.fd, &st) == -1) {
    snprintf (error, error_size, "%s: cannot open the store: %m", store->path);
    return -1;
  }
  if (tl_header_open (&store->header, store->path, store->size, st.st_ino,
                      store->backing.created || store->backing.grown,
                      store->lock, valid, error, error_size) == -1)
    return -1;
  tl_map_over (&store->allocated, store->header.allocated,
               store->size / TL_BLOCK);
  return 0;
}

/* Make whole what was under way when the last process ended. */
static void
replay (struct tl_store *store)
{
  struct tl_journal *journal = store->header.journal;

  if (journal->kind == 1) {
    memcpy (store->base + journal->offset, journal->bytes, journal->length);
    if (journal->length > 0)
      tl_map_set (&store->allocated, tl_block_first (journal->offset),
                  tl_block_count (journal->offset, journal->length));
  } else if (journal->kind == 2) {
    tl_store_zero (store, journal->offset, journal->length);
  }
  tl_journal_done (journal);
}

static int
set_up (struct tl_store *store, const struct tl_store_config *config,
        char *error, size_t error_size)
{
  uint64_t blocks = config->size / TL_BLOCK;
  bool valid = false;
  void *base;

  if (tl_backing_open (&store->backing, store->path, store->size, error,
                       error_size) == -1 ||
      check_limits (store, error, error_size) == -1 ||
      tl_backing_grow (&store->backing, error, error_size) == -1)
    return -1;
  if ((store->path == NULL && tl_map_init (&store->allocated, blocks) == -1) ||
      tl_map_init (&store->backed, blocks) == -1) {
    snprintf (error, error_size, "not enough memory for the store's maps");
    return -1;
  }
  if (store->path && open_header (store, &valid, error, error_size) == -1)
    return -1;
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
  /* Content that nobody vouches for stays content until it is cleared. */
  if (store->path && !valid && !store->backing.created && !store->backing.grown)
    tl_map_set (&store->allocated, 0, blocks);
  if (valid)
    replay (store);
  return 0;
}

static void
tear_down (struct tl_store *store, bool undo)
{
  if (store->base != NULL)
    munmap (store->base, store->size);
  tl_header_close (&store->header, undo);
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
  if (store->path && tl_header_lock (&store->header) == -1) {
    snprintf (error, error_size, "%s.header: cannot lock it in memory: %m",
              store->path);
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
