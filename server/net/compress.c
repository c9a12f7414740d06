#include "net/compress.h"
#include "core/byte.h"
#include "net/tcp.h"

#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Places in a header: see frame.c. */
#define TYPE 4
#define FLAGS 5
#define LENGTH 40
#define PAYLOAD 44
#define CHECKSUM 48
#define SUM 56

/* A payload that shrinks by less than 1 of so many parts is sent as it is. */
#define PARTS 8

/* Payloads that are not tried after several in a row that did not pay.  With
 * the one that is, their number is odd: what pays may be every second one.
 */
#define SKIP_MOST 254

/* The link is asked how it does with each of so many sends.  Time and bytes
 * are added up to one measurement until one of them is enough: the kernel
 * counts the time in its ticks, of up to 10 ms.
 */
#define LOOK 8
#define ENOUGH_TIME 40000 /* microseconds */
#define ENOUGH_BYTES (64u << 20)

/* The best of the last 8 to 16 measurements counts: what makes a link look
 * slower than it is, such as a machine that is busy, comes and goes.
 */
#define MEASUREMENTS 8

/* Fewer than so many say nothing. */
#define FIRST 3

/* What is compressed is on its way for too short a time to show how fast the
 * link is: now and then, in the end after so many measurements, one is made
 * without compression.
 */
#define PROBE 64

/* Smaller payloads wait for the round trip rather than for the rate of the
 * link, unless there is always more to be sent.
 */
#define LARGE 65536

struct tl_compress {
  /* Sending. */
  unsigned skip, skip_next; /* frames that are not tried now, next time */
  unsigned sends;           /* since the link was asked */
  uint64_t busy, acked;     /* where the measurement began */
  bool touched;             /* something was compressed in it */
  unsigned compressed;      /* such measurements in a row */
  unsigned probe;           /* after so many of them comes another one */
  unsigned measurements;    /* in rates[0] */
  uint64_t rates[2];        /* the best of these and of those before */
  bool blocked;             /* the socket took nothing, once or more */
  bool full;                /* there was always more to be sent */
  size_t used;              /* of `out` */

  /* Receiving. */
  size_t expanded; /* bytes in `in` */

  unsigned char out[TL_PAYLOAD_MAX];
  unsigned char in[TL_PAYLOAD_MAX];
  LZ4_stream_t state;
};

struct tl_compress *
tl_compress_new (void)
{
  struct tl_compress *compress = malloc (sizeof *compress);

  /* Touch the memory now: later there may be none. */
  if (compress)
    memset (compress, 0, sizeof *compress);
  return compress;
}

void
tl_compress_free (struct tl_compress *compress)
{
  free (compress);
}

/* ---- Negotiation ---- */

const void *
tl_compress_offer (struct tl_frame *frame, const void *payload, void *bytes)
{
  struct tl_hello hello;

  if (tl_hello_decode (&hello, payload, frame->payload) == -1)
    return payload; /* never: it is our own */
  hello.features |= TL_FEATURE_LZ4;
  frame->payload = (uint32_t)tl_hello_encode (&hello, bytes);
  frame->checksum = tl_payload_checksum (bytes, frame->payload);
  return bytes;
}

bool
tl_compress_offered (const void *payload, size_t length)
{
  struct tl_hello hello;

  return tl_hello_decode (&hello, payload, length) == 0 &&
         hello.features & TL_FEATURE_LZ4;
}

/* ---- The header ---- */

static uint64_t
get (const unsigned char *header, unsigned place, unsigned bytes)
{
  struct tl_reader in = {.at = header + place, .left = bytes};

  return tl_get (&in, bytes);
}

/* Make the whole HEADER say this instead. */
static void
change (unsigned char *header, bool compressed, uint32_t payload,
        uint64_t checksum)
{
  unsigned char *at = header + PAYLOAD;

  if (compressed)
    header[FLAGS] |= TL_COMPRESSED;
  else
    header[FLAGS] &= (unsigned char)~TL_COMPRESSED;
  tl_put (&at, payload, 4);
  tl_put (&at, checksum, 8);
  tl_put (&at, tl_payload_checksum (header, SUM), 8);
}

/* Of a type that can be compressed, and is or is not. */
static bool
is (const unsigned char *header, bool compressed)
{
  return (header[TYPE] == TL_WRITE || header[TYPE] == TL_SYNC_CHUNK) &&
         !(header[FLAGS] & TL_COMPRESSED) == !compressed;
}

/* ---- Sending ---- */

static uint64_t
nanoseconds (void)
{
  struct timespec now;

  clock_gettime (CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Bytes a second, 0: not known. */
static uint64_t
link_rate (const struct tl_compress *compress)
{
  const uint64_t *rates = compress->rates;

  if (!rates[1] && compress->measurements < FIRST)
    return 0;
  return rates[0] > rates[1] ? rates[0] : rates[1];
}

static void
measured (struct tl_compress *compress, uint64_t rate)
{
  if (compress->touched) {
    compress->compressed++;
    compress->touched = false;
  } else {
    if (compress->compressed == 0)
      compress->probe = 2;
    else if (compress->probe < PROBE)
      compress->probe *= 2;
    compress->compressed = 0;
    if (compress->measurements++ == MEASUREMENTS) {
      compress->measurements = 1;
      compress->rates[1] = compress->rates[0];
      compress->rates[0] = 0;
    }
  }
  if (rate > compress->rates[0])
    compress->rates[0] = rate;
}

void
tl_compress_link (struct tl_compress *compress, uint64_t busy, uint64_t acked,
                  bool full)
{
  uint64_t time = busy - compress->busy, bytes = acked - compress->acked;

  compress->full = full;
  if (busy < compress->busy || acked < compress->acked)
    ; /* a path has come or gone: from here on */
  else if (time < ENOUGH_TIME && bytes < ENOUGH_BYTES)
    return;
  else
    measured (compress, bytes * 1000000 / (time ? time : 1));
  compress->busy = busy;
  compress->acked = acked;
}

void
tl_compress_look (struct tl_compress *compress, int fd, bool blocked)
{
  struct tl_tcp tcp;

  compress->blocked |= blocked;
  if (compress->sends++ % LOOK == 0 && tl_tcp_look (fd, &tcp)) {
    tl_compress_link (compress, tcp.busy, tcp.acked,
                      compress->blocked || !tcp.idle);
    compress->blocked = false;
  }
}

bool
tl_compress_may (const struct tl_compress *compress,
                 const unsigned char *header, uint32_t length)
{
  return length >= TL_COMPRESS_MIN && is (header, false) &&
         (length >= LARGE || compress->full) && link_rate (compress) &&
         compress->compressed < compress->probe;
}

size_t
tl_compress_room (struct tl_compress *compress, bool empty)
{
  if (empty)
    compress->used = 0;
  return sizeof compress->out - compress->used;
}

bool
tl_compress_holds (const struct tl_compress *compress, const void *payload)
{
  uintptr_t at = (uintptr_t)payload, begin = (uintptr_t)compress->out;

  return at >= begin && at < begin + sizeof compress->out;
}

/* It took TIME nanoseconds to make a payload SAVED bytes shorter; to expand it
 * takes about a sixth of that.  Is the link busy for longer with so many?
 */
static void
judge (struct tl_compress *compress, uint32_t saved, uint64_t time)
{
  if (saved * UINT64_C (1000000000) / link_rate (compress) > time + time / 6)
    compress->skip_next = 0;
  else {
    compress->skip = compress->skip_next;
    compress->skip_next = compress->skip_next * 2 + 2;
    if (compress->skip_next > SKIP_MOST)
      compress->skip_next = SKIP_MOST;
  }
}

const unsigned char *
tl_compress (struct tl_compress *compress, unsigned char *header,
             uint32_t *length, const void *payload)
{
  unsigned char *to = compress->out + compress->used;
  size_t room = sizeof compress->out - compress->used;
  uint32_t most = *length - *length / PARTS;
  uint64_t begin;
  int n;

  if (compress->skip) {
    compress->skip--;
    return NULL;
  }
  if (most > room)
    most = (uint32_t)room;
  begin = nanoseconds ();
  n = LZ4_compress_fast_extState (&compress->state, payload, (char *)to,
                                  (int)*length, (int)most, 1);
  judge (compress, n > 0 ? *length - (uint32_t)n : 0, nanoseconds () - begin);
  if (n <= 0)
    return NULL;
  compress->touched = true;
  compress->used += (size_t)n;
  *length = (uint32_t)n;
  change (header, true, *length, tl_payload_checksum (to, *length));
  return to;
}

/* ---- Receiving ---- */

const char *
tl_expand_decode (struct tl_frame *frame, uint32_t *travels, const void *header,
                  uint64_t size)
{
  const unsigned char *bytes = header;
  unsigned char plain[TL_FRAME_SIZE];
  const char *bad;

  if (!is (bytes, true) ||
      get (bytes, SUM, 8) != tl_payload_checksum (bytes, SUM)) {
    bad = tl_frame_decode (frame, header, size);
    *travels = frame->payload;
    return bad;
  }
  *travels = (uint32_t)get (bytes, PAYLOAD, 4);
  memcpy (plain, bytes, sizeof plain);
  change (plain, false, (uint32_t)get (bytes, LENGTH, 4),
          get (bytes, CHECKSUM, 8));
  bad = tl_frame_decode (frame, plain, size);
  if (!bad && (*travels == 0 || *travels >= frame->length))
    bad = "compressed payload of wrong length";
  return bad;
}

void
tl_expand_begin (struct tl_compress *compress)
{
  compress->expanded = 0;
}

bool
tl_expand_room (const struct tl_compress *compress,
                const struct tl_frame *frame)
{
  return frame->payload <= sizeof compress->in - compress->expanded;
}

const unsigned char *
tl_expand (struct tl_compress *compress, const struct tl_frame *frame,
           const void *bytes, uint32_t travels)
{
  unsigned char *to = compress->in + compress->expanded;

  if (LZ4_decompress_safe (bytes, (char *)to, (int)travels,
                           (int)frame->payload) != (int)frame->payload)
    return NULL;
  compress->expanded += frame->payload;
  return to;
}
