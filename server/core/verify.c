/* Online verification: guarantee G6.  In the stream of live writes the primary
 * sends the checksums of some blocks; the target compares them with its own at
 * that very point of the stream, and tells which differ.  Those are dirty from
 * then on, and copied at once.
 */
#include "internal.h"

#include <inttypes.h>

#define VERIFY_BLOCKS 32u /* a frame */
#define VERIFY_FRAMES 2u  /* on the way */

static void
put_sum (unsigned char *at, uint64_t sum)
{
  for (unsigned i = 0; i < 8; i++)
    at[i] = (unsigned char)(sum >> (56 - 8 * i));
}

void
verify_start (struct tl_core *c)
{
  memset (&c->verify, 0, sizeof c->verify);
  c->verify.active = true;
  changed (c);
  say (c, "verify: comparing both copies");
}

static void
finish (struct tl_core *c, const char *how)
{
  c->verify.active = false;
  c->verify.ended = c->now;
  changed (c);
  say (c,
       "verify: %s; %" PRIu64 " of %" PRIu64 " KiB compared, %" PRIu64
       " blocks differed",
       how, c->verify.checked * (TL_BLOCK / 1024),
       c->dirty.blocks * (TL_BLOCK / 1024), c->verify.different);
}

/* The session, or the primary role, is over. */
void
verify_interrupted (struct tl_core *c)
{
  if (!c->verify.active)
    return;
  c->verify.interrupted = true;
  finish (c, "interrupted");
}

static bool
wants_frame (const struct tl_core *c)
{
  return c->verify.cursor < c->dirty.blocks &&
         c->verify.on_the_way < VERIFY_FRAMES;
}

/* Send what the window allows, between resyncs. */
void
verify_pump (struct tl_core *c)
{
  c->verify.more = false;
  if (!c->verify.active || !mirroring (c) || c->resync.active)
    return;
  while (wants_frame (c) && room (c, 8)) {
    uint64_t first = c->verify.cursor, count = c->dirty.blocks - first;
    struct tl_action *action;
    unsigned char *sums;

    if (count > VERIFY_BLOCKS)
      count = VERIFY_BLOCKS;
    sums = small (c);
    for (uint64_t i = 0; i < count; i++)
      put_sum (sums + 8 * i, c->config.sum (c->config.sum_opaque, first + i));
    action = send_sequenced (c, TL_VERIFY, 0);
    action->frame.offset = first * TL_BLOCK;
    action->frame.length = (uint32_t)(count * TL_BLOCK);
    action->frame.payload = (uint32_t)(8 * count);
    action->frame.checksum = tl_payload_checksum (sums, action->frame.payload);
    action->payload = TL_PAYLOAD_SMALL;
    action->small = sums;
    c->verify.cursor += count;
    c->verify.on_the_way++;
  }
  c->verify.more = wants_frame (c);
  if (c->verify.cursor == c->dirty.blocks && c->verify.on_the_way == 0)
    finish (c, "finished");
}

/* The target's side: compare, and answer with the runs that differ. */
void
verify_compare (struct tl_core *c, const struct tl_frame *f,
                const unsigned char *sums)
{
  uint64_t first = f->offset / TL_BLOCK, count = f->length / TL_BLOCK;
  struct tl_run runs[TL_RUNS_MAX]; /* of as many sums as a frame can hold */
  struct tl_action *action;
  unsigned char own[8];
  unsigned n = 0;
  void *bytes;

  for (uint64_t i = 0; i < count; i++) {
    put_sum (own, c->config.sum (c->config.sum_opaque, first + i));
    if (memcmp (own, sums + 8 * i, 8) == 0)
      continue;
    if (n > 0 && runs[n - 1].first + runs[n - 1].count == first + i)
      runs[n - 1].count++;
    else
      runs[n++] = (struct tl_run){.first = first + i, .count = 1};
  }
  bytes = small (c);
  action = send_frame (c, TL_VERIFIED, 0);
  action->payload = TL_PAYLOAD_SMALL;
  action->small = bytes;
  action->frame.sequence = count;
  action->frame.payload = (uint32_t)tl_runs_encode (runs, n, bytes);
  action->frame.checksum = tl_payload_checksum (bytes, action->frame.payload);
}

/* Are these of the blocks FIRST to FIRST + COUNT? */
static bool
are_within (const struct tl_run *runs, unsigned n, uint64_t first,
            uint64_t count)
{
  bool within = true;

  for (unsigned i = 0; i < n; i++)
    within = within && runs[i].first >= first &&
             runs[i].first + runs[i].count <= first + count;
  return within;
}

/* What the target found in the oldest frame that it has not answered. */
void
verify_result (struct tl_core *c, const struct tl_frame *f, const void *payload)
{
  uint64_t first = c->verify.checked, count = c->dirty.blocks - first;
  struct tl_run runs[TL_RUNS_MAX];
  unsigned n;

  if (!mirroring (c) || c->verify.on_the_way == 0 ||
      f->sequence != (count < VERIFY_BLOCKS ? count : VERIFY_BLOCKS) ||
      tl_runs_decode (runs, &n, c->dirty.blocks, payload, f->payload) == -1 ||
      n > VERIFY_BLOCKS / 2 || !are_within (runs, n, first, f->sequence)) {
    session_end (c, true, "a result of verify that was not asked for");
    return;
  }
  c->verify.on_the_way--;
  c->verify.checked += f->sequence;
  for (unsigned i = 0; i < n; i++) {
    tl_map_set (&c->dirty, runs[i].first, runs[i].count);
    c->verify.different += runs[i].count;
    say (c, "verify: %" PRIu64 " blocks differ from block %" PRIu64 " on",
         runs[i].count, runs[i].first);
  }
  if (c->dirty.count > 0 && !c->resync.active)
    resync_begin (c, false);
}
