/* The mirror protocol on the wire: twinlog-protocol(7).  Encoding and decoding
 * only; what a frame means is decided in the core.  Pure functions, any thread.
 */
#ifndef TWINLOG_CORE_FRAME_H
#define TWINLOG_CORE_FRAME_H

#include "view.h"

#define TL_FRAME_MAGIC 0x54574e4cu /* "TWNL" */
#define TL_FRAME_SIZE 64u          /* of the header */
#define TL_PAYLOAD_MAX (1u << 20)  /* behind one header */
#define TL_ZERO_MAX (64u << 20)    /* bytes that one zero frame covers */
#define TL_SMALL_MAX 8192u         /* payload of all but write and sync-chunk */
#define TL_PROTOCOL_MIN 1u
#define TL_PROTOCOL_MAX 1u

enum tl_frame_type {
  TL_HELLO = 1,
  TL_WELCOME,    /* the dialler's answer to the hello that answered its own:
                  * the session begins */
  TL_WRITE,      /* applied in order, acknowledged; length 0: a barrier */
  TL_ZERO,       /* the same, without payload */
  TL_ACK,        /* sequence: everything up to it is applied */
  TL_BITMAP,     /* the target's dirty runs; it is ready */
  TL_SYNC_BEGIN, /* a resync starts; flag TL_FULL: the target empties itself */
  TL_SYNC_CHUNK, /* like write or, with flag TL_ZEROES, like zero */
  TL_SYNC_DONE,  /* the target is complete; acknowledged */
  TL_VIEW,       /* a view, to be stored */
  TL_VIEW_ACK,   /* it is stored */
  TL_HANDOVER,   /* request (no payload) or the view that promotes */
  TL_PING,
  TL_PONG,
  TL_BYE,     /* why the connection ends, text */
  TL_VERIFY,  /* checksums of blocks, XXH3-64, 8 bytes each; acknowledged */
  TL_VERIFIED /* the runs of them that differ; sequence: how many blocks */
};

/* Flags. */
#define TL_FULL 1u    /* sync-begin */
#define TL_ZEROES 1u  /* sync-chunk */
#define TL_PROPOSE 1u /* view: store it, so that the sender may */
#define TL_CREATE 2u  /* view: the volume is born; the store is complete */

struct tl_frame {
  uint8_t type;
  uint8_t flags;
  uint64_t session;
  uint64_t view;     /* number */
  uint64_t sequence; /* of write, zero, sync-*; of ack: the last applied */
  uint64_t offset;   /* bytes into the volume */
  uint32_t length;   /* bytes of the volume that it covers */
  uint32_t payload;  /* bytes that follow the header */
  uint64_t checksum; /* XXH3-64 of the payload, 0 where there is none */
};

/* What a hello says. */
struct tl_hello {
  uint32_t version_min, version_max;
  uint64_t features; /* of the shell: server/net/compress.h */
  char volume[TL_NAME_SIZE];
  char node[TL_NAME_SIZE];
  struct tl_uuid uuid;
  uint64_t size;
  uint64_t incarnation; /* of the RAM */
  uint8_t role;         /* enum tl_role */
  uint8_t data;         /* enum tl_data */
  uint8_t member;       /* it confirms that it is a member of `view` */
  uint8_t arbiter;      /* it has one */
  struct tl_view view;
  struct tl_past past[TL_HISTORY];
  unsigned n_past;
};

struct tl_run {
  uint64_t first; /* block */
  uint64_t count;
};

#define TL_RUNS_MAX (TL_SMALL_MAX / 16)

/* The checksum of a payload: XXH3-64, 0 for an empty one. */
uint64_t tl_payload_checksum (const void *payload, size_t length);

/* Write the header of FRAME into the TL_FRAME_SIZE bytes at HEADER. */
void tl_frame_encode (const struct tl_frame *frame, void *header);

/* Read a header.  Checks magic, checksum, type, and all limits, against SIZE,
 * the bytes of the volume.  NULL, or in a few words what is wrong.
 */
const char *tl_frame_decode (struct tl_frame *frame, const void *header,
                             uint64_t size);

const char *tl_frame_name (unsigned type);

/* Payload codecs.  Encoders write into BUFFER of TL_SMALL_MAX bytes and return
 * the length; decoders return 0, or -1 where the bytes are not well formed.
 */
size_t tl_hello_encode (const struct tl_hello *hello, void *buffer);
int tl_hello_decode (struct tl_hello *hello, const void *buffer, size_t length);
size_t tl_view_encode (const struct tl_uuid *uuid, const struct tl_view *view,
                       void *buffer);
int tl_view_decode (struct tl_uuid *uuid, struct tl_view *view,
                    const void *buffer, size_t length);
size_t tl_runs_encode (const struct tl_run *runs, unsigned n, void *buffer);
int tl_runs_decode (struct tl_run *runs, unsigned *n, uint64_t blocks,
                    const void *buffer, size_t length);

#endif
