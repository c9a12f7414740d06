/* The header of a store that outlives its process: a file beside the store's
 * own, PATH.header, in the same kind of memory.  It holds what the core keeps
 * with the RAM, which blocks have content, and the change to the store that is
 * under way, so that a process that is killed in the middle leaves no block
 * torn.
 */
#ifndef TWINLOG_STORE_KEPT_H
#define TWINLOG_STORE_KEPT_H

#include "backing.h"
#include "core/kept.h"
#include "core/map.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TL_JOURNAL_MAX (1u << 20) /* bytes of one write */

/* A change that is under way. */
struct tl_journal {
  uint64_t kind; /* 0: none; 1: a write; 2: zeroes */
  uint64_t offset, length;
  unsigned char bytes[TL_JOURNAL_MAX];
};

struct tl_header {
  struct tl_backing backing;
  char *path;
  void *base; /* the mapping */
  uint64_t size;
  struct tl_kept *kept;
  uint64_t *dirty;     /* words of the core's map */
  uint64_t *allocated; /* words of the store's map */
  struct tl_journal *journal;
};

/* Open the header of the store at PATH, of SIZE bytes, whose file has the
 * inode number INODE, and which is new where FRESH.  VALID: the store's content
 * is the one that the header tells of, in this boot of the machine.  Otherwise
 * it is made new: another incarnation, Empty.  0, or -1 with one line in
 * ERROR.
 */
int tl_header_open (struct tl_header *header, const char *path, uint64_t size,
                    uint64_t inode, bool fresh, bool lock, bool *valid,
                    char *error, size_t error_size);

/* UNDO: take back a file that tl_header_open made. */
void tl_header_close (struct tl_header *header, bool undo);

/* Lock it again after a fork.  0, or -1 with errno. */
int tl_header_lock (const struct tl_header *header);

/* Around a change to the store.  Nothing where JOURNAL is NULL. */
void tl_journal_write (struct tl_journal *journal, uint64_t offset,
                       uint64_t length, const void *bytes);
void tl_journal_zero (struct tl_journal *journal, uint64_t offset,
                      uint64_t length);
void tl_journal_done (struct tl_journal *journal);

#endif
