#include "net/compress.h"

#include "unit.h"

#define SIZE (UINT64_C (1) << 30) /* of the volume */
#define LENGTH 65536u

static struct tl_compress *compress;
static unsigned char payload[TL_PAYLOAD_MAX], header[TL_FRAME_SIZE];
static uint64_t state;
static uint64_t busy, acked; /* what was told of the link */

/* Content of which one byte in PART is random. */
static void
fill (unsigned part)
{
  for (size_t i = 0; i < sizeof payload; i++)
    payload[i] = i % part ? 0 : (unsigned char)unit_random (&state);
}

/* Measurements of a link of RATE bytes a second. */
static void
link_carries (uint64_t rate, unsigned measurements, bool full)
{
  while (measurements--) {
    busy += 100000;
    acked += rate / 10;
    tl_compress_link (compress, busy, acked, full);
  }
}

/* A sender whose link carries RATE. */
static void
begin (uint64_t rate)
{
  compress = tl_compress_new ();
  ck_assert_ptr_nonnull (compress);
  link_carries (rate, 3, true);
}

static struct tl_frame
frame_of (uint8_t type, uint32_t length)
{
  return (struct tl_frame){.type = type,
                           .session = 1,
                           .view = 2,
                           .sequence = 3,
                           .offset = 8192,
                           .length = length,
                           .payload = length,
                           .checksum = tl_payload_checksum (payload, length)};
}

/* Try to compress a frame of TYPE; NULL: it stays as it is. */
static const unsigned char *
try_frame (uint8_t type, uint32_t *length)
{
  struct tl_frame frame = frame_of (type, *length);

  tl_frame_encode (&frame, header);
  if (!tl_compress_may (compress, header, *length))
    return NULL;
  return tl_compress (compress, header, length, payload);
}

/* Compress a frame that shrinks, over a link that is slow. */
static const unsigned char *
compressed (uint32_t *length)
{
  const unsigned char *bytes;

  fill (8);
  begin (1000);
  *length = LENGTH;
  bytes = try_frame (TL_WRITE, length);
  ck_assert_ptr_nonnull (bytes);
  return bytes;
}

/* The header again, after a change of it, with its own checksum. */
static void
sign (void)
{
  uint64_t sum = tl_payload_checksum (header, 56);

  for (unsigned i = 0; i < 8; i++)
    header[56 + i] = (unsigned char)(sum >> (56 - 8 * i));
}

START_TEST (round_trip)
{
  static const uint8_t types[] = {TL_WRITE, TL_SYNC_CHUNK};
  static const uint32_t lengths[] = {4096, 4100, 65536, 131072, 1 << 20};

  fill (8);
  for (unsigned t = 0; t < 2; t++)
    for (unsigned i = 0; i < 5; i++) {
      uint32_t length = lengths[i], travels;
      const unsigned char *bytes;
      struct tl_frame frame;

      begin (1000);
      bytes = try_frame (types[t], &length);
      ck_assert_ptr_nonnull (bytes);
      ck_assert_uint_lt (length, lengths[i] / 2);
      ck_assert (tl_compress_holds (compress, bytes));
      ck_assert_uint_eq (tl_compress_room (compress, false),
                         TL_PAYLOAD_MAX - length);

      ck_assert_ptr_null (tl_expand_decode (&frame, &travels, header, SIZE));
      ck_assert_uint_eq (travels, length);
      ck_assert_uint_eq (frame.checksum, tl_payload_checksum (bytes, travels));
      ck_assert_uint_eq (frame.type, types[t]);
      ck_assert_uint_eq (frame.flags, 0);
      ck_assert_uint_eq (frame.sequence, 3);
      ck_assert_uint_eq (frame.offset, 8192);
      ck_assert_uint_eq (frame.length, lengths[i]);
      ck_assert_uint_eq (frame.payload, lengths[i]);
      tl_expand_begin (compress);
      ck_assert (tl_expand_room (compress, &frame));
      bytes = tl_expand (compress, &frame, bytes, travels);
      ck_assert_ptr_nonnull (bytes);
      ck_assert_mem_eq (bytes, payload, lengths[i]);
      tl_compress_free (compress);
    }
}
END_TEST

/* To a node without compression the frame is one of a wrong length. */
START_TEST (not_a_plain_frame)
{
  struct tl_frame frame;
  uint32_t length;

  compressed (&length);
  ck_assert_str_eq (tl_frame_decode (&frame, header, SIZE),
                    "payload of wrong length");
}
END_TEST

START_TEST (plain_frames_pass)
{
  struct tl_frame in = frame_of (TL_WRITE, 4096), out;
  uint32_t travels;

  tl_frame_encode (&in, header);
  ck_assert_ptr_null (tl_expand_decode (&out, &travels, header, SIZE));
  ck_assert_uint_eq (travels, 4096);
  ck_assert_uint_eq (out.payload, 4096);
  ck_assert_uint_eq (out.checksum, in.checksum);
}
END_TEST

/* Small ones, those without a payload of the volume, those that are it. */
START_TEST (others_are_not_tried)
{
  static const uint8_t types[] = {TL_HELLO, TL_ZERO, TL_VERIFY, TL_ACK};
  uint32_t length;

  compressed (&length);
  ck_assert (!tl_compress_may (compress, header, LENGTH));
  for (unsigned i = 0; i < sizeof types; i++) {
    length = LENGTH;
    ck_assert_ptr_null (try_frame (types[i], &length));
  }
  length = TL_COMPRESS_MIN - 1;
  ck_assert_ptr_null (try_frame (TL_WRITE, &length));
}
END_TEST

/* What does not shrink stays, and is tried ever more seldom. */
START_TEST (does_not_shrink)
{
  unsigned tried = 0;

  fill (1);
  begin (1000);
  for (unsigned i = 0; i < 2000; i++) {
    uint32_t length = LENGTH;

    ck_assert_ptr_null (try_frame (TL_WRITE, &length));
    ck_assert_uint_eq (length, LENGTH);
    ck_assert_uint_eq (header[5], 0);
  }
  ck_assert_uint_eq (tl_compress_room (compress, false), TL_PAYLOAD_MAX);

  /* It is tried again. */
  fill (8);
  for (unsigned i = 0; i < 256; i++) {
    uint32_t length = LENGTH;

    tl_compress_room (compress, true);
    tried += try_frame (TL_WRITE, &length) != NULL;
  }
  ck_assert_uint_ge (tried, 1);
}
END_TEST

/* Half of the frames shrink, by turns: they are found. */
START_TEST (every_second_one_shrinks)
{
  static unsigned char shrinks[LENGTH], random[LENGTH];
  unsigned tried = 0;

  fill (8);
  memcpy (shrinks, payload, LENGTH);
  fill (1);
  memcpy (random, payload, LENGTH);
  begin (1000);
  for (unsigned i = 0; i < 2000; i++) {
    uint32_t length = LENGTH;

    memcpy (payload, i < 1000 || i % 2 ? random : shrinks, LENGTH);
    tl_compress_room (compress, true);
    tried += try_frame (TL_WRITE, &length) != NULL;
  }
  ck_assert_uint_ge (tried, 300);
}
END_TEST

/* A link of 100 TB/s: nothing pays. */
START_TEST (a_fast_link_is_left_alone)
{
  unsigned tried = 0;

  fill (8);
  begin (UINT64_C (100000000000000));
  for (unsigned i = 0; i < 2560; i++) {
    uint32_t length = LENGTH;

    tl_compress_room (compress, true);
    tried += try_frame (TL_WRITE, &length) != NULL;
  }
  ck_assert_uint_le (tried, 30);
}
END_TEST

/* Unknown at first; then the best of some measurements counts. */
START_TEST (the_link_is_measured)
{
  uint32_t length;

  fill (8);
  begin (0);
  length = LENGTH;
  ck_assert_ptr_null (try_frame (TL_WRITE, &length));
  link_carries (1000, 20, false);
  length = LENGTH;
  ck_assert_ptr_nonnull (try_frame (TL_WRITE, &length));

  /* Small ones wait for the round trip where the link is idle at times. */
  length = LENGTH / 2;
  ck_assert_ptr_null (try_frame (TL_WRITE, &length));
  link_carries (1000, 1, true);
  ck_assert_ptr_nonnull (try_frame (TL_WRITE, &length));
}
END_TEST

/* Of one path less the counters are lower; that is no measurement. */
START_TEST (a_path_that_goes_is_no_rate)
{
  uint32_t length;

  fill (8);
  begin (1000000);
  busy /= 2;
  acked /= 2;
  tl_compress_link (compress, busy, acked, true);
  link_carries (1000000, 20, true);
  length = LENGTH;
  ck_assert_ptr_nonnull (try_frame (TL_WRITE, &length));
}
END_TEST

/* While frames are compressed, some time goes without. */
START_TEST (the_link_is_measured_again)
{
  unsigned tried = 0, ended = 0;

  fill (8);
  begin (1000);
  for (unsigned i = 0; i < 1000; i++) {
    uint32_t length = LENGTH;

    tl_compress_room (compress, true);
    if (try_frame (TL_WRITE, &length))
      tried++;
    else
      ended++;
    link_carries (1000, 1, true);
  }
  ck_assert_uint_ge (ended, 10);
  ck_assert_uint_ge (tried, 900);
}
END_TEST

START_TEST (a_full_buffer_is_not_overrun)
{
  unsigned n = 0;
  uint32_t length;

  fill (8);
  begin (1000);
  while (length = 131072, try_frame (TL_WRITE, &length))
    n++;
  ck_assert_uint_ge (n, 8);
  ck_assert_uint_lt (tl_compress_room (compress, false), 131072);
  tl_compress_room (compress, true);
  length = LENGTH;
  for (unsigned i = 0; i < 256 && length == LENGTH; i++)
    try_frame (TL_WRITE, &length);
  ck_assert_uint_lt (length, LENGTH);
}
END_TEST

START_TEST (expanded_payloads_stay_beside_each_other)
{
  struct tl_frame frame;
  uint32_t length, travels;
  const unsigned char *bytes = compressed (&length), *first, *second;

  ck_assert_ptr_null (tl_expand_decode (&frame, &travels, header, SIZE));
  tl_expand_begin (compress);
  first = tl_expand (compress, &frame, bytes, travels);
  second = tl_expand (compress, &frame, bytes, travels);
  ck_assert_mem_eq (first, payload, LENGTH);
  ck_assert_mem_eq (second, payload, LENGTH);
  ck_assert_ptr_eq (second, first + LENGTH);
  for (unsigned i = 2; i < TL_PAYLOAD_MAX / LENGTH; i++) {
    ck_assert (tl_expand_room (compress, &frame));
    ck_assert_ptr_nonnull (tl_expand (compress, &frame, bytes, travels));
  }
  ck_assert (!tl_expand_room (compress, &frame));
  tl_expand_begin (compress);
  ck_assert (tl_expand_room (compress, &frame));
}
END_TEST

/* Bytes 44 to 47 of the header, and those of the range, 40 to 43. */
START_TEST (wrong_lengths)
{
  static const struct {
    uint32_t length, travels;
    const char *error;
  } wrong[] = {
      {LENGTH, 0, "compressed payload of wrong length"},
      {LENGTH, LENGTH, "compressed payload of wrong length"},
      {LENGTH, UINT32_MAX, "compressed payload of wrong length"},
      {0, 100, "checksum without a payload"},
      {TL_PAYLOAD_MAX + 1, 100, "payload too large"},
      {UINT32_MAX, 100, "range beyond the end of the volume"},
  };
  struct tl_frame frame;
  uint32_t length, travels;

  compressed (&length);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    for (unsigned k = 0; k < 4; k++) {
      header[40 + k] = (unsigned char)(wrong[i].length >> (24 - 8 * k));
      header[44 + k] = (unsigned char)(wrong[i].travels >> (24 - 8 * k));
    }
    sign ();
    ck_assert_str_eq (tl_expand_decode (&frame, &travels, header, SIZE),
                      wrong[i].error);
  }
}
END_TEST

/* With flag 1 a chunk is zeroes and has no payload. */
START_TEST (zeroes_are_not_compressed)
{
  struct tl_frame frame;
  uint32_t length, travels;

  compressed (&length);
  header[4] = TL_SYNC_CHUNK;
  header[5] |= TL_ZEROES;
  sign ();
  ck_assert_str_eq (tl_expand_decode (&frame, &travels, header, SIZE),
                    "payload where none belongs");
}
END_TEST

START_TEST (every_flipped_bit_of_the_header_is_refused)
{
  struct tl_frame frame;
  uint32_t length, travels;

  compressed (&length);
  for (unsigned bit = 0; bit < TL_FRAME_SIZE * 8; bit++) {
    header[bit / 8] ^= (unsigned char)(1 << bit % 8);
    ck_assert_msg (tl_expand_decode (&frame, &travels, header, SIZE) != NULL,
                   "bit %u", bit);
    header[bit / 8] ^= (unsigned char)(1 << bit % 8);
  }
  ck_assert_ptr_null (tl_expand_decode (&frame, &travels, header, SIZE));
}
END_TEST

/* Whatever the payload is, nothing is written beyond what the header says. */
START_TEST (damaged_payloads)
{
  struct tl_frame frame;
  uint32_t length, travels;
  const unsigned char *bytes = compressed (&length), *expanded;
  unsigned char *copy = malloc (length);
  unsigned refused = 0;

  ck_assert_ptr_null (tl_expand_decode (&frame, &travels, header, SIZE));
  for (unsigned round = 0; round < 20000; round++) {
    uint32_t most = length;

    memcpy (copy, bytes, length);
    if (round % 4 == 0)
      most = (uint32_t)(unit_random (&state) % length) + 1;
    for (unsigned k = 0; k <= round % 7; k++)
      copy[unit_random (&state) % most] = (unsigned char)unit_random (&state);
    if (round % 11 == 0)
      for (unsigned k = 0; k < most; k++)
        copy[k] = (unsigned char)unit_random (&state);
    /* Of one length too many or too few, too. */
    frame.payload = LENGTH - 1 + (uint32_t)(unit_random (&state) % 3);
    tl_expand_begin (compress);
    expanded = tl_expand (compress, &frame, copy, most);
    refused += expanded == NULL;
  }
  ck_assert_uint_ge (refused, 10000);
  free (copy);
}
END_TEST

START_TEST (the_offer)
{
  struct tl_hello hello = {.version_min = 1,
                           .version_max = 1,
                           .volume = "slog0",
                           .node = "a",
                           .size = SIZE,
                           .incarnation = 7};
  unsigned char plain[TL_SMALL_MAX], bytes[TL_SMALL_MAX];
  struct tl_frame frame = {.type = TL_HELLO};
  struct tl_hello out;

  frame.payload = (uint32_t)tl_hello_encode (&hello, plain);
  ck_assert (!tl_compress_offered (plain, frame.payload));
  ck_assert_ptr_eq (tl_compress_offer (&frame, plain, bytes), bytes);
  ck_assert_uint_eq (frame.checksum,
                     tl_payload_checksum (bytes, frame.payload));
  ck_assert (tl_compress_offered (bytes, frame.payload));
  ck_assert (!tl_compress_offered (bytes, frame.payload - 1));
  ck_assert_int_eq (tl_hello_decode (&out, bytes, frame.payload), 0);
  ck_assert_uint_eq (out.features, TL_FEATURE_LZ4);
  ck_assert_str_eq (out.volume, "slog0");
  ck_assert_uint_eq (out.incarnation, 7);
}
END_TEST

UNIT_MAIN ("compress", round_trip, not_a_plain_frame, plain_frames_pass,
           others_are_not_tried, does_not_shrink, every_second_one_shrinks,
           a_fast_link_is_left_alone, the_link_is_measured,
           a_path_that_goes_is_no_rate, the_link_is_measured_again,
           a_full_buffer_is_not_overrun,
           expanded_payloads_stay_beside_each_other, wrong_lengths,
           zeroes_are_not_compressed,
           every_flipped_bit_of_the_header_is_refused, damaged_payloads,
           the_offer)
