/* Requests of NBD clients: design.md, section 4 and rules V1, V6 and V7. */
#include "internal.h"

#include <assert.h>
#include <errno.h>

/* ---- Lists ---- */

static void
append (struct list *list, struct tl_request *r)
{
  r->next = NULL;
  r->prev = list->last;
  if (list->last != NULL)
    list->last->next = r;
  else
    list->first = r;
  list->last = r;
  list->count++;
}

static void
unlink_request (struct list *list, struct tl_request *r)
{
  if (r->prev != NULL)
    r->prev->next = r->next;
  else
    list->first = r->next;
  if (r->next != NULL)
    r->next->prev = r->prev;
  else
    list->last = r->prev;
  list->count--;
}

static void
done (struct tl_core *c, struct tl_request *r, int error)
{
  r->error = error;
  r->next = c->out->done;
  c->out->done = r;
  if (error != 0) {
    c->counters.failed++;
    return;
  }
  switch (r->op) {
  case TL_OP_READ:
    c->counters.reads++;
    c->counters.bytes_read += r->length;
    break;
  case TL_OP_WRITE:
    c->counters.writes++;
    c->counters.bytes_written += r->length;
    break;
  case TL_OP_ZERO:
    c->counters.zeroes++;
    break;
  case TL_OP_FLUSH:
    c->counters.flushes++;
    break;
  }
}

static void
land (struct tl_core *c, struct tl_request *r)
{
  /* Whoever calls this has marked dirty what was not acknowledged. */
  __atomic_signal_fence (__ATOMIC_SEQ_CST);
  if (r->slot != TL_KEPT_WRITES) {
    c->kept->writes[r->slot].count = 0;
    c->slots[c->n_slots++] = r->slot;
    r->slot = TL_KEPT_WRITES;
  }
  c->late -= r->entered < r->sent;
  unlink_request (&c->in_flight, r);
}

static void
hold (struct tl_core *c, struct tl_request *r)
{
  r->state = REQ_HELD;
  append (&c->held, r);
}

/* Where the RAM outlives the process, so does which writes are under way. */
static bool
note_write (struct tl_core *c, struct tl_request *r)
{
  r->slot = TL_KEPT_WRITES;
  if (c->slots == NULL)
    return true;
  if (c->n_slots == 0)
    return false;
  r->slot = c->slots[--c->n_slots];
  c->kept->writes[r->slot].first = tl_block_first (r->offset);
  __atomic_signal_fence (__ATOMIC_SEQ_CST);
  c->kept->writes[r->slot].count = tl_block_count (r->offset, r->length);
  return true;
}

static void
fly (struct tl_core *c, struct tl_request *r, uint64_t sequence)
{
  r->state = REQ_IN_FLIGHT;
  r->sequence = sequence;
  r->sent = c->now;
  c->late += r->entered < r->sent;
  append (&c->in_flight, r);
}

/* ---- What may be answered ---- */

/* This node alone decides: its view names no other member, and it is not just
 * about to take one in without a session in which the other would be told.
 */
static bool
sole (const struct tl_core *c)
{
  return alone (c) && !(c->agree.stage != STAGE_IDLE &&
                        c->agree.kind == KIND_JOIN && c->phase == PHASE_NONE);
}

/* How long a request may take; NEVER for freeze. */
uint64_t
request_limit (const struct tl_core *c)
{
  switch (c->config.policy) {
  case TL_POLICY_FREEZE:
    return NEVER;
  case TL_POLICY_ARBITER:
  case TL_POLICY_CONTINUE:
    return c->config.deadline + ARBITER_GRACE;
  default:
    return c->config.deadline;
  }
}

/* The partner has been away for so long that new requests fail at once; or the
 * parts of R before this one have taken all the time that it has.
 */
static bool
failing (const struct tl_core *c, const struct tl_request *r)
{
  uint64_t limit = request_limit (c);

  if (limit == NEVER || alone (c))
    return false;
  if (r->began != 0 && c->now >= r->began + limit)
    return true;
  return c->lost_at != 0 && c->now >= c->lost_at + limit &&
         !(mirroring (c) && c->peer_member);
}

static bool
is_dirty (const struct tl_core *c, const struct tl_request *r)
{
  return tl_map_any (&c->dirty, tl_block_first (r->offset),
                     tl_block_count (r->offset, r->length));
}

static void
mark_dirty (struct tl_core *c, const struct tl_request *r)
{
  tl_map_set (&c->dirty, tl_block_first (r->offset),
              tl_block_count (r->offset, r->length));
}

/* Copy a read out of the store and answer it, now or once what it saw is on
 * every member.  False where it has to wait uncopied.
 */
static bool
try_read (struct tl_core *c, struct tl_request *r)
{
  bool both = mirroring (c) && c->peer_member;
  bool confirmed = c->config.arbiter && !c->config.reads_local;

  if (alone (c)) {
    if (!sole (c))
      return false;
  } else if (is_dirty (c, r)) {
    return false;
  } else if (!both && (confirmed || c->phase != PHASE_NONE)) {
    /* It must be confirmed; or the peer is just about to tell what differs. */
    return false;
  }
  act (c, TL_DO_READ)->request = r;
  if (alone (c) || !both) {
    done (c, r, 0);
  } else if (confirmed) {
    /* A primary that was overtaken unknowingly gets no answer to this. */
    struct tl_action *barrier = send_sequenced (c, TL_WRITE, 0);

    fly (c, r, barrier->frame.sequence);
  } else if (c->tx_acked == c->tx_sequence) {
    done (c, r, 0);
  } else {
    fly (c, r, c->tx_sequence);
  }
  return true;
}

/* ---- Entry ---- */

static void
write_or_zero (struct tl_core *c, struct tl_request *r)
{
  struct tl_action *action;

  if (!mirroring (c)) {
    mark_dirty (c, r); /* before the store has it */
  } else if (!note_write (c, r)) {
    done (c, r, EIO);
    return;
  }
  action = act (c, r->op == TL_OP_WRITE ? TL_DO_WRITE : TL_DO_ZERO);
  action->request = r;
  action->offset = r->offset;
  action->length = r->length;

  if (mirroring (c)) {
    action = send_sequenced (c, r->op == TL_OP_WRITE ? TL_WRITE : TL_ZERO, 0);
    action->request = r;
    action->frame.offset = r->offset;
    action->frame.length = r->length;
    if (r->op == TL_OP_WRITE) {
      action->frame.payload = r->length;
      action->frame.checksum = r->checksum;
      action->payload = TL_PAYLOAD_REQUEST;
    }
    fly (c, r, action->frame.sequence);
    c->foreground = c->now;
    return;
  }
  if (sole (c))
    done (c, r, 0);
  else
    hold (c, r);
}

void
request (struct tl_core *c, struct tl_request *r)
{
  r->entered = r->began != 0 ? r->began : c->now;
  r->error = 0;
  r->state = REQ_NEW;
  r->slot = TL_KEPT_WRITES;
  r->next = r->prev = NULL;
  if (c->role != TL_PRIMARY || c->stopped || c->leaving ||
      r->epoch != c->epoch) {
    done (c, r, ESHUTDOWN);
    return;
  }
  if (r->op == TL_OP_FLUSH) {
    /* Every write that was answered is on all members already. */
    done (c, r, 0);
    return;
  }
  assert (r->length > 0 && r->offset <= c->config.size &&
          r->length <= c->config.size - r->offset);
  if (r->op == TL_OP_READ) {
    if (!try_read (c, r)) {
      if (failing (c, r))
        done (c, r, EIO);
      else
        hold (c, r);
    }
  } else if (failing (c, r)) {
    done (c, r, EIO);
  } else {
    write_or_zero (c, r);
  }
}

/* ---- Answers ---- */

/* The peer has applied everything up to tx_acked. */
void
requests_acked (struct tl_core *c)
{
  struct tl_request *r;

  while ((r = c->in_flight.first) != NULL && r->sequence <= c->tx_acked) {
    land (c, r);
    if (alone (c) || c->peer_member) {
      done (c, r, 0);
    } else {
      /* The one who acknowledged is no complete member: wait for the view
       * without it.
       */
      hold (c, r);
    }
  }
}

/* The session is over: what it did not acknowledge may be missing there. */
void
requests_unsent (struct tl_core *c)
{
  struct tl_request *r;

  while ((r = c->in_flight.first) != NULL) {
    if (r->op != TL_OP_READ)
      mark_dirty (c, r);
    land (c, r);
    hold (c, r);
  }
  c->recheck = true;
}

/* Is a held write or zero on every member now? */
static bool
is_everywhere (const struct tl_core *c, const struct tl_request *r)
{
  return sole (c) ||
         (!alone (c) && mirroring (c) && c->peer_member && !is_dirty (c, r));
}

static uint64_t
part_by (const struct tl_core *c, const struct tl_request *r)
{
  uint64_t by = r->entered + c->config.deadline;

  return by > r->sent + PART_GRACE ? by : r->sent + PART_GRACE;
}

/* By when the partner has to acknowledge the writes in flight that are later
 * parts of a request, so that the whole of it does not take longer than the
 * deadline; NEVER: there are none.  (Every other write was sent as it entered,
 * and the session's own deadline covers it.)
 */
uint64_t
requests_acknowledge_by (const struct tl_core *c)
{
  uint64_t by = NEVER;

  for (struct tl_request *r = c->late > 0 ? c->in_flight.first : NULL;
       r != NULL; r = r->next)
    if (r->op != TL_OP_READ && r->entered < r->sent)
      by = earlier (by, part_by (c, r));
  return by;
}

/* A read that waited for a session may grow too old in it. */
static void
expire_reads (struct tl_core *c, uint64_t limit)
{
  struct tl_request *r, *next;

  if (limit == NEVER || c->late == 0)
    return;
  for (r = c->in_flight.first; r != NULL; r = next) {
    next = r->next;
    if (r->op == TL_OP_READ && c->now >= r->entered + limit) {
      land (c, r);
      done (c, r, EIO);
    }
  }
}

void
requests_recheck (struct tl_core *c)
{
  uint64_t limit = request_limit (c);
  struct tl_request *r, *next;

  c->recheck = false;
  expire_reads (c, limit);
  for (r = c->held.first; r != NULL; r = next) {
    next = r->next;
    if (!room (c, 8)) {
      c->recheck = true;
      return;
    }
    unlink_request (&c->held, r);
    if (r->op == TL_OP_READ) {
      if (try_read (c, r))
        continue;
    } else if (is_everywhere (c, r)) {
      done (c, r, 0);
      continue;
    }
    if (limit != NEVER && c->now >= r->entered + limit) {
      done (c, r, EIO);
      continue;
    }
    /* Back to its place. */
    r->next = next;
    r->prev = next != NULL ? next->prev : c->held.last;
    if (r->prev != NULL)
      r->prev->next = r;
    else
      c->held.first = r;
    if (next != NULL)
      next->prev = r;
    else
      c->held.last = r;
    c->held.count++;
  }
}

/* All that waits fails, copied or not. */
void
requests_fail (struct tl_core *c, int error)
{
  struct tl_request *r;

  while ((r = c->in_flight.first) != NULL) {
    if (r->op != TL_OP_READ)
      mark_dirty (c, r);
    land (c, r);
    done (c, r, error);
  }
  while ((r = c->held.first) != NULL) {
    unlink_request (&c->held, r);
    done (c, r, error);
  }
}

uint64_t
requests_wake (const struct tl_core *c)
{
  uint64_t limit = request_limit (c), first = NEVER;

  if (limit == NEVER)
    return NEVER;
  for (struct tl_request *r = c->held.first; r != NULL; r = r->next)
    if (r->entered < first)
      first = r->entered;
  for (struct tl_request *r = c->late > 0 ? c->in_flight.first : NULL;
       r != NULL; r = r->next)
    if (r->op == TL_OP_READ && r->entered < first)
      first = r->entered;
  return first == NEVER ? NEVER : first + limit;
}
