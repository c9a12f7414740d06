/* What a core keeps beside the RAM, in the same memory, where the RAM outlives
 * its process: the state of the data and which blocks may differ from the
 * peer's.  A process may be killed between any two instructions; whatever it
 * leaves is right.
 */
#ifndef TWINLOG_CORE_KEPT_H
#define TWINLOG_CORE_KEPT_H

#include <stdint.h>

/* Writes that are under way at once, at most; one more is refused. */
#define TL_KEPT_WRITES 4096u

struct tl_kept {
  uint64_t incarnation;     /* of this RAM, random, not 0 */
  uint64_t map_incarnation; /* of the peer's RAM that the map is about */
  uint64_t data;            /* enum tl_data */
  /* Sent to the peer and not acknowledged: dirty, after a restart. */
  struct {
    uint64_t first, count; /* blocks; count 0: free */
  } writes[TL_KEPT_WRITES];
};

#endif
