/* The RAM of a node: its bytes, and which blocks of them have content.
 *
 * Memory comes from a memfd or, where a path is given, from a file (on tmpfs,
 * say); both are shared mappings, so that blocks can be given back by punching
 * holes even while the memory is locked, and so that nbdkit may fork into the
 * background after the store was filled.
 *
 * Not thread safe: all calls but open, close and tl_store_copy hold the
 * volume's lock.
 */
#ifndef TWINLOG_STORE_STORE_H
#define TWINLOG_STORE_STORE_H

#include "core/kept.h"
#include "core/map.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tl_store;

struct tl_store_config {
  uint64_t size;    /* bytes, a multiple of TL_BLOCK */
  const char *path; /* of a file, or NULL */
  bool lock;        /* mlock */
  /* Called now and then while memory is prefaulted; may be NULL. */
  void (*progress) (void *opaque, uint64_t done, uint64_t total);
  void *opaque;
};

/* Check the limits (available memory, cgroup, RLIMIT_MEMLOCK, the space of the
 * file's file system), map, prefault and lock.  A file is created where there
 * is none and locked against a second user.  Beside it lies PATH.header, which
 * tells whether the content is that of an earlier process in this boot of the
 * machine: then tl_store_kept has its state, and a change that was under way
 * is made whole.  Any other content is discarded only by tl_store_clear, and
 * reads as content until then.
 * 0, or -1 with one line in ERROR that names the figure that is too small.
 */
int tl_store_open (struct tl_store **store,
                   const struct tl_store_config *config, char *error,
                   size_t error_size);

/* Lock the memory again: locks are not inherited across fork.  Same errors. */
int tl_store_relock (struct tl_store *store, char *error, size_t error_size);

void tl_store_close (struct tl_store *store);

/* Make sure that a write to this range finds memory.  0, or ENOSPC.  Costs
 * nothing where the blocks are there already.
 */
int tl_store_reserve (struct tl_store *store, uint64_t offset, uint64_t length);

void tl_store_write (struct tl_store *store, uint64_t offset, uint64_t length,
                     const void *bytes);
void tl_store_read (struct tl_store *store, uint64_t offset, uint64_t length,
                    void *bytes);

/* A part of a write that is still to be copied. */
struct tl_copy {
  uint64_t offset, length; /* 0: nothing is */
  const void *bytes;
  int number;
};

/* The same as tl_store_write, and whoever uses the store from now on finds it
 * written; but of many bytes the copy may be left to the caller.  Before it
 * releases the lock it calls tl_store_take, which says what is left; after that
 * it releases the lock, and calls tl_store_copy before it takes it again.  Who
 * touches the range meanwhile waits for it with the lock held.
 */
void tl_store_write_later (struct tl_store *store, uint64_t offset,
                           uint64_t length, const void *bytes);
void tl_store_take (struct tl_store *store, struct tl_copy *copy);
void tl_store_copy (struct tl_store *store, struct tl_copy *copy);

/* Zero the range; memory of blocks that it covers whole is given back. */
void tl_store_zero (struct tl_store *store, uint64_t offset, uint64_t length);

/* Zero everything; nothing is allocated afterwards. */
void tl_store_clear (struct tl_store *store);

/* What the core keeps with a store that outlives the process, and in DIRTY the
 * words of its map; NULL for one that does not.  Lives as long as the store.
 */
struct tl_kept *tl_store_kept (struct tl_store *store, uint64_t **dirty);

/* Which blocks have content.  Lives as long as the store. */
const struct tl_map *tl_store_allocated (const struct tl_store *store);

/* How the device is backed now, bytes resident, for status. */
uint64_t tl_store_resident (const struct tl_store *store);

#endif
