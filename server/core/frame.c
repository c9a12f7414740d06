#include "frame.h"

#include "byte.h"
#include "map.h"

#include <xxhash.h>

/* Header layout: magic 4, type 1, flags 1, zero 2, session 8, view 8,
 * sequence 8, offset 8, length 4, payload 4, payload checksum 8, header
 * checksum 8 (of the 56 bytes before it).
 */
#define SUMMED 56u

enum shape {
  SHAPE_PLAIN, /* no range, no payload */
  SHAPE_SMALL, /* no range, a small payload */
  SHAPE_WRITE, /* a range, and as many bytes */
  SHAPE_ZERO,  /* a range */
  SHAPE_CHUNK, /* either */
  SHAPE_SUMS   /* a range of whole blocks, and 8 bytes for each */
};

static const struct {
  const char *name;
  enum shape shape;
} types[] = {
    [TL_HELLO] = {"hello", SHAPE_SMALL},
    [TL_WELCOME] = {"welcome", SHAPE_PLAIN},
    [TL_WRITE] = {"write", SHAPE_WRITE},
    [TL_ZERO] = {"zero", SHAPE_ZERO},
    [TL_ACK] = {"ack", SHAPE_PLAIN},
    [TL_BITMAP] = {"bitmap", SHAPE_SMALL},
    [TL_SYNC_BEGIN] = {"sync-begin", SHAPE_PLAIN},
    [TL_SYNC_CHUNK] = {"sync-chunk", SHAPE_CHUNK},
    [TL_SYNC_DONE] = {"sync-done", SHAPE_PLAIN},
    [TL_VIEW] = {"view", SHAPE_SMALL},
    [TL_VIEW_ACK] = {"view-ack", SHAPE_SMALL},
    [TL_HANDOVER] = {"handover", SHAPE_SMALL},
    [TL_PING] = {"ping", SHAPE_PLAIN},
    [TL_PONG] = {"pong", SHAPE_PLAIN},
    [TL_BYE] = {"bye", SHAPE_SMALL},
    [TL_VERIFY] = {"verify", SHAPE_SUMS},
    [TL_VERIFIED] = {"verified", SHAPE_SMALL},
};

#define TYPES (sizeof types / sizeof types[0])

const char *
tl_frame_name (unsigned type)
{
  return type < TYPES && types[type].name != NULL ? types[type].name
                                                  : "unknown";
}

uint64_t
tl_payload_checksum (const void *payload, size_t length)
{
  return length == 0 ? 0 : XXH3_64bits (payload, length);
}

void
tl_frame_encode (const struct tl_frame *frame, void *header)
{
  unsigned char *at = header;

  tl_put (&at, TL_FRAME_MAGIC, 4);
  tl_put (&at, frame->type, 1);
  tl_put (&at, frame->flags, 1);
  tl_put (&at, 0, 2);
  tl_put (&at, frame->session, 8);
  tl_put (&at, frame->view, 8);
  tl_put (&at, frame->sequence, 8);
  tl_put (&at, frame->offset, 8);
  tl_put (&at, frame->length, 4);
  tl_put (&at, frame->payload, 4);
  tl_put (&at, frame->checksum, 8);
  tl_put (&at, XXH3_64bits (header, SUMMED), 8);
}

static const char *
check_limits (const struct tl_frame *frame, uint64_t size)
{
  enum shape shape = types[frame->type].shape;

  if (frame->offset > size || frame->length > size - frame->offset)
    return "range beyond the end of the volume";
  if (shape == SHAPE_CHUNK)
    shape = frame->flags & TL_ZEROES ? SHAPE_ZERO : SHAPE_WRITE;
  switch (shape) {
  case SHAPE_WRITE:
    if (frame->payload > TL_PAYLOAD_MAX)
      return "payload too large";
    return frame->payload == frame->length ? NULL : "payload of wrong length";
  case SHAPE_ZERO:
    if (frame->length > TL_ZERO_MAX)
      return "range too large";
    return frame->payload == 0 ? NULL : "payload where none belongs";
  case SHAPE_SUMS:
    if (frame->payload > TL_SMALL_MAX)
      return "payload too large";
    return frame->offset % TL_BLOCK == 0 && frame->length % TL_BLOCK == 0 &&
                   frame->payload == frame->length / TL_BLOCK * 8
               ? NULL
               : "payload of wrong length";
  case SHAPE_SMALL:
    if (frame->payload > TL_SMALL_MAX)
      return "payload too large";
    return frame->length == 0 ? NULL : "range where none belongs";
  default:
    if (frame->payload != 0)
      return "payload where none belongs";
    return frame->length == 0 ? NULL : "range where none belongs";
  }
}

const char *
tl_frame_decode (struct tl_frame *frame, const void *header, uint64_t size)
{
  struct tl_reader in = {.at = header, .left = TL_FRAME_SIZE};

  if (tl_get (&in, 4) != TL_FRAME_MAGIC)
    return "not a twinlog frame";
  frame->type = (uint8_t)tl_get (&in, 1);
  frame->flags = (uint8_t)tl_get (&in, 1);
  if (tl_get (&in, 2) != 0)
    return "reserved bytes are not zero";
  frame->session = tl_get (&in, 8);
  frame->view = tl_get (&in, 8);
  frame->sequence = tl_get (&in, 8);
  frame->offset = tl_get (&in, 8);
  frame->length = (uint32_t)tl_get (&in, 4);
  frame->payload = (uint32_t)tl_get (&in, 4);
  frame->checksum = tl_get (&in, 8);
  if (tl_get (&in, 8) != XXH3_64bits (header, SUMMED))
    return "bad header checksum";
  if (frame->type >= TYPES || types[frame->type].name == NULL)
    return "unknown frame type";
  if (frame->payload == 0 && frame->checksum != 0)
    return "checksum without a payload";
  return check_limits (frame, size);
}
