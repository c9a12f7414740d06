/* Memory for the cores at addresses that do not change: the linker sends their
 * allocations here (--wrap), so that a copy of the bytes is a copy of the state
 * with all its pointers.
 */
#include "explore.h"

#include <stdlib.h>

#define ARENA (256u * 1024u)

void *__real_malloc (size_t size);
void *__real_calloc (size_t n, size_t size);
void __real_free (void *memory);
void *__wrap_malloc (size_t size);
void *__wrap_calloc (size_t n, size_t size);
void __wrap_free (void *memory);

static struct {
  _Alignas(64) unsigned char bytes[ARENA];
  size_t used;
} arenas[2];
static int current = -1;

static size_t
rounded (size_t size)
{
  return (size + 63) & ~(size_t)63;
}

void *
__wrap_malloc (size_t size)
{
  void *memory;

  if (current < 0)
    return __real_malloc (size);
  if (rounded (size) > ARENA - arenas[current].used)
    return NULL;
  memory = arenas[current].bytes + arenas[current].used;
  arenas[current].used += rounded (size);
  return memory;
}

void *
__wrap_calloc (size_t n, size_t size)
{
  void *memory;

  if (current < 0)
    return __real_calloc (n, size);
  memory = __wrap_malloc (n * size);
  return memory != NULL ? memset (memory, 0, n * size) : NULL;
}

void
__wrap_free (void *memory)
{
  unsigned char *at = memory;

  for (unsigned i = 0; i < 2; i++)
    if (at >= arenas[i].bytes && at < arenas[i].bytes + ARENA)
      return; /* with the next start of the node */
  __real_free (memory);
}

void
arena_begin (unsigned node)
{
  current = (int)node;
  arenas[node].used = 0;
}

void
arena_end (void)
{
  current = -1;
}

struct tl_core *
arena_core (unsigned node)
{
  return (struct tl_core *)(void *)arenas[node].bytes;
}

/* A core with kept RAM allocates itself and then its slots. */
uint32_t *
arena_slots (unsigned node)
{
  return (uint32_t *)(void *)(arenas[node].bytes +
                              rounded (sizeof (struct tl_core)));
}
