/* The RAM of a node.  It goes with the machine; in some seeds it outlives the
 * process (store=), with what the core keeps beside it.
 */
#include "sim.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Make sure that a node that starts has RAM: what an earlier process left, or
 * fresh and empty.
 */
void
ram_open (struct sim *sim, struct node *node)
{
  struct tl_store_config config = {.size = sim->size};
  char error[256];

  if (node->store)
    return;
  if (tl_store_open (&node->store, &config, error, sizeof error) < 0) {
    fprintf (stderr, "twinlog-sim: no store: %s\n", error);
    _exit (3);
  }
  node->incarnation = rng_next (&sim->rng) | 1;
  node->ram_born = sim->now;
  if (sim->ram_kept) {
    memset (&node->kept, 0, sizeof node->kept);
    memset (node->kept_map, 0, sizeof node->kept_map);
    node->kept.incarnation = node->incarnation;
  }
}

/* The machine is off. */
void
ram_lose (struct sim *sim, struct node *node)
{
  if (!node->store)
    return;
  tl_store_close (node->store);
  node->store = NULL;
  node->ram_died = sim->now;
}
