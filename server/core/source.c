/* The primary's side of mirroring and resync: design.md, section 7.  One
 * ordered stream carries live writes and sync chunks, so that a chunk never
 * overtakes a newer write.
 */
#include "internal.h"

#include <assert.h>
#include <inttypes.h>

/* The blocks that exist here are the ones to copy into an emptied store. */
static void
dirty_from_allocated (struct tl_core *c)
{
  const struct tl_map *allocated = c->config.allocated;
  uint64_t at = tl_map_next (allocated, 0, true);

  tl_map_clear (&c->dirty, 0, c->dirty.blocks);
  while (at < allocated->blocks) {
    uint64_t n = tl_map_run (allocated, at, allocated->blocks);

    tl_map_set (&c->dirty, at, n);
    at += n;
    if (at < allocated->blocks)
      at = tl_map_next (allocated, at, true);
  }
}

/* This node is primary: the peer is to become the target, and say so. */
void
source_wait (struct tl_core *c)
{
  c->phase = PHASE_SOURCE_WAIT;
  c->unready = c->now;
}

/* The target is ready; its dirty runs are in PAYLOAD.  From now on every write
 * is mirrored.
 */
void
source_bitmap (struct tl_core *c, const void *payload, size_t length)
{
  struct tl_run runs[TL_RUNS_MAX];
  unsigned n;

  if (c->phase != PHASE_SOURCE_WAIT) {
    session_end (c, true, "bitmap where none was expected");
    return;
  }
  if (tl_runs_decode (runs, &n, c->dirty.blocks, payload, length) == -1) {
    session_end (c, true, "malformed bitmap frame");
    return;
  }
  for (unsigned i = 0; i < n; i++)
    tl_map_set (&c->dirty, runs[i].first, runs[i].count);

  c->phase = PHASE_SOURCE;
  memset (&c->resync, 0, sizeof c->resync);
  c->resync.full =
      !c->peer_member &&
      (c->kept->map_incarnation != c->peer.incarnation ||
       c->peer.data == TL_EMPTY || c->peer.view.number == 0 || c->diverged);
  if (c->peer_member && c->dirty.count == 0) {
    c->proved = true;
    c->lost_at = 0;
    c->recheck = true;
    changed (c);
    return;
  }

  resync_begin (c, c->resync.full);
  if (c->peer_member)
    c->lost_at = 0;
}

/* Copy what is dirty; FULL: all that exists, into a target that empties itself
 * first.
 */
void
resync_begin (struct tl_core *c, bool full)
{
  memset (&c->resync, 0, sizeof c->resync);
  c->resync.full = full;
  if (full) {
    /* Until the target has emptied itself nothing is known of it. */
    c->kept->map_incarnation = 0;
    dirty_from_allocated (c);
  }
  c->resync.begin_sequence =
      send_sequenced (c, TL_SYNC_BEGIN, full ? TL_FULL : 0)->frame.sequence;
  c->resync.active = true;
  c->resync.total = c->dirty.count;
  c->resync.started = c->now;
  c->counters.resyncs++;
  c->counters.resyncs_full += full;
  c->recheck = true;
  changed (c);
  say (c, "%s resync to node %s: %" PRIu64 " KiB", full ? "full" : "partial",
       c->peer.node, c->resync.total * (TL_BLOCK / 1024));
}

/* Clients write: their frames are not to queue behind much. */
static bool
foreground (const struct tl_core *c)
{
  return c->foreground != 0 && c->now < c->foreground + FOREGROUND;
}

/* Send what the window allows. */
void
source_pump (struct tl_core *c)
{
  const struct tl_map *allocated = c->config.allocated;
  bool small = foreground (c);
  unsigned window = small ? SMALL_CHUNKS : CHUNKS;

  c->resync.more = c->resync.paced = false;
  if (c->phase != PHASE_SOURCE || !c->resync.active ||
      c->resync.done_sequence != 0)
    return;

  while (c->resync.n_chunks < window) {
    uint64_t first = tl_map_next (&c->dirty, c->resync.cursor, true);
    uint64_t most = small ? SMALL_CHUNK_BLOCKS : CHUNK_BLOCKS, count;
    struct tl_action *action;
    bool exists;

    if (!room (c, 8)) {
      c->resync.more = true;
      return;
    }
    if (c->now < c->resync.next) {
      c->resync.paced = true;
      return;
    }
    if (first == c->dirty.blocks) {
      if (c->resync.n_chunks > 0)
        return;
      /* Behind the cursor nothing becomes dirty in this session. */
      assert (c->dirty.count == 0);
      c->resync.done_sequence =
          send_sequenced (c, TL_SYNC_DONE, 0)->frame.sequence;
      return;
    }
    exists = tl_map_test (allocated, first);
    if (!exists)
      most = TL_ZERO_MAX / TL_BLOCK;
    count = tl_map_run (&c->dirty, first, most);
    count = tl_map_run (allocated, first, count);

    action = send_sequenced (c, TL_SYNC_CHUNK, exists ? 0 : TL_ZEROES);
    action->frame.offset = first * TL_BLOCK;
    action->frame.length = (uint32_t)(count * TL_BLOCK);
    if (exists) {
      action->frame.payload = action->frame.length;
      action->payload = TL_PAYLOAD_STORE;
      c->counters.sent_bytes_resync += action->frame.length;
      if (c->config.resync_rate != 0) {
        if (c->resync.next < c->now)
          c->resync.next = c->now;
        c->resync.next +=
            (uint64_t)action->frame.length * SECOND / c->config.resync_rate;
      }
    }
    c->resync.chunks[c->resync.n_chunks++] = (struct chunk){
        .sequence = action->frame.sequence, .first = first, .count = count};
    c->resync.cursor = first + count;
  }
}

static void
resync_acked (struct tl_core *c)
{
  unsigned kept = 0;

  if (c->resync.full && c->kept->map_incarnation == 0 &&
      c->tx_acked >= c->resync.begin_sequence)
    c->kept->map_incarnation = c->peer.incarnation;

  for (unsigned i = 0; i < c->resync.n_chunks; i++) {
    const struct chunk *chunk = &c->resync.chunks[i];

    if (chunk->sequence <= c->tx_acked) {
      tl_map_clear (&c->dirty, chunk->first, chunk->count);
      c->recheck = c->recheck || c->held.count > 0;
    } else {
      c->resync.chunks[kept++] = *chunk;
    }
  }
  c->resync.n_chunks = kept;

  if (c->resync.done_sequence != 0 && c->tx_acked >= c->resync.done_sequence) {
    c->resync.active = false;
    c->resync.done = true;
    c->proved = true;
    c->peer.data = TL_COMPLETE;
    c->recheck = true;
    changed (c);
    say (c, "resync to node %s is complete", c->peer.node);
  }
}

void
source_ack (struct tl_core *c, uint64_t sequence)
{
  if (sequence > c->tx_sequence || sequence < c->tx_acked) {
    session_end (c, true, "acknowledgement of what was not sent");
    return;
  }
  if (sequence == c->tx_acked)
    return;
  c->tx_acked = sequence;
  c->progress = c->now;
  if (c->resync.active)
    resync_acked (c);
  requests_acked (c);
}
