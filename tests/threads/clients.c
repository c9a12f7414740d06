/* Clients: each is let in where a node takes it, and reads and writes until a
 * request fails; then it looks for the primary again.
 */
#include "threads.h"

#include <stdlib.h>
#include <string.h>

struct buffer {
  unsigned char bytes[MOST_SECTORS * SECTOR];
};

/* Mostly a few sectors, at times many; at times whole blocks. */
static void
choose_range (struct client *client, struct op *op)
{
  struct rng *rng = &client->rng;

  op->count = (uint32_t)rng_between (
      rng, 1, rng_percent (rng, 15) ? MOST_SECTORS : SECTORS_OF_BLOCK);
  op->first = (uint32_t)rng_below (rng, SECTORS - op->count + 1);
  if (rng_percent (rng, 40)) {
    op->first -= op->first % SECTORS_OF_BLOCK;
    op->count += SECTORS_OF_BLOCK - 1;
    op->count -= op->count % SECTORS_OF_BLOCK;
  }
}

static int
run_op (struct client *client, struct tl_node *node, struct tl_client *inside,
        struct op *op, unsigned char *bytes)
{
  uint64_t offset = (uint64_t)op->first * SECTOR;
  uint32_t length = op->count * SECTOR;
  int error = 0;

  op->start = now_us ();
  atomic_store (&client->since, op->start);
  switch (op->kind) {
  case OP_READ:
    error = tl_node_read (node, inside, bytes, length, offset);
    break;
  case OP_WRITE:
    error = tl_node_write (node, inside, bytes, length, offset);
    break;
  case OP_ZERO:
    error = tl_node_zero (node, inside, length, offset);
    break;
  }
  atomic_store (&client->since, 0);
  op->end = now_us ();
  op->ok = error == 0;
  /* What nbdkit would do with the buffer: nothing may refer to it now. */
  history_add (&client->history, op, bytes);
  if (op->kind == OP_WRITE)
    memset (bytes, 0xa5, length);
  return error;
}

struct walk {
  uint64_t next; /* where the next extent must begin */
  bool gap;
};

static int
on_extent (void *opaque, uint64_t offset, uint64_t length, bool allocated)
{
  struct walk *walk = opaque;

  walk->gap |= offset != walk->next || length == 0;
  walk->next = offset + length;
  return 0;
}

/* Requests that return no data: they must end, and the extents be whole. */
static int
ask (struct client *client, struct tl_node *node, struct tl_client *inside)
{
  struct walk walk = {0, false};
  int error;

  atomic_store (&client->since, now_us ());
  error = tl_node_flush (node, inside);
  if (!error)
    error = tl_node_extents (node, inside, (uint32_t)SIZE, 0, on_extent, &walk);
  atomic_store (&client->since, 0);
  if (!error && (walk.gap || walk.next != SIZE))
    violation (client->test, "the extents of the volume have a gap");
  return error;
}

static int
one_request (struct client *client, struct tl_node *node,
             struct tl_client *inside)
{
  struct buffer buffer;
  struct op op = {.kind = OP_READ};
  uint64_t dice = rng_below (&client->rng, 100);

  if (dice == 0)
    return ask (client, node, inside);
  choose_range (client, &op);
  if (dice >= 95)
    op.kind = OP_ZERO;
  else if (dice >= 40) {
    op.kind = OP_WRITE;
    op.id = ((uint64_t)(client->index + 1) << 40) | ++client->written;
    history_fill (buffer.bytes, op.id, op.first, op.count);
  }
  return run_op (client, node, inside, &op, buffer.bytes);
}

/* At times only one client has anything to do, or two: the worker of a request
 * that waits alone reads for itself.
 */
static void
let_others (struct client *client)
{
  while (!atomic_load (&client->test->stop)) {
    uint64_t turn = now_us () / 150000 % 4;

    if (turn > 1 || client->index <= turn)
      return;
    pause_ms (1);
  }
}

/* Be let in at NODE, and go on until a request fails there. */
static void
visit (struct client *client, struct tl_node *node)
{
  struct tl_client *inside;
  char why[512];

  atomic_store (&client->since, now_us ());
  inside = tl_node_admit (node, why, sizeof why);
  atomic_store (&client->since, 0);
  if (!inside)
    return;
  while (!atomic_load (&client->test->stop)) {
    let_others (client);
    if (one_request (client, node, inside) != 0)
      break;
    if (rng_percent (&client->rng, 1))
      break; /* a client that comes anew */
  }
  tl_node_leave (node, inside);
}

static void *
client_main (void *opaque)
{
  struct client *client = opaque;
  struct test *test = client->test;

  while (!atomic_load (&test->stop)) {
    for (unsigned i = 0; i < 2; i++) {
      struct slot *slot = &test->slots[i];
      struct tl_node *node = slot_enter (slot);

      if (!node)
        continue;
      visit (client, node);
      slot_leave (slot);
    }
    pause_ms (2);
  }
  return NULL;
}

void
clients_start (struct test *test)
{
  for (unsigned i = 0; i < CLIENTS; i++) {
    struct client *client = &test->clients[i];

    client->test = test;
    client->index = i;
    rng_seed (&client->rng, test->seed * 100 + i);
    if (pthread_create (&client->thread, NULL, client_main, client) != 0)
      abort ();
  }
}

void
clients_stop (struct test *test)
{
  atomic_store (&test->stop, true);
  for (unsigned i = 0; i < CLIENTS; i++)
    pthread_join (test->clients[i].thread, NULL);
}

bool
clients_read_all (struct test *test, struct slot *slot)
{
  struct client *client = &test->clients[0];
  struct tl_node *node = slot_enter (slot);
  struct tl_client *inside;
  struct buffer buffer;
  struct op op = {.kind = OP_READ, .count = SECTORS_OF_BLOCK};
  char why[512];
  int error = 0;

  if (!node)
    return false;
  inside = tl_node_admit (node, why, sizeof why);
  if (!inside) {
    violation (test, "after healing node %s lets nobody in: %s", slot->name,
               why);
    slot_leave (slot);
    return false;
  }
  for (op.first = 0; op.first < SECTORS && !error; op.first += op.count)
    error = run_op (client, node, inside, &op, buffer.bytes);
  tl_node_leave (node, inside);
  slot_leave (slot);
  if (error)
    violation (test, "after healing a read of node %s fails: %s", slot->name,
               strerror (error));
  return !error;
}
