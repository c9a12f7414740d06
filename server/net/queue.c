/* The out queue of a connection.
 *
 * The way of a write: its worker, holding the lock, adds the entry that lives
 * in its call; it finds nobody sending, so it becomes the sender, takes what
 * is queued into one sendmsg, and releases the lock while that runs.  Workers
 * that come meanwhile only add; the sender takes their entries with its next
 * sendmsg.
 *
 * What can go wrong: the socket takes no more (the loop waits and goes on),
 * the send fails (the queue is dropped, the loop tells the core), the core
 * ends the connection while a sendmsg is under way (the sender drops the
 * queue), a request ends before its frame has left (its payload is copied).
 */
#include "net/net.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* Of one sendmsg. */
#define ENTRIES 32

/* Bytes that are compressed for one sendmsg, if it is more than one frame: the
 * link is to be busy meanwhile.
 */
#define COMPRESS_BATCH (128u << 10)

/* After so many the loop goes on, so that no worker sends for ever. */
#define BATCHES 16

/* ENTRY has left its queue. */
static void
release (struct tl_node *node, struct tl_entry *entry)
{
  entry->conn = NULL;
  entry->flying = false;
  if (entry->call)
    tl_call_settle (node, entry->call);
  else
    tl_pool_give (node, entry);
}

static void
fail (struct tl_node *node, struct tl_conn *conn, int error)
{
  if (!conn->error)
    conn->error = error;
  tl_queue_drop (node, conn);
}

static void
append (struct tl_conn *conn, struct tl_entry *entry,
        const struct tl_frame *frame)
{
  tl_frame_encode (frame, entry->header);
  entry->length = frame->payload;
  entry->sent = 0;
  entry->flying = false;
  entry->conn = conn;
  entry->next = NULL;
  *conn->tail = entry;
  conn->tail = &entry->next;
}

void
tl_queue_add (struct tl_node *node, struct tl_conn *conn,
              const struct tl_frame *frame, struct tl_call *call,
              const void *payload)
{
  struct tl_entry *entry;

  if (conn->down)
    return;
  if (call && !call->entry.conn) {
    entry = &call->entry;
    entry->call = call;
    entry->payload = payload;
  } else {
    entry = tl_pool_take (node, frame->payload);
    if (!entry) {
      fail (node, conn, ENOMEM);
      return;
    }
    entry->call = NULL;
    if (frame->payload)
      memcpy (tl_pool_bytes (entry), payload, frame->payload);
  }
  append (conn, entry, frame);
}

void
tl_queue_store (struct tl_node *node, struct tl_conn *conn,
                const struct tl_frame *frame)
{
  struct tl_frame filled = *frame;
  struct tl_entry *entry;
  void *bytes;

  if (conn->down)
    return;
  entry = tl_pool_take (node, frame->length);
  if (!entry) {
    fail (node, conn, ENOMEM);
    return;
  }
  bytes = tl_pool_bytes (entry);
  tl_store_read (node->store, frame->offset, frame->length, bytes);
  filled.payload = frame->length;
  filled.checksum = tl_payload_checksum (bytes, frame->length);
  entry->call = NULL;
  append (conn, entry, &filled);
}

void
tl_queue_detach (struct tl_node *node, struct tl_call *call)
{
  struct tl_entry *entry = &call->entry, *copy;
  struct tl_conn *conn = entry->conn;
  struct tl_entry **link = &conn->head;

  copy = tl_pool_take (node, entry->length);
  if (!copy) {
    /* It cannot be left out of the stream: end the stream. */
    fail (node, conn, ENOMEM);
    return;
  }
  while (*link != entry)
    link = &(*link)->next;
  copy->call = NULL;
  copy->conn = conn;
  copy->flying = false;
  copy->sent = entry->sent;
  copy->length = entry->length;
  memcpy (copy->header, entry->header, TL_FRAME_SIZE);
  if (entry->length)
    memcpy (tl_pool_bytes (copy), entry->payload, entry->length);
  copy->next = entry->next;
  *link = copy;
  if (!copy->next)
    conn->tail = &copy->next;
  entry->conn = NULL;
  tl_call_settle (node, call);
}

void
tl_queue_drop (struct tl_node *node, struct tl_conn *conn)
{
  struct tl_entry *rest, **link = &conn->head;

  if (!conn->down) {
    conn->down = true;
    /* A sendmsg under way does not wait, so that ending the stream is enough;
     * the descriptor is closed by the loop once nobody sends.
     */
    shutdown (conn->fd, SHUT_WR);
    tl_poke (node);
  }
  /* What flies is in use until its sendmsg has returned; it comes first. */
  while (*link && (*link)->flying)
    link = &(*link)->next;
  rest = *link;
  *link = NULL;
  conn->tail = link;
  while (rest) {
    struct tl_entry *entry = rest;

    rest = entry->next;
    release (node, entry);
  }
}

/* ---- Compression ---- */

/* The entries that the next sendmsg takes; what flies is the sender's, also
 * without the lock.
 */
struct batch {
  unsigned n;
  struct tl_entry *entries[ENTRIES];
  struct tl_compress *compress; /* NULL: no entry is large enough, or never */
  uint64_t from, to; /* payload bytes that were compressed, before and after */
};

/* Untouched, and of a kind that may be worth it. */
static bool
may_compress (const struct tl_compress *compress, const struct tl_entry *entry)
{
  return compress && !entry->sent &&
         tl_compress_may (compress, entry->header, entry->length);
}

/* Bytes that may be compressed for the next sendmsg.  What was compressed for
 * the last one, and did not leave with it, comes first in the queue.
 */
static size_t
compress_room (struct tl_conn *conn)
{
  bool held = false;
  size_t room;

  for (struct tl_entry *entry = conn->head; entry && !held; entry = entry->next)
    held = tl_compress_holds (conn->compress, entry->payload);
  room = tl_compress_room (conn->compress, !held);
  return room < COMPRESS_BATCH ? room : COMPRESS_BATCH;
}

static void
compress_batch (struct batch *batch)
{
  for (unsigned i = 0; i < batch->n; i++) {
    struct tl_entry *entry = batch->entries[i];
    uint32_t length = entry->length;
    const unsigned char *payload;

    if (!may_compress (batch->compress, entry))
      continue;
    payload = tl_compress (batch->compress, entry->header, &entry->length,
                           entry->payload);
    if (payload) {
      entry->payload = payload;
      batch->from += length;
      batch->to += entry->length;
    }
  }
}

/* ---- Sending ---- */

static void
take_batch (struct tl_conn *conn, struct batch *batch)
{
  struct tl_compress *compress = conn->compresses ? conn->compress : NULL;
  size_t room = compress ? compress_room (conn) : 0;

  batch->n = 0;
  batch->compress = NULL;
  batch->from = batch->to = 0;
  for (struct tl_entry *entry = conn->head; entry && batch->n < ENTRIES;
       entry = entry->next) {
    if (may_compress (compress, entry)) {
      if (entry->length > room && batch->n)
        break;
      room = entry->length > room ? 0 : room - entry->length;
    }
    if (entry->length >= TL_COMPRESS_MIN)
      batch->compress = compress;
    entry->flying = true;
    batch->entries[batch->n++] = entry;
  }
}

static int
fill_iovecs (const struct batch *batch, struct iovec iovecs[2 * ENTRIES])
{
  int n = 0;

  for (unsigned i = 0; i < batch->n; i++) {
    const struct tl_entry *entry = batch->entries[i];
    uint32_t sent = entry->sent;

    if (sent < TL_FRAME_SIZE) {
      iovecs[n].iov_base = (void *)(uintptr_t)(entry->header + sent);
      iovecs[n++].iov_len = TL_FRAME_SIZE - sent;
      sent = 0;
    } else
      sent -= TL_FRAME_SIZE;
    if (sent < entry->length) {
      iovecs[n].iov_base = (void *)(uintptr_t)(entry->payload + sent);
      iovecs[n++].iov_len = entry->length - sent;
    }
  }
  return n;
}

/* N bytes from the head of the queue on have left. */
static void
advance (struct tl_node *node, struct tl_conn *conn, size_t n)
{
  struct tl_entry *entry, *next;

  while ((entry = conn->head) && entry->flying) {
    uint32_t left = TL_FRAME_SIZE + entry->length - entry->sent;

    if (n < left)
      break;
    n -= left;
    conn->head = entry->next;
    if (!conn->head)
      conn->tail = &conn->head;
    release (node, entry);
  }
  if (entry && entry->flying)
    entry->sent += (uint32_t)n;

  /* The rest flies no more; who has ended meanwhile takes its buffer along. */
  for (; entry && entry->flying; entry = next) {
    next = entry->next;
    entry->flying = false;
    if (conn->down)
      continue; /* all of it is dropped below */
    if (entry->call && entry->call->ended) {
      tl_queue_detach (node, entry->call);
      if (conn->down)
        break; /* the queue is gone */
    }
  }
  if (conn->down)
    tl_queue_drop (node, conn);
}

/* One sendmsg; with the lock released meanwhile, and COPY made, if UNLOCK. */
static void
send_batch (struct tl_node *node, struct tl_conn *conn, bool unlock,
            struct tl_copy *copy)
{
  struct iovec iovecs[2 * ENTRIES];
  struct msghdr message = {.msg_iov = iovecs};
  struct batch batch;
  ssize_t n;
  int error;

  take_batch (conn, &batch);
  if (unlock)
    tl_unlock (node);
  if (batch.compress)
    compress_batch (&batch);
  message.msg_iovlen = (size_t)fill_iovecs (&batch, iovecs);
  n = sendmsg (conn->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  error = errno;
  if (batch.compress)
    tl_compress_look (batch.compress, conn->fd, n == -1 && error == EAGAIN);
  if (unlock) {
    if (copy)
      tl_store_copy (node->store, copy);
    tl_lock (node);
  }

  node->compressed_from += batch.from;
  node->compressed_to += batch.to;
  advance (node, conn, n > 0 ? (size_t)n : 0);
  if (n >= 0 || error == EINTR)
    return;
  if (error == EAGAIN || error == ENOBUFS)
    conn->blocked = true;
  else
    fail (node, conn, error);
}

bool
tl_queue_ready (const struct tl_conn *conn)
{
  return conn->head && !conn->sending && !conn->blocked && !conn->down;
}

void
tl_queue_pump (struct tl_node *node, struct tl_conn *conn, struct tl_copy *copy)
{
  conn->sending = true;
  for (unsigned i = 0; conn->head && !conn->blocked && !conn->down; i++) {
    if (i == BATCHES && !conn->told)
      conn->blocked = true;
    else
      send_batch (node, conn, true, copy);
  }
  conn->sending = false;
  if (conn->told)
    tl_queue_drop (node, conn);
  /* The loop waits for room, or for the end of our sending. */
  if (conn->blocked || conn->down)
    tl_poke (node);
}

void
tl_queue_finish (struct tl_node *node, struct tl_conn *conn)
{
  if (conn->sending)
    return; /* the sender does it, since `told` is set */
  conn->blocked = false;
  while (conn->head && !conn->blocked && !conn->down)
    send_batch (node, conn, false, NULL);
  tl_queue_drop (node, conn);
}
