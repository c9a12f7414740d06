/* A plugin of nbdkit that shows what waiting costs there: memory, unmirrored,
 * but each write is carried out by one other thread, for which nbdkit's worker
 * waits as it does for the other node of a pair: on the same kind of futex. The
 * thread takes all that has come at once.
 */
#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL
#define SIZE (128u << 20) /* that of the peers */

enum { WAITS, SLEEPS, ENDED };

struct call {
  struct call *next;
  const void *bytes;
  uint32_t length;
  uint64_t offset;
  _Atomic uint32_t state; /* a futex */
};

static unsigned char *memory;
static _Atomic (struct call *) calls; /* the newest first */
static _Atomic uint32_t bell;         /* a futex that the thread sleeps on */

static void
sleep_on (_Atomic uint32_t *futex, uint32_t value)
{
  syscall (SYS_futex, futex, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void
wake (_Atomic uint32_t *futex)
{
  syscall (SYS_futex, futex, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *
carry_out (void *opaque)
{
  for (;;) {
    uint32_t rung = atomic_load (&bell);
    struct call *newest = atomic_exchange (&calls, NULL), *oldest = NULL;

    if (newest == NULL)
      sleep_on (&bell, rung);
    while (newest != NULL) {
      struct call *next = newest->next;

      newest->next = oldest;
      oldest = newest;
      newest = next;
    }
    while (oldest != NULL) {
      struct call *call = oldest;

      oldest = call->next; /* once it has ended it may be gone */
      memcpy (memory + call->offset, call->bytes, call->length);
      if (atomic_exchange (&call->state, ENDED) == SLEEPS)
        wake (&call->state);
    }
  }
  return NULL;
}

static int
relay_after_fork (void)
{
  pthread_t thread;

  memory = calloc (1, SIZE);
  if (memory == NULL) {
    nbdkit_error ("no memory");
    return -1;
  }
  errno = pthread_create (&thread, NULL, carry_out, NULL);
  if (errno != 0) {
    nbdkit_error ("pthread_create: %m");
    return -1;
  }
  return 0;
}

static void *
relay_open (int readonly)
{
  return NBDKIT_HANDLE_NOT_NEEDED;
}

static int64_t
relay_get_size (void *handle)
{
  return SIZE;
}

static int
relay_pread (void *handle, void *bytes, uint32_t length, uint64_t offset,
             uint32_t flags)
{
  memcpy (bytes, memory + offset, length);
  return 0;
}

static int
relay_pwrite (void *handle, const void *bytes, uint32_t length, uint64_t offset,
              uint32_t flags)
{
  struct call call = {.bytes = bytes, .length = length, .offset = offset};

  call.next = atomic_load (&calls);
  while (!atomic_compare_exchange_weak (&calls, &call.next, &call))
    ;
  if (call.next == NULL) {
    atomic_fetch_add (&bell, 1);
    wake (&bell);
  }
  for (;;) {
    uint32_t state = WAITS;

    atomic_compare_exchange_strong (&call.state, &state, SLEEPS);
    if (state == ENDED)
      return 0;
    sleep_on (&call.state, SLEEPS);
  }
}

static struct nbdkit_plugin plugin = {
    .name = "relay",
    .after_fork = relay_after_fork,
    .open = relay_open,
    .get_size = relay_get_size,
    .pread = relay_pread,
    .pwrite = relay_pwrite,
};

NBDKIT_REGISTER_PLUGIN (plugin)
