/* Copies into a store that are made without the volume's lock.
 *
 * Each has a range.  Whoever holds the lock and is about to touch one of the
 * ranges waits until that copy is made; a copy itself waits for nothing and
 * takes no lock, so that the wait is short and ends.
 */
#ifndef TWINLOG_COPIES_H
#define TWINLOG_COPIES_H

#include <stdatomic.h>
#include <stdint.h>

/* At a time: more than there are processors to make them. */
#define TL_COPIES 31

struct tl_copies {
  _Atomic uint32_t busy; /* a futex: bit I: copy I is being made; the last bit:
                          * somebody waits */
  struct {
    uint64_t offset, length;
  } ranges[TL_COPIES];
};

/* With the lock held: a number for a copy to that range, which no other
 * overlaps, or -1: there are too many.
 */
int tl_copies_begin (struct tl_copies *copies, uint64_t offset,
                     uint64_t length);

/* Any thread, whether or not somebody else holds the lock: that copy, whose
 * bytes are there, is made.
 */
void tl_copies_end (struct tl_copies *copies, int number);

/* With the lock held: wait for the copies that overlap the range.  The bytes
 * of those that were made are visible afterwards.
 */
void tl_copies_wait (struct tl_copies *copies, uint64_t offset,
                     uint64_t length);

#endif
