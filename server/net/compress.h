/* Compression of what the mirror sends, feature 1 of twinlog-protocol(7): lz4,
 * and only where it pays.  Of a connection it knows the buffers and what is
 * worth trying; the core sees plain frames only.
 *
 * Threads: the part for sending belongs to the one that sends on the
 * connection, the part for receiving to its reader; no lock is needed.
 */
#ifndef TWINLOG_NET_COMPRESS_H
#define TWINLOG_NET_COMPRESS_H

#include "core/frame.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TL_FEATURE_LZ4 1u    /* of hello: takes such frames */
#define TL_COMPRESSED 128u   /* flag of write and sync-chunk */
#define TL_COMPRESS_MIN 4096 /* smaller payloads are sent as they are */

struct tl_compress;

/* Everything that a connection needs, in touched memory.  NULL where there is
 * none.
 */
struct tl_compress *tl_compress_new (void);
void tl_compress_free (struct tl_compress *compress);

/* ---- Negotiation ---- */

/* Put the offer into the hello FRAME with PAYLOAD: returns what is to be sent
 * instead of that, in BYTES, of TL_SMALL_MAX bytes.
 */
const void *tl_compress_offer (struct tl_frame *frame, const void *payload,
                               void *bytes);

/* Does this hello offer it? */
bool tl_compress_offered (const void *payload, size_t length);

/* ---- Sending ---- */

/* What the kernel tells of the link: for how many microseconds it was busy
 * since it was made, without those that the peer made it wait, and how many
 * bytes arrived; and whether there was always more to be sent of late.
 */
void tl_compress_link (struct tl_compress *compress, uint64_t busy,
                       uint64_t acked, bool full);

/* The same, asked of the socket FD, once in several calls: one for each send
 * of something that is large enough.  BLOCKED: the socket took nothing.
 */
void tl_compress_look (struct tl_compress *compress, int fd, bool blocked);

/* Would the frame with HEADER and LENGTH bytes of payload be tried? */
bool tl_compress_may (const struct tl_compress *compress,
                      const unsigned char *header, uint32_t length);

/* Compress a frame for which tl_compress_may holds, unless earlier ones say
 * that it is not worth it, or it does not shrink: then NULL.  Otherwise the
 * payload to send, in the buffer of COMPRESS, with HEADER and LENGTH changed
 * to fit it.
 */
const unsigned char *tl_compress (struct tl_compress *compress,
                                  unsigned char *header, uint32_t *length,
                                  const void *payload);

/* Is this payload in the buffer of COMPRESS? */
bool tl_compress_holds (const struct tl_compress *compress,
                        const void *payload);

/* Bytes, before compression, that there is room for.  EMPTY: nothing of what
 * tl_compress returned is in use any more.
 */
size_t tl_compress_room (struct tl_compress *compress, bool empty);

/* ---- Receiving ---- */

/* As tl_frame_decode, of a compressed frame too: FRAME is what it is once it
 * is expanded, TRAVELS the bytes that follow the header, frame->checksum
 * theirs.
 */
const char *tl_expand_decode (struct tl_frame *frame, uint32_t *travels,
                              const void *header, uint64_t size);

/* Room for what is expanded; forgets what was before. */
void tl_expand_begin (struct tl_compress *compress);

/* Is there room for the payload of FRAME?  At the beginning for any. */
bool tl_expand_room (const struct tl_compress *compress,
                     const struct tl_frame *frame);

/* Expand TRAVELS bytes, whose checksum holds, to the payload of FRAME, which
 * stays until tl_expand_begin.  NULL where they are not well formed.
 */
const unsigned char *tl_expand (struct tl_compress *compress,
                                const struct tl_frame *frame, const void *bytes,
                                uint32_t travels);

#endif
