/* What comes from the peer: read much at once, cut it into frames, check each
 * header before its payload is waited for and each payload before the core
 * sees the frame, then give the core all that one read has brought, and only
 * then let it acknowledge.
 */
#include "net/net.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* Frames that are given to the core in one critical section: many small ones,
 * few large ones, so that the workers get their turn.
 */
#define BATCH_FRAMES 32
#define BATCH_BYTES (128u << 10)

/* Reads before other handles of the loop get their turn. */
#define READS 4

/* At most, where all is to be read: the peer could go on for ever. */
#define READS_ALL 64

struct batch {
  unsigned n;
  struct tl_frame frames[BATCH_FRAMES];
  const unsigned char *payloads[BATCH_FRAMES];
  bool full;       /* there may be more */
  const char *bad; /* what came behind them is not well formed */
};

/* Read a header; TRAVELS bytes of payload follow it. */
static const char *
decode (const struct tl_conn *conn, struct tl_frame *frame, uint32_t *travels,
        const void *header)
{
  const char *bad;

  if (conn->compresses)
    return tl_expand_decode (frame, travels, header, conn->node->size);
  bad = tl_frame_decode (frame, header, conn->node->size);
  *travels = frame->payload;
  return bad;
}

/* Cut complete frames from the buffer. */
static void
collect (struct tl_conn *conn, struct batch *batch)
{
  size_t bytes = 0;

  batch->n = 0;
  batch->bad = NULL;
  batch->full = false;
  if (conn->compresses)
    tl_expand_begin (conn->compress);
  while (conn->end - conn->begin >= TL_FRAME_SIZE) {
    struct tl_frame *frame = &batch->frames[batch->n];
    const unsigned char *at = conn->buffer + conn->begin;
    uint32_t travels;

    if (batch->n == BATCH_FRAMES || bytes >= BATCH_BYTES) {
      batch->full = true;
      return;
    }
    batch->bad = decode (conn, frame, &travels, at);
    if (batch->bad)
      return;
    if (conn->end - conn->begin - TL_FRAME_SIZE < travels)
      return;
    at += TL_FRAME_SIZE;
    if (tl_payload_checksum (at, travels) != frame->checksum) {
      batch->bad = "the checksum of a payload does not hold";
      return;
    }
    if (travels != frame->payload) {
      batch->full = !tl_expand_room (conn->compress, frame);
      if (batch->full)
        return;
      at = tl_expand (conn->compress, frame, at, travels);
      if (!at) {
        batch->bad = "a compressed payload is not well formed";
        return;
      }
    }
    batch->payloads[batch->n++] = at;
    bytes += TL_FRAME_SIZE + frame->payload;
    conn->begin += TL_FRAME_SIZE + travels;
  }
}

/* Make sure of memory for what FRAME may write.  NULL, or why not. */
static const char *
reserve (struct tl_node *node, const struct tl_frame *frame)
{
  if (!frame->payload || !frame->length ||
      (frame->type != TL_WRITE && frame->type != TL_SYNC_CHUNK))
    return NULL;
  if (tl_store_reserve (node->store, frame->offset, frame->length) == 0)
    return NULL;
  return "no memory left for what the peer wrote";
}

/* Give BATCH to the core, and the end of it unless more is to come. */
static const char *
deliver (struct tl_conn *conn, const struct batch *batch)
{
  struct tl_node *node = conn->node;
  const char *bad = NULL;

  tl_lock (node);
  for (unsigned i = 0; i < batch->n && !conn->told && !bad; i++) {
    struct tl_event event = {.type = TL_EV_FRAME};

    bad = reserve (node, &batch->frames[i]);
    if (bad)
      break;
    if (batch->frames[i].type == TL_HELLO)
      conn->compresses =
          conn->compress &&
          tl_compress_offered (batch->payloads[i], batch->frames[i].payload);
    event.frame.id = conn->id;
    event.frame.frame = &batch->frames[i];
    event.frame.payload = batch->payloads[i];
    conn->fed = true;
    tl_step (node, &event);
  }
  if (conn->fed && !batch->full && !conn->told) {
    struct tl_event event = {.type = TL_EV_BATCH_END};

    conn->fed = false;
    tl_step (node, &event);
  }
  tl_leave (node);
  return bad;
}

/* The connection is the core's no more: it was ended by a step of ours. */
static bool
is_told (struct tl_conn *conn)
{
  bool told;

  tl_lock (conn->node);
  told = conn->told;
  tl_unlock (conn->node);
  return told;
}

/* Why the connection must go, or NULL. */
static const char *
parse (struct tl_conn *conn)
{
  struct batch batch;
  const char *bad;

  do {
    collect (conn, &batch);
    bad = NULL;
    if (batch.n || conn->fed)
      bad = deliver (conn, &batch);
    if (!bad)
      bad = batch.bad;
    if (bad)
      return bad;
  } while (batch.full);

  /* Keep room for a maximal frame behind what has come of the next. */
  if (conn->begin == conn->end)
    conn->begin = conn->end = 0;
  else if (TL_RECEIVE_SIZE - conn->begin < TL_RECEIVE_SIZE / 2) {
    memmove (conn->buffer, conn->buffer + conn->begin, conn->end - conn->begin);
    conn->end -= conn->begin;
    conn->begin = 0;
  }
  return NULL;
}

/* One read; where WAIT it waits for as long as the socket was told.  How many
 * bytes came, with *BAD why the connection must go, or NULL.
 */
static size_t
read_once (struct tl_conn *conn, bool wait, const char **bad)
{
  ssize_t n = recv (conn->fd, conn->buffer + conn->end,
                    TL_RECEIVE_SIZE - conn->end, wait ? 0 : MSG_DONTWAIT);

  *bad = NULL;
  if (n > 0) {
    conn->end += (size_t)n;
    *bad = parse (conn);
    return (size_t)n;
  }
  if (n == 0)
    *bad = "connection closed by peer";
  else if (errno != EAGAIN && errno != EINTR)
    *bad = strerror (errno);
  return 0;
}

const char *
tl_receive (struct tl_conn *conn, bool all)
{
  const char *bad;

  for (unsigned i = 0; i < (all ? READS_ALL : READS); i++) {
    size_t room = TL_RECEIVE_SIZE - conn->end;
    size_t n = read_once (conn, false, &bad);

    if (bad)
      return bad;
    if (n == 0 || (!all && n < room) || is_told (conn))
      break;
  }
  return NULL;
}

/* ---- By a worker ---- */

struct tl_conn *
tl_read_begin (struct tl_node *node, const struct tl_call *call)
{
  struct tl_conn *conn;

  if (!call->waits || node->waiting != 1)
    return NULL;
  for (conn = node->conns; conn; conn = conn->next)
    if (conn->id && !conn->told && !conn->error && !conn->bad)
      break;
  if (!conn || conn->reading)
    return NULL;
  conn->reading = conn->lent = true;
  tl_conn_rewatch (conn);
  return conn;
}

void
tl_read_until (struct tl_conn *conn, const struct tl_call *call)
{
  struct tl_node *node = conn->node;
  const char *bad;
  size_t n;

  do {
    n = read_once (conn, true, &bad);
    tl_lock (node);
    if (n == 0)
      tl_tell_time (node);
    if (bad || conn->told || !call->waits) {
      conn->reading = conn->lent = false;
      conn->bad = bad;
      tl_conn_rewatch (conn);
      if (bad || conn->told)
        tl_poke (node);
      conn = NULL;
    }
    tl_leave (node);
  } while (conn);
}
