/* What opens a store and what uses it share. */
#ifndef TWINLOG_STORE_INTERNAL_H
#define TWINLOG_STORE_INTERNAL_H

#include "backing.h"
#include "copies.h"
#include "kept.h"
#include "store.h"

#include <sys/types.h>

struct tl_store {
  unsigned char *base; /* the mapping */
  uint64_t size;       /* bytes */
  struct tl_backing backing;
  struct tl_header header; /* of a file; its journal is NULL for a memfd */
  char *path;              /* of the file, NULL: a memfd */
  bool lock;               /* is to be locked */
  pid_t locked_by;         /* the process that holds the lock, 0: none */
  bool cannot_punch;       /* the file system has no holes to punch */
  struct tl_map allocated; /* blocks with content */
  struct tl_map backed;    /* blocks with memory */
  struct tl_copy later;    /* begun since the lock was taken, not copied yet */
  struct tl_copies copies; /* those taken, not copied yet */
};

#endif
