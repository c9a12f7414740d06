/* Clients: each keeps some requests outstanding on the node that lets it in,
 * and looks for another one when it is turned away.
 */
#include "sim.h"

#include <errno.h>
#include <string.h>

/* Who asks, where it is none of the clients: */
#define FINAL (-1)  /* the last check of a run */
#define NOBODY (-2) /* a client that has turned elsewhere */

void
clients_reset (struct sim *sim)
{
  struct clients *clients = &sim->clients;
  uint64_t most = 6;

  memset (clients->client, 0, sizeof clients->client);
  for (unsigned i = 0; i < OPS; i++)
    clients->free[i] = &clients->ops[i];
  for (unsigned i = 0; i < OPS; i++)
    clients->ops[i].used = false;
  clients->n_free = OPS;
  clients->paused_until = 0;
  clients->avoided_until = 0;
  clients->outstanding = 0;
  clients->think = rng_between (&sim->rng, 2 * MS, 12 * MS);
  clients->reads = (unsigned)rng_between (&sim->rng, 10, 40);
  clients->zeroes = 8;
  if (rng_percent (&sim->rng, sim->resync_rate ? 60 : 12)) {
    /* Many requests at once, many of them reads and zeroes. */
    most = OPS / CLIENTS;
    clients->reads = (unsigned)rng_between (&sim->rng, 30, 60);
    clients->zeroes = 25;
    clients->think /= 4;
  }
  for (unsigned i = 0; i < CLIENTS; i++) {
    clients->client[i].node = -1;
    clients->client[i].reader = i == 0;
    clients->client[i].depth = (unsigned)rng_between (&sim->rng, 1, most);
    sim_at (sim, rng_below (&sim->rng, 20 * MS), K_CLIENT, NULL, i, 0);
  }
}

/* ---- Requests ---- */

static struct op *
op_new (struct sim *sim, int client, struct node *node)
{
  struct clients *clients = &sim->clients;

  if (clients->n_free == 0)
    return NULL;

  struct op *op = clients->free[--clients->n_free];

  memset (&op->request, 0, sizeof op->request);
  op->used = true;
  op->client = client;
  op->node = node->index;
  op->invoked = op->began = sim->now;
  op->next = NULL;
  op->prev = node->last;
  *(node->last ? &node->last->next : &node->first) = op;
  node->last = op;
  clients->outstanding++;
  if (client >= 0)
    clients->client[client].outstanding++;
  return op;
}

static void
op_free (struct sim *sim, struct op *op)
{
  struct node *node = &sim->nodes[op->node];

  *(op->prev ? &op->prev->next : &node->first) = op->next;
  *(op->next ? &op->next->prev : &node->last) = op->prev;
  op->used = false;
  sim->clients.free[sim->clients.n_free++] = op;
  sim->clients.outstanding--;
  if (op->client >= 0)
    sim->clients.client[op->client].outstanding--;
}

/* Choose what to do and where.  Half of all requests meet in a few blocks. */
static void
choose (struct sim *sim, struct tl_request *request, bool reader)
{
  struct rng *rng = &sim->rng;
  unsigned what = (unsigned)rng_below (rng, 100);
  uint64_t blocks = sim->blocks, most = OP_BLOCKS;
  uint64_t first, count;

  if (reader || what < sim->clients.reads)
    request->op = TL_OP_READ;
  else if (what < sim->clients.reads + 4)
    request->op = TL_OP_FLUSH;
  else if (what < sim->clients.reads + 4 + sim->clients.zeroes)
    request->op = TL_OP_ZERO;
  else
    request->op = TL_OP_WRITE;
  if (request->op == TL_OP_FLUSH)
    return;
  if (request->op == TL_OP_ZERO && rng_percent (rng, 20))
    most = blocks;
  if (rng_percent (rng, 50))
    blocks = blocks < 4 ? blocks : 4;
  first = rng_below (rng, blocks);
  count = 1;
  if (rng_percent (rng, 40))
    count = rng_between (rng, 1, most);
  if (count > sim->blocks - first)
    count = sim->blocks - first;
  request->offset = first * TL_BLOCK;
  request->length = (uint32_t)(count * TL_BLOCK);
  if (rng_percent (rng, 30)) {
    /* Some sectors of that only. */
    uint64_t sectors = request->length / SECTOR;
    uint64_t skip = rng_below (rng, sectors);

    request->offset += skip * SECTOR;
    request->length = (uint32_t)(rng_between (rng, 1, sectors - skip) * SECTOR);
  }
}

static void
enter (struct sim *sim, struct node *node, struct op *op)
{
  struct tl_request *request = &op->request;
  struct tl_event event = {.type = TL_EV_REQUEST};

  oracle_invoke (sim, op);
  if (request->op == TL_OP_WRITE) {
    request->checksum = tl_payload_checksum (op->bytes, request->length);
    if (tl_store_reserve (node->store, request->offset, request->length) != 0)
      sim_violate (sim, "%s has no memory for a write", node->name);
  }
  TRACE (sim, "%s: %s", node->name, sim_op_text (op));
  event.request = request;
  node_step (sim, node, &event);
}

/* ---- Coming and going ---- */

static void
detach (struct sim *sim, struct client *client)
{
  client->node = -1;
  TRACE (sim, "client %d leaves", (int)(client - sim->clients.client));
}

static void
attach (struct sim *sim, struct client *client)
{
  int from = (int)rng_below (&sim->rng, NODES);
  char why[256];

  for (int i = 0; i < NODES; i++) {
    struct node *node = &sim->nodes[(from + i) % NODES];

    if (!node->alive || node->frozen_until > sim->now ||
        tl_core_admit (node->core, why, sizeof why) < 0)
      continue;
    client->node = node->index;
    client->epoch = tl_core_epoch (node->core);
    TRACE (sim, "client %d is let in at %s",
           (int)(client - sim->clients.client), node->name);
    return;
  }
}

/* A client turns elsewhere and leaves what it has outstanding to its fate. */
static void
turn_away (struct sim *sim, int number)
{
  struct client *client = &sim->clients.client[number];

  for (unsigned k = 0; k < OPS; k++)
    if (sim->clients.ops[k].used && sim->clients.ops[k].client == number)
      sim->clients.ops[k].client = NOBODY;
  client->outstanding = 0;
  detach (sim, client);
}

/* A node has become primary: some of the other node's clients turn to it. */
void
clients_turn (struct sim *sim, const struct node *primary)
{
  for (int i = 0; i < CLIENTS; i++) {
    int node = sim->clients.client[i].node;

    if (node >= 0 && node != primary->index && rng_percent (&sim->rng, 50))
      turn_away (sim, i);
  }
}

/* Those who write leave NODE and do not come back before UNTIL. */
void
clients_avoid (struct sim *sim, const struct node *node, uint64_t until)
{
  sim->clients.avoided = node->index;
  sim->clients.avoided_until = until;
  for (int i = 0; i < CLIENTS; i++) {
    struct client *client = &sim->clients.client[i];

    if (client->node == node->index && !client->reader)
      turn_away (sim, i);
  }
}

static void
issue (struct sim *sim, int number)
{
  struct client *client = &sim->clients.client[number];
  struct node *node = &sim->nodes[client->node];
  struct op *op;

  if (client->outstanding >= client->depth || node->frozen_until > sim->now)
    return;
  op = op_new (sim, number, node);
  if (!op)
    return;
  choose (sim, &op->request, client->reader);
  op->request.epoch = client->epoch;
  if (sim->now % 64 == 0) {
    /* The last part of a longer one, which has had some of its time. */
    uint64_t before = sim->now / 64 % 4 * sim->deadline / 2;

    op->began = sim->now - (before < sim->now ? before : 0);
    op->request.began = sim->nodes[op->node].clock + op->began;
    sim_count (sim, T_PARTS);
  }
  enter (sim, node, op);
}

/* NODE runs again after a freeze: its clients have requests ready. */
void
clients_thaw (struct sim *sim, struct node *node)
{
  TRACE (sim, "%s: thaws", node->name);
  for (int i = 0; i < CLIENTS && !sim->violated; i++)
    for (unsigned n = 0; n < 3; n++)
      if (sim->clients.client[i].node == node->index)
        issue (sim, i);
}

void
clients_tick (struct sim *sim, uint64_t number)
{
  struct client *client = &sim->clients.client[number];
  struct rng *rng = &sim->rng;
  uint64_t think = sim->clients.think;

  if (sim->clients.paused_until > sim->now) {
    if (client->node >= 0 && client->outstanding == 0)
      detach (sim, client);
    sim_at (sim, sim->now + 4 * think, K_CLIENT, NULL, number, 0);
    return;
  }
  if (client->node < 0 && client->outstanding == 0)
    attach (sim, client);
  if (client->node < 0)
    think *= 4; /* nobody lets it in */
  sim_at (sim, sim->now + rng_between (rng, think / 8, think * 2), K_CLIENT,
          NULL, number, 0);
  if (client->node >= 0)
    issue (sim, (int)number);
}

void
clients_done (struct sim *sim, struct op *op)
{
  int error = op->request.error;

  if (error == 0)
    oracle_done (sim, op);
  else
    sim_count (sim, T_FAILED);
  if (op->client == FINAL) {
    sim->schedule.final_reads--;
    sim->schedule.final_failed += error != 0;
  } else if (op->client != NOBODY &&
             (error == ESHUTDOWN ||
              (error != 0 && rng_percent (&sim->rng, 30)))) {
    detach (sim, &sim->clients.client[op->client]);
  }
  op_free (sim, op);
}

void
clients_node_died (struct sim *sim, struct node *node)
{
  while (node->first) {
    sim_count (sim, T_FAILED);
    op_free (sim, node->first);
  }
  for (unsigned i = 0; i < CLIENTS; i++)
    if (sim->clients.client[i].node == node->index)
      sim->clients.client[i].node = -1;
}

unsigned
clients_attached (struct sim *sim, const struct node *node)
{
  unsigned n = 0;

  for (unsigned i = 0; i < CLIENTS; i++)
    n += sim->clients.client[i].node == node->index;
  return n;
}

/* Read one block through NODE, for the last check of a run. */
bool
clients_final_read (struct sim *sim, struct node *node, unsigned block)
{
  struct op *op = op_new (sim, FINAL, node);

  if (!op)
    return false;
  op->request.op = TL_OP_READ;
  op->request.offset = (uint64_t)block * TL_BLOCK;
  op->request.length = TL_BLOCK;
  op->request.epoch = tl_core_epoch (node->core);
  sim->schedule.final_reads++;
  enter (sim, node, op);
  return true;
}
