/* A peer that is not what it should be: of another volume, of another make, or
 * out of step.  What it sends is well formed by its checksums and yet wrong.
 * A node ends the connection then, and nothing else has come of it.
 *
 * Only what the protocol can notice is done here: no node knows that its
 * partner lies about its own data.
 */
#include "sim.h"

#include <string.h>

/* Where the fields are that no encoder writes wrongly: twinlog-protocol(7). */
#define VOLUME_END 79 /* the NUL of a full name */
#define N_MEMBERS 271 /* the last byte of it */

static unsigned char changed[TL_SMALL_MAX];

static void
small (struct strange *given, size_t length)
{
  given->payload = changed;
  given->frame.payload = (uint32_t)length;
}

/* A few bytes are missing. */
static void
cut_off (struct sim *sim, struct strange *given)
{
  uint32_t length = given->frame.payload;

  if (length == 0)
    return;
  memcpy (changed, given->payload, length);
  small (given, length - rng_between (&sim->rng, 1, length < 15 ? length : 15));
  given->refused = true;
}

static void
again (struct sim *sim, struct strange *given)
{
  given->times = (unsigned)rng_between (&sim->rng, 2, 3);
}

/* ---- The handshake ---- */

/* A field that can hold no such value. */
static void
break_hello (struct sim *sim, struct strange *given, struct tl_hello *hello)
{
  switch (rng_below (&sim->rng, 8)) {
  case 0:
    hello->role = TL_PRIMARY + 1;
    break;
  case 1:
    hello->data = TL_COMPLETE + 1;
    break;
  case 2:
    hello->member = hello->arbiter = 2;
    break;
  case 3:
    hello->incarnation = 0;
    break;
  case 4:
    hello->volume[0] = '-';
    break;
  case 5:
    hello->view.id = hello->view.number == 0;
    break;
  default:
    small (given, tl_hello_encode (hello, changed));
    changed[rng_percent (&sim->rng, 50) ? VOLUME_END : N_MEMBERS] = 'x';
    return;
  }
  small (given, tl_hello_encode (hello, changed));
}

static void
change_hello (struct sim *sim, struct node *to, struct strange *given)
{
  const struct tl_status *status = node_status (sim, to);
  struct tl_hello hello;

  if (tl_hello_decode (&hello, given->payload, given->frame.payload) != 0)
    return;
  given->refused = true;
  switch (rng_below (&sim->rng, 11)) {
  case 0:
    hello.version_min = hello.version_max = TL_PROTOCOL_MAX + 1;
    break;
  case 1:
    hello.version_min = hello.version_max = TL_PROTOCOL_MIN - 1;
    break;
  case 2:
    memcpy (hello.volume, "slog1", sizeof "slog1");
    break;
  case 3:
    memcpy (hello.node, to->name, strlen (to->name) + 1);
    break;
  case 4:
    if (status->peer[0] == '\0') {
      given->refused = false; /* it may well be the partner */
      return;
    }
    memcpy (hello.node, "c", sizeof "c");
    break;
  case 5:
    hello.size += TL_BLOCK;
    break;
  case 6:
    hello.arbiter = !hello.arbiter;
    break;
  case 7:
    hello.uuid.bytes[0] ^= 1;
    given->refused = !tl_uuid_zero (&status->uuid);
    if (!given->refused)
      return;
    break;
  case 8:
    cut_off (sim, given);
    return;
  case 9:
    given->refused = false;
    again (sim, given);
    return;
  default:
    break_hello (sim, given, &hello);
    return;
  }
  small (given, tl_hello_encode (&hello, changed));
}

static void
change_welcome (struct sim *sim, struct strange *given)
{
  if (rng_percent (&sim->rng, 30)) {
    again (sim, given);
    return;
  }
  given->frame.session++;
  given->refused = true;
}

/* ---- Views ---- */

/* May a view be put to this node that it is bound to refuse at once? */
static bool
settled (struct sim *sim, struct node *to)
{
  const struct tl_status *status = node_status (sim, to);

  return !to->storing && !to->asking && status->trouble[0] == '\0' &&
         status->view.number != 0;
}

/* Ask a complete member to agree that the peer goes on without it. */
static bool
propose (struct sim *sim, struct node *to, struct strange *given)
{
  const struct tl_status *status = node_status (sim, to);
  struct tl_view view;

  if (!settled (sim, to) || !node_member (to) ||
      status->disk <= TL_DISK_OUTDATED)
    return false;
  tl_view_next (&view, &status->view, rng_next (&sim->rng) | 1,
                node_other (sim, to)->name, NULL);
  given->frame.type = TL_VIEW;
  given->frame.flags = TL_PROPOSE;
  small (given, tl_view_encode (&status->uuid, &view, changed));
  given->refused = true;
  return true;
}

/* Make it a view that cannot be this node's.  False where chance picked what
 * this node, as it stands, could not know to be wrong.
 */
static bool
false_view (struct sim *sim, struct node *to, struct strange *given,
            struct tl_uuid *uuid, struct tl_view *view)
{
  const struct tl_status *status = node_status (sim, to);

  if (given->frame.type == TL_VIEW_ACK || !settled (sim, to))
    return false;
  switch (rng_below (&sim->rng, 4)) {
  case 0:
    uuid->bytes[0] ^= 1;
    return true;
  case 1:
    view->id = rng_next (&sim->rng) | 1;
    view->number = status->view.number;
    view->parent = view->number > 1;
    return status->disk >= TL_DISK_OUTDATED;
  case 2:
    given->frame.flags |= TL_CREATE;
    return true;
  default:
    given->frame.flags |= TL_CREATE | TL_PROPOSE;
    return true;
  }
}

static void
change_view (struct sim *sim, struct node *to, struct strange *given)
{
  struct tl_frame frame = given->frame;
  struct tl_uuid uuid;
  struct tl_view view;

  if (tl_view_decode (&uuid, &view, given->payload, frame.payload) != 0) {
    again (sim, given); /* a handover is asked for */
    return;
  }
  given->refused = true;
  switch (rng_below (&sim->rng, 6)) {
  case 0:
    memset (&view, 0, sizeof view);
    break;
  case 1:
    memset (&uuid, 0, sizeof uuid);
    break;
  case 2:
    cut_off (sim, given);
    return;
  case 3:
  case 4:
    if (false_view (sim, to, given, &uuid, &view))
      break;
    given->frame = frame;
    /* fall through */
  default:
    given->refused = false;
    again (sim, given);
    return;
  }
  small (given, tl_view_encode (&uuid, &view, changed));
}

/* ---- The stream ---- */

static void
change_bitmap (struct sim *sim, struct strange *given)
{
  struct tl_run run = {.first = sim->blocks - 1, .count = 2};

  switch (rng_below (&sim->rng, 4)) {
  case 0:
    given->times = 0;
    break;
  case 1:
    cut_off (sim, given);
    break;
  case 2:
    run.first += rng_below (&sim->rng, 2);
    run.count = rng_below (&sim->rng, 3);
    given->refused = run.first == sim->blocks || run.count != 1;
    if (given->refused)
      small (given, tl_runs_encode (&run, 1, changed));
    break;
  default:
    again (sim, given);
    break;
  }
}

static void
change_verified (struct sim *sim, struct strange *given)
{
  switch (rng_below (&sim->rng, 3)) {
  case 0:
    given->frame.sequence += sim->size;
    given->refused = true;
    break;
  case 1:
    cut_off (sim, given);
    break;
  default:
    again (sim, given);
    break;
  }
}

/* A frame of another type, that covers nothing. */
static void
become (struct strange *given, uint8_t type)
{
  given->frame.type = type;
  given->frame.flags = 0;
  given->frame.offset = given->frame.length = 0;
  given->frame.payload = 0;
  given->payload = NULL;
}

static void
change_ack (struct sim *sim, struct strange *given)
{
  if (rng_percent (&sim->rng, 30)) {
    again (sim, given);
    return;
  }
  given->refused = true;
  if (rng_percent (&sim->rng, 50))
    become (given, TL_SYNC_DONE);
  else
    given->frame.sequence += UINT64_C (1) << 32;
}

/* What has its place in the stream. */
static void
change_sequenced (struct sim *sim, struct node *to, struct strange *given)
{
  bool resync = node_status (sim, to)->link != TL_LINK_CONNECTED;
  struct tl_frame *frame = &given->frame;

  given->refused = true;
  switch (rng_below (&sim->rng, 6)) {
  case 0:
    given->times = 0;
    given->refused = false;
    break;
  case 5:
    frame->session++; /* it is dropped */
    given->refused = false;
    break;
  case 1:
    again (sim, given);
    break;
  case 2:
    frame->view += sim->blocks;
    break;
  case 3:
    frame->sequence = 0;
    break;
  default:
    if (resync || frame->length == 0 ||
        (frame->type != TL_WRITE && frame->type != TL_ZERO)) {
      frame->sequence++;
    } else if (rng_percent (&sim->rng, 50)) {
      become (given, TL_SYNC_DONE);
    } else {
      frame->flags = frame->type == TL_ZERO ? TL_ZEROES : 0;
      frame->type = TL_SYNC_CHUNK;
    }
    break;
  }
}

/* ---- Any frame ---- */

/* A header that no node makes. */
static void
break_header (struct sim *sim, struct strange *given)
{
  struct tl_frame *frame = &given->frame;

  given->refused = true;
  switch (rng_below (&sim->rng, 5)) {
  case 0:
    frame->type = rng_percent (&sim->rng, 50) ? 0 : TL_VERIFIED + 1;
    break;
  case 1:
    frame->offset = sim->size + 1;
    break;
  case 2:
    frame->length = (uint32_t)(sim->size + 1);
    break;
  case 3:
    frame->payload = TL_PAYLOAD_MAX + TL_BLOCK;
    break;
  default:
    if (frame->payload == 0)
      frame->checksum = 1;
    else if (frame->offset + frame->length < sim->size)
      frame->length++;
    else
      frame->offset = sim->size + 1;
    break;
  }
}

/* How much oftener than a write, of which there are so many. */
static unsigned
weight (const struct tl_frame *frame)
{
  switch (frame->type) {
  case TL_WRITE:
  case TL_ZERO:
  case TL_ACK:
  case TL_SYNC_CHUNK:
  case TL_PING:
  case TL_PONG:
    return 1;
  case TL_VERIFIED:
    return 60;
  default:
    return 8;
  }
}

/* Perhaps change what is GIVEN to node TO; true if so. */
bool
stranger_change (struct sim *sim, struct node *to, struct strange *given)
{
  unsigned chance = sim->network.strange;

  if (chance == 0 ||
      rng_below (&sim->rng, 1000) >= chance * weight (&given->frame))
    return false;
  given->changed = true;
  sim_count (sim, T_STRANGE);
  TRACE (sim, "fault: the next frame is not what it should be");
  if (rng_percent (&sim->rng, 10)) {
    break_header (sim, given);
    return true;
  }
  switch (given->frame.type) {
  case TL_HELLO:
    change_hello (sim, to, given);
    break;
  case TL_WELCOME:
    change_welcome (sim, given);
    break;
  case TL_VIEW:
  case TL_VIEW_ACK:
  case TL_HANDOVER:
    change_view (sim, to, given);
    break;
  case TL_BITMAP:
    change_bitmap (sim, given);
    break;
  case TL_VERIFIED:
    change_verified (sim, given);
    break;
  case TL_ACK:
    change_ack (sim, given);
    break;
  case TL_BYE:
    memcpy (changed, given->payload, given->frame.payload);
    small (given, given->frame.payload);
    changed[0] = '\a';
    break;
  case TL_PING:
  case TL_PONG:
    if (!propose (sim, to, given))
      again (sim, given);
    break;
  default:
    change_sequenced (sim, to, given);
    break;
  }
  return true;
}
