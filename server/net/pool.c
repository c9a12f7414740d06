/* Entries that were made beforehand, with room for a payload. */
#include "net/net.h"

#include <stdlib.h>
#include <string.h>

struct spare {
  struct tl_entry entry;
  unsigned char bytes[];
};

unsigned char *
tl_pool_bytes (struct tl_entry *entry)
{
  return ((struct spare *)entry)->bytes;
}

static struct tl_entry *
make_entry (unsigned pool, size_t capacity)
{
  struct spare *spare = malloc (sizeof *spare + capacity);

  if (!spare)
    return NULL;
  /* Touch the memory now: later there may be none. */
  memset (spare, 0, sizeof *spare + capacity);
  spare->entry.pool = pool;
  return &spare->entry;
}

int
tl_pools_init (struct tl_node *node)
{
  static const size_t capacity[TL_POOLS] = {0, TL_SMALL_MAX, 256u << 10};
  static const unsigned number[TL_POOLS] = {256, 8, 8};

  for (unsigned i = 0; i < TL_POOLS; i++) {
    node->pools[i].capacity = capacity[i];
    for (unsigned k = 0; k < number[i]; k++) {
      struct tl_entry *entry = make_entry (i, capacity[i]);

      if (!entry)
        return -1;
      entry->next = node->pools[i].free;
      node->pools[i].free = entry;
    }
  }
  return 0;
}

void
tl_pools_free (struct tl_node *node)
{
  for (unsigned i = 0; i < TL_POOLS; i++)
    while (node->pools[i].free) {
      struct tl_entry *entry = node->pools[i].free;

      node->pools[i].free = entry->next;
      free (entry);
    }
}

struct tl_entry *
tl_pool_take (struct tl_node *node, size_t length)
{
  unsigned i = 0;
  struct tl_entry *entry;

  while (i < TL_POOLS && node->pools[i].capacity < length)
    i++;
  if (i == TL_POOLS || !node->pools[i].free)
    entry = make_entry (i, i < TL_POOLS ? node->pools[i].capacity : length);
  else {
    entry = node->pools[i].free;
    node->pools[i].free = entry->next;
  }
  if (entry)
    entry->payload = tl_pool_bytes (entry);
  return entry;
}

void
tl_pool_give (struct tl_node *node, struct tl_entry *entry)
{
  if (entry->pool == TL_POOLS)
    free (entry);
  else {
    entry->next = node->pools[entry->pool].free;
    node->pools[entry->pool].free = entry;
  }
}
