/* One word has all that is to be agreed on.  A bit is set, and its range
 * written, with the lock held; the thread that makes the copy clears it, which
 * publishes the bytes.
 */
#include "copies.h"

#include <linux/futex.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WAITED (UINT32_C (1) << TL_COPIES)

int
tl_copies_begin (struct tl_copies *copies, uint64_t offset, uint64_t length)
{
  uint32_t busy = atomic_load_explicit (&copies->busy, memory_order_acquire);
  int number = 0;

  while (busy & (UINT32_C (1) << number))
    if (++number == TL_COPIES)
      return -1;
  copies->ranges[number].offset = offset;
  copies->ranges[number].length = length;
  atomic_fetch_or_explicit (&copies->busy, UINT32_C (1) << number,
                            memory_order_acq_rel);
  return number;
}

void
tl_copies_end (struct tl_copies *copies, int number)
{
  uint32_t busy = atomic_fetch_and_explicit (
      &copies->busy, ~(UINT32_C (1) << number), memory_order_acq_rel);

  if (busy & WAITED)
    syscall (SYS_futex, &copies->busy, FUTEX_WAKE_PRIVATE, 1);
}

/* Does one of those that are BUSY overlap the range? */
static bool
overlap (const struct tl_copies *copies, uint32_t busy, uint64_t offset,
         uint64_t length)
{
  for (unsigned i = 0; i < TL_COPIES; i++)
    if ((busy & (UINT32_C (1) << i)) &&
        copies->ranges[i].offset < offset + length &&
        offset < copies->ranges[i].offset + copies->ranges[i].length)
      return true;
  return false;
}

void
tl_copies_wait (struct tl_copies *copies, uint64_t offset, uint64_t length)
{
  uint32_t busy = atomic_load_explicit (&copies->busy, memory_order_acquire);

  if (!busy || !overlap (copies, busy, offset, length))
    return;
  /* Only who holds the lock comes here: nobody else sets or clears the bit. */
  busy = WAITED |
         atomic_fetch_or_explicit (&copies->busy, WAITED, memory_order_acq_rel);
  while (overlap (copies, busy, offset, length)) {
    syscall (SYS_futex, &copies->busy, FUTEX_WAIT_PRIVATE, busy, NULL, NULL, 0);
    busy = atomic_load_explicit (&copies->busy, memory_order_acquire);
  }
  atomic_fetch_and_explicit (&copies->busy, ~WAITED, memory_order_acq_rel);
}
