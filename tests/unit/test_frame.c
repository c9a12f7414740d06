#include "core/frame.h"

#include "unit.h"

#define SIZE (UINT64_C (1) << 30) /* of the volume */

/* A frame of TYPE that is well formed. */
static struct tl_frame
good (unsigned type)
{
  struct tl_frame frame = {.type = (uint8_t)type,
                           .session = UINT64_C (0x0102030405060708),
                           .view = UINT64_C (0x1112131415161718),
                           .sequence = UINT64_C (0x2122232425262728),
                           .offset = 8192};

  switch (type) {
  case TL_WRITE:
  case TL_SYNC_CHUNK:
    frame.length = frame.payload = 4096;
    frame.checksum = UINT64_C (0x3132333435363738);
    break;
  case TL_ZERO:
    frame.length = 1 << 20;
    break;
  case TL_HELLO:
  case TL_BITMAP:
  case TL_VIEW:
  case TL_VIEW_ACK:
  case TL_HANDOVER:
  case TL_BYE:
    frame.payload = 100;
    frame.checksum = 1;
    break;
  default:
    break;
  }
  return frame;
}

/* Encode and decode.  NULL, or what the decoder finds wrong. */
static const char *
pass (const struct tl_frame *frame)
{
  unsigned char header[TL_FRAME_SIZE];
  struct tl_frame out;

  tl_frame_encode (frame, header);
  return tl_frame_decode (&out, header, SIZE);
}

START_TEST (round_trip)
{
  for (unsigned type = TL_HELLO; type <= TL_BYE; type++) {
    struct tl_frame in = good (type), out;
    unsigned char header[TL_FRAME_SIZE];
    const char *wrong;

    in.flags = type == TL_SYNC_CHUNK ? 0 : 1;
    tl_frame_encode (&in, header);
    wrong = tl_frame_decode (&out, header, SIZE);
    ck_assert_msg (wrong == NULL, "%s: %s", tl_frame_name (type), wrong);
    ck_assert_uint_eq (out.type, in.type);
    ck_assert_uint_eq (out.flags, in.flags);
    ck_assert_uint_eq (out.session, in.session);
    ck_assert_uint_eq (out.view, in.view);
    ck_assert_uint_eq (out.sequence, in.sequence);
    ck_assert_uint_eq (out.offset, in.offset);
    ck_assert_uint_eq (out.length, in.length);
    ck_assert_uint_eq (out.payload, in.payload);
    ck_assert_uint_eq (out.checksum, in.checksum);
  }
}
END_TEST

/* The protocol's own statement: big-endian, beginning with the magic. */
START_TEST (bytes_on_the_wire)
{
  struct tl_frame frame = good (TL_WRITE);
  unsigned char header[TL_FRAME_SIZE];

  tl_frame_encode (&frame, header);
  ck_assert_mem_eq (header, "TWNL\003\0\0\0\1\2\3\4\5\6\7\10", 16);
  ck_assert_mem_eq (header + 32, "\0\0\0\0\0\0\x20\0\0\0\x10\0\0\0\x10\0", 16);
}
END_TEST

START_TEST (every_flipped_bit_is_refused)
{
  for (unsigned type = TL_HELLO; type <= TL_BYE; type++) {
    struct tl_frame frame = good (type), out;
    unsigned char header[TL_FRAME_SIZE];

    tl_frame_encode (&frame, header);
    for (unsigned bit = 0; bit < TL_FRAME_SIZE * 8; bit++) {
      header[bit / 8] ^= (unsigned char)(1 << bit % 8);
      ck_assert_msg (tl_frame_decode (&out, header, SIZE) != NULL, "%s, bit %u",
                     tl_frame_name (type), bit);
      header[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    ck_assert_ptr_null (tl_frame_decode (&out, header, SIZE));
  }
}
END_TEST

START_TEST (garbage_is_refused)
{
  unsigned char header[TL_FRAME_SIZE] = {0};
  struct tl_frame out;
  uint64_t state = 2;

  ck_assert_ptr_nonnull (tl_frame_decode (&out, header, SIZE));
  for (int round = 0; round < 100000; round++) {
    for (unsigned i = 0; i < TL_FRAME_SIZE; i++)
      header[i] = (unsigned char)unit_random (&state);
    if (round % 2)
      memcpy (header, "TWNL\001\0\0\0", 8);
    ck_assert_ptr_nonnull (tl_frame_decode (&out, header, SIZE));
  }
}
END_TEST

START_TEST (unknown_types)
{
  struct tl_frame frame = {0};

  for (unsigned type = 0; type < 256; type++) {
    if (type >= TL_HELLO && type <= TL_VERIFIED) {
      ck_assert_str_ne (tl_frame_name (type), "unknown");
      continue;
    }
    frame.type = (uint8_t)type;
    ck_assert_ptr_nonnull (pass (&frame));
    ck_assert_str_eq (tl_frame_name (type), "unknown");
  }
}
END_TEST

START_TEST (ranges_stay_within_the_volume)
{
  static const uint8_t types[] = {TL_WRITE, TL_ZERO, TL_SYNC_CHUNK};

  for (size_t i = 0; i < sizeof types; i++) {
    struct tl_frame frame = good (types[i]);

    frame.offset = SIZE - frame.length;
    ck_assert_ptr_null (pass (&frame));
    frame.offset++;
    ck_assert_ptr_nonnull (pass (&frame));
    frame.offset = SIZE;
    ck_assert_ptr_nonnull (pass (&frame));
    frame.offset = UINT64_MAX; /* the sum wraps */
    ck_assert_ptr_nonnull (pass (&frame));
    frame.offset = UINT64_MAX - frame.length + 1;
    ck_assert_ptr_nonnull (pass (&frame));
  }
}
END_TEST

START_TEST (lengths_have_limits)
{
  struct tl_frame frame = good (TL_WRITE);

  frame.length = frame.payload = TL_PAYLOAD_MAX;
  ck_assert_ptr_null (pass (&frame));
  frame.length = frame.payload = TL_PAYLOAD_MAX + 1;
  ck_assert_ptr_nonnull (pass (&frame));
  frame = good (TL_SYNC_CHUNK);
  frame.length = frame.payload = TL_PAYLOAD_MAX + 1;
  ck_assert_ptr_nonnull (pass (&frame));
  frame = good (TL_ZERO);
  frame.length = TL_ZERO_MAX;
  ck_assert_ptr_null (pass (&frame));
  frame.length = TL_ZERO_MAX + 1;
  ck_assert_ptr_nonnull (pass (&frame));
  frame = good (TL_HELLO);
  frame.payload = TL_SMALL_MAX;
  ck_assert_ptr_null (pass (&frame));
  frame.payload = TL_SMALL_MAX + 1;
  ck_assert_ptr_nonnull (pass (&frame));
  frame.payload = UINT32_MAX;
  ck_assert_ptr_nonnull (pass (&frame));
}
END_TEST

START_TEST (payload_and_range_belong_together)
{
  struct tl_frame frame = good (TL_WRITE);

  frame.payload--;
  ck_assert_ptr_nonnull (pass (&frame));
  frame = good (TL_ZERO);
  frame.payload = 1;
  frame.checksum = 1;
  ck_assert_ptr_nonnull (pass (&frame));
  frame = good (TL_ACK);
  frame.payload = 1;
  frame.checksum = 1;
  ck_assert_ptr_nonnull (pass (&frame));
  frame = good (TL_ACK);
  frame.length = 1;
  ck_assert_ptr_nonnull (pass (&frame));
  frame = good (TL_PING);
  frame.checksum = 1; /* of nothing */
  ck_assert_ptr_nonnull (pass (&frame));
}
END_TEST

START_TEST (barrier_and_chunk_of_zeroes)
{
  struct tl_frame frame = good (TL_WRITE);

  frame.length = frame.payload = 0;
  frame.checksum = 0;
  ck_assert_ptr_null (pass (&frame));
  frame = good (TL_SYNC_CHUNK);
  frame.flags = TL_ZEROES;
  ck_assert_ptr_nonnull (pass (&frame)); /* zeroes carry no payload */
  frame.payload = 0;
  frame.checksum = 0;
  ck_assert_ptr_null (pass (&frame));
}
END_TEST

START_TEST (payload_checksum)
{
  unsigned char bytes[4096];
  uint64_t sum, state = 3;

  for (size_t i = 0; i < sizeof bytes; i++)
    bytes[i] = (unsigned char)unit_random (&state);
  ck_assert_uint_eq (tl_payload_checksum (bytes, 0), 0);
  sum = tl_payload_checksum (bytes, sizeof bytes);
  ck_assert_uint_eq (tl_payload_checksum (bytes, sizeof bytes), sum);
  ck_assert_uint_ne (tl_payload_checksum (bytes, sizeof bytes - 1), sum);
  for (size_t bit = 0; bit < sizeof bytes * 8; bit++) {
    bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    ck_assert_uint_ne (tl_payload_checksum (bytes, sizeof bytes), sum);
    bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
  }
}
END_TEST

UNIT_MAIN ("frame", round_trip, bytes_on_the_wire, every_flipped_bit_is_refused,
           garbage_is_refused, unknown_types, ranges_stay_within_the_volume,
           lengths_have_limits, payload_and_range_belong_together,
           barrier_and_chunk_of_zeroes, payload_checksum)
