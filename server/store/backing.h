/* What a store's memory is a mapping of: a memfd, or a file that outlives the
 * process.  Any thread.
 */
#ifndef TWINLOG_STORE_BACKING_H
#define TWINLOG_STORE_BACKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tl_backing {
  int fd;            /* -1: none */
  const char *path;  /* of the file, the caller's; NULL: a memfd */
  uint64_t size;     /* bytes */
  bool created;      /* the file was not there before */
  bool grown;        /* it was there, with nothing in it */
  bool from_memory;  /* its pages come out of MemAvailable */
  bool locks_memory; /* and so they do once they are locked */
  uint64_t present;  /* bytes that it has already */
};

/* Open the memfd, or open or create the file at PATH and lock it against a
 * second user; it still has its old size.  0, or -1 with one line in ERROR and
 * nothing changed.
 */
int tl_backing_open (struct tl_backing *backing, const char *path,
                     uint64_t size, char *error, size_t error_size);

/* Give it its size, after the limits were checked.  Same errors. */
int tl_backing_grow (struct tl_backing *backing, char *error,
                     size_t error_size);

/* Close it.  With UNDO a file that was created goes, and one that was empty is
 * empty again.
 */
void tl_backing_close (struct tl_backing *backing, bool undo);

/* fallocate that is repeated where a signal interrupts it. */
int tl_fallocate (int fd, int mode, uint64_t offset, uint64_t length);

#endif
