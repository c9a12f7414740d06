/* The fingerprint of a state.  Equal fingerprints have equal successors but for
 * the order of timers.  States are one and the same where they differ only in
 * - random numbers: views, sessions, incarnations and connections are numbered
 *   in the order in which they are met here;
 * - times: of a node's timers only which have passed and the order of the
 *   others is kept (timers.c).  This leaves out orders that other lengths of
 *   waits would allow; those are the simulator's (twinlog-sim);
 * - what the core does not look at again: texts, counters, the length of its
 *   back-off, a proposal that is over, fields of a session that has ended, RAM
 *   that was lost, requests that were answered.
 */
#include "explore.h"

#include <assert.h>
#include <xxhash.h>

#define BYTES 32768u
#define IDS 256u

static unsigned char bytes[BYTES];
static size_t used;
static uint64_t ids[IDS];
static unsigned n_ids;

static void
put (uint64_t value)
{
  assert (used + 8 <= BYTES);
  memcpy (bytes + used, &value, 8);
  used += 8;
}

static void
put_raw (const void *from, size_t length)
{
  assert (used + length <= BYTES);
  memcpy (bytes + used, from, length);
  used += length;
}

static void
put_id (uint64_t id)
{
  unsigned i = 0;

  if (id == 0) {
    put (0);
    return;
  }
  while (i < n_ids && ids[i] != id)
    i++;
  if (i == n_ids) {
    assert (n_ids < IDS);
    ids[n_ids++] = id;
  }
  put (i + 1);
}

static void
put_view (const struct tl_view *view)
{
  put (view->number);
  if (view->number == 0)
    return;
  put_id (view->id);
  put_id (view->parent);
  put ((uint64_t)view->primary[0] << 8 | view->n_members);
  put ((uint64_t)view->members[0][0] << 8 | (uint64_t)view->members[1][0]);
}

static void
put_record (const struct tl_record *r)
{
  put (r->uuid.bytes[0]);
  put_view (&r->view);
  put (r->n_history);
  for (unsigned i = 0; i < r->n_history; i++) {
    put (r->history[i].number);
    put_id (r->history[i].id);
  }
  put_view (&r->proposal);
  put_id (r->incarnation);
  put_id (r->peer_view);
  put ((uint64_t)r->peer[0]);
}

static void
put_hello (const struct tl_hello *h)
{
  put ((uint64_t)h->node[0]);
  put (h->uuid.bytes[0]);
  put_id (h->incarnation);
  put ((uint64_t)h->role | (uint64_t)h->data << 8 | (uint64_t)h->member << 16);
  put_view (&h->view);
  put (h->n_past);
  for (unsigned i = 0; i < h->n_past; i++) {
    put (h->past[i].number);
    put_id (h->past[i].id);
  }
}

static void
put_packet (const struct packet *p)
{
  const struct tl_frame *f = &p->frame;
  struct tl_hello hello;
  struct tl_uuid uuid;
  struct tl_view view;

  if (p->end) {
    put (UINT64_MAX);
    return;
  }
  put ((uint64_t)f->type | (uint64_t)f->flags << 8 | f->view << 16);
  if (f->type == TL_BYE)
    return;
  put_id (f->session);
  put (f->sequence << 32 | f->offset);
  put ((uint64_t)f->length << 32 | f->payload);
  put_raw (p->tags, sizeof p->tags);
  if (f->type == TL_HELLO &&
      tl_hello_decode (&hello, p->small, p->length) == 0) {
    put_hello (&hello);
  } else if (p->length > 0 && f->type != TL_BITMAP &&
             tl_view_decode (&uuid, &view, p->small, p->length) == 0) {
    put (uuid.bytes[0]);
    put_view (&view);
  } else {
    put_raw (p->small, p->length);
  }
}

/* 0: not set, 1: passed, from 2 on: in which order they come. */
static void
put_timers (unsigned node)
{
  uint64_t at[TIMERS], coming[TIMERS], now = world.nodes[node].now;
  unsigned char ranks[TIMERS] = {0};
  unsigned n = 0;

  timers (&world, node, at);
  for (unsigned i = 0; i < TIMERS; i++) {
    unsigned k = 0;

    while (k < n && coming[k] != at[i])
      k++;
    if (k == n && at[i] != NEVER && at[i] > now)
      coming[n++] = at[i];
  }
  for (unsigned i = 0; i < TIMERS; i++) {
    if (at[i] == NEVER)
      continue;
    ranks[i] = 1;
    if (at[i] > now) {
      ranks[i]++;
      for (unsigned k = 0; k < n; k++)
        ranks[i] += coming[k] < at[i];
    }
  }
  put_raw (ranks, sizeof ranks);
}

static void
put_list (const struct list *list)
{
  put (list->count);
  for (const struct tl_request *r = list->first; r != NULL; r = r->next) {
    const struct client *client = (const struct client *)(const void *)r;

    put ((uint64_t)(client - world.clients));
    put (r->sequence << 8 | (r->entered < r->sent));
    put (r->slot);
  }
}

static void
put_session (const struct tl_core *c)
{
  put_id (c->session);
  put_id (c->session_id);
  put (c->session_view);
  put_hello (&c->peer);
  put ((uint64_t)c->peer_member | (uint64_t)c->peer_stored << 1 |
       (uint64_t)c->creating << 2 | (uint64_t)c->resynced << 3 |
       (uint64_t)c->diverged << 4 | (uint64_t)c->resync.active << 5 |
       (uint64_t)c->resync.done << 6 | (uint64_t)c->resync.full << 7 |
       (uint64_t)c->resync.more << 8 | (uint64_t)c->resync.paced << 9);
  put (c->tx_sequence << 32 | c->tx_acked);
  put (c->rx_sequence << 32 | c->rx_acked);
  put (c->resync.begin_sequence << 32 | c->resync.done_sequence);
  put (c->resync.cursor << 32 | c->resync.n_chunks);
  for (unsigned i = 0; i < c->resync.n_chunks; i++)
    put (c->resync.chunks[i].sequence << 16 | c->resync.chunks[i].first << 8 |
         c->resync.chunks[i].count);
}

static void
put_agree (const struct tl_core *c)
{
  put (c->agree.stage);
  if (c->agree.stage == STAGE_IDLE)
    return;
  put (c->agree.kind);
  put_view (&c->agree.before);
  put_view (&c->agree.view);
  put (c->agree.uuid.bytes[0]);
  put ((uint64_t)c->agree.member | (uint64_t)c->agree.forced << 1 |
       (uint64_t)c->agree.acknowledge << 2 | (uint64_t)c->agree.create << 3 |
       (uint64_t)c->agree.doubtful << 4 | (uint64_t)c->agree.propose << 5 |
       (uint64_t)(c->agree.token != 0) << 6);
  if (c->agree.stage == STAGE_STORE_PROPOSAL ||
      c->agree.stage == STAGE_STORE_VIEW)
    put_record (&c->pending);
  put (c->told.waiting);
  if (c->told.waiting) {
    put ((uint64_t)c->told.handover | (uint64_t)c->told.flags << 1);
    put_view (&c->told.view);
  }
}

static void
put_core (const struct tl_core *c)
{
  put_record (&c->record);
  put ((uint64_t)c->role | (uint64_t)c->standalone << 1 |
       (uint64_t)c->demoted << 2 | (uint64_t)c->dialling << 3 |
       (uint64_t)c->candidate << 4 | (uint64_t)c->leaving << 5 |
       (uint64_t)c->recheck << 6 | (uint64_t)(c->handover_token != 0) << 7 |
       (uint64_t)(c->create_token != 0) << 8 |
       (uint64_t)(c->switchover_token != 0) << 9);
  put_id (c->connected_view);
  put_agree (c);
  put_id (c->dial);
  put_id (c->accept);
  if (c->candidate) {
    put_hello (&c->caller);
    put_id (c->caller_session);
  }
  put (c->phase);
  if (c->phase != PHASE_NONE)
    put_session (c);
  put (c->waiting.token);
  if (c->waiting.token != 0)
    put ((uint64_t)c->waiting.command << 8 | c->waiting.flags);
  put_list (&c->in_flight);
  put_list (&c->held);
}

static void
put_node (unsigned node)
{
  const struct node *n = &world.nodes[node];

  put ((uint64_t)(n->core != NULL) | (uint64_t)n->has_record << 1 |
       (uint64_t)n->has_ram << 2 | (uint64_t)n->store_wanted << 3 |
       (uint64_t)n->dial_wanted << 4 | (uint64_t)n->fenced << 5 |
       (uint64_t)n->waits << 6 | (uint64_t)(n->wake <= n->now) << 7 |
       (uint64_t)n->replaced << 8);
  if (n->has_ram) {
    put_raw (n->tags, sizeof n->tags);
    put (n->allocated_words[0] << 32 | n->dirty_words[0]);
    put_id (kept[node].incarnation);
    put_id (kept[node].map_incarnation);
    put (kept[node].data);
    for (unsigned i = TL_KEPT_WRITES - TOP; i < TL_KEPT_WRITES; i++)
      put (kept[node].writes[i].count == 0
               ? 0
               : kept[node].writes[i].first << 8 | kept[node].writes[i].count);
  }
  /* The state file differs from what the core has of it only in the peer's
   * name and view, which count after a restart.
   */
  if (n->has_record)
    put_record (&records[node]);
  if (n->core != NULL) {
    put_core (n->core);
    put_timers (node);
  }
}

static void
put_question (const struct question *q)
{
  put ((uint64_t)q->executed | (uint64_t)q->asked << 1 |
       (uint64_t)q->node << 2 | (uint64_t)q->create << 3 |
       (uint64_t)q->result << 4 | (uint64_t)q->known << 8);
  put (q->uuid.bytes[0]);
  put_view (&q->before);
  put_view (&q->after);
  put_view (&q->found);
}

/* Of writes that were neither acknowledged nor can be any more it does not
 * count what was written upon them.
 */
static void
put_owed (void)
{
  uint16_t count = 0;

  for (unsigned i = 0; i < 2; i++)
    for (unsigned b = 0; b < BLOCKS; b++)
      count |= world.owed[i][b];
  for (unsigned i = 0; i < world.n_clients; i++)
    if (world.clients[i].pending && world.clients[i].core.op != TL_OP_READ)
      count |= (uint16_t)(1u << world.clients[i].tag);
  for (unsigned tag = 1; tag <= world.tag; tag++)
    put (world.upon[tag] & count);
  put_raw (world.owed, sizeof world.owed);
}

struct fingerprint
fingerprint (void)
{
  XXH128_hash_t hash;

  used = n_ids = 0;
  put_node (0);
  put_node (1);
  for (unsigned i = 0; i < CONNS; i++) {
    const struct conn *c = &world.conns[i];

    put_id (c->id);
    if (c->id == 0)
      continue;
    put ((uint64_t)c->open[0] | (uint64_t)c->open[1] << 1 |
         (uint64_t)c->cut << 2);
    for (unsigned side = 0; side < 2; side++) {
      put (pipes[i][side].n);
      for (unsigned k = 0; k < pipes[i][side].n; k++)
        put_packet (&pipes[i][side].packets[k]);
    }
  }
  for (unsigned i = 0; i < QUESTIONS; i++)
    if (world.questions[i].used)
      put_question (&world.questions[i]);
  put (world.arbiter_uuid.bytes[0]);
  put_view (&world.arbiter_view);
  put (world.n_clients);
  for (unsigned i = 0; i < world.n_clients; i++) {
    const struct client *r = &world.clients[i];

    put (r->pending);
    if (r->pending)
      put ((uint64_t)r->core.op | (uint64_t)r->node << 8 |
           (uint64_t)r->block << 16 | (uint64_t)r->tag << 24 |
           (uint64_t)r->floor << 32);
  }
  put (world.tag);
  if (scenario->may_lose)
    put_owed ();
  put_raw (world.zeroed, sizeof world.zeroed);
  put ((uint64_t)world.forced | (uint64_t)world.record_lost << 1);
  put_raw (world.budget, sizeof world.budget);
  put_raw (world.acknowledged, sizeof world.acknowledged);
  put_raw (world.floor, sizeof world.floor);
  put (world.ack_number << 8 | world.ack_node);
  put_id (world.ack_id);
  hash = XXH3_128bits (bytes, used);
  return (struct fingerprint){.low = hash.low64, .high = hash.high64};
}
