/* What the files of server/net share.  Private to this folder and its tests.
 *
 * One lock, the volume's (node->lock), guards the core, the store, the out
 * queues of the connections, the list of requests that are inside, and every
 * field below that is marked (lock).  No other lock is taken while it is held,
 * save the arbiter's own; but who holds it may wait for the copy of a write,
 * which is made without any (store.h).  What is marked (loop) belongs to the
 * loop thread.
 */
#ifndef TWINLOG_NET_NET_H
#define TWINLOG_NET_NET_H

#include "net/node.h"
#include "net/address.h"
#include "net/compress.h"
#include "net/latency.h"
#include "state/state.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <uv.h>

struct tl_call;
struct tl_conn;

/* ---- Out queue ---- */

/* One frame that waits to be sent.  It lives in the call of the worker whose
 * payload it sends, or comes from a pool.
 */
struct tl_entry {
  struct tl_entry *next;
  struct tl_conn *conn; /* in whose queue it is, NULL: in none */
  struct tl_call *call; /* that waits for it, NULL: from a pool */
  unsigned pool;        /* index, where call is NULL */
  bool flying;          /* a sendmsg that refers to it is under way */
  uint32_t sent;        /* bytes of header and payload that have left */
  uint32_t length;      /* of the payload */
  const unsigned char *payload;
  unsigned char header[TL_FRAME_SIZE];
};

#define TL_POOLS 3

/* Entries that were made beforehand, so that nothing is allocated on the write
 * path: without payload, with a small one, with a chunk.  (lock)
 */
struct tl_pool {
  struct tl_entry *free;
  size_t capacity; /* of the payload, bytes */
};

int tl_pools_init (struct tl_node *node);
void tl_pools_free (struct tl_node *node);

/* With the lock held: an entry for a payload of LENGTH bytes, or NULL.  The
 * pools hold what the core ever has under way, so that memory is asked for in
 * strange cases only.
 */
struct tl_entry *tl_pool_take (struct tl_node *node, size_t length);
void tl_pool_give (struct tl_node *node, struct tl_entry *entry);

/* Where its payload is. */
unsigned char *tl_pool_bytes (struct tl_entry *entry);

/* All of these with the lock held.  tl_queue_add takes a frame with PAYLOAD of
 * frame->payload bytes: CALL's own buffer, or copied where CALL is NULL.
 * tl_queue_store reads the payload from the store.
 */
void tl_queue_add (struct tl_node *node, struct tl_conn *conn,
                   const struct tl_frame *frame, struct tl_call *call,
                   const void *payload);
void tl_queue_store (struct tl_node *node, struct tl_conn *conn,
                     const struct tl_frame *frame);

/* Send what is queued; the lock is released during each sendmsg, and with the
 * first one COPY is made, if it is not NULL: the peer has its bytes meanwhile.
 * The caller has seen tl_queue_ready.
 */
bool tl_queue_ready (const struct tl_conn *conn);
void tl_queue_pump (struct tl_node *node, struct tl_conn *conn,
                    struct tl_copy *copy);

/* Send what can be sent without waiting, drop the rest, end the stream. */
void tl_queue_finish (struct tl_node *node, struct tl_conn *conn);

/* Drop the queue and end the stream. */
void tl_queue_drop (struct tl_node *node, struct tl_conn *conn);

/* The request of CALL has ended while its entry is still queued: let the queue
 * go on without the worker's buffer.
 */
void tl_queue_detach (struct tl_node *node, struct tl_call *call);

/* ---- Connections ---- */

enum tl_phase {
  TL_PHASE_DIALLING,
  TL_PHASE_UP,
  TL_PHASE_LINGER, /* the core is done with it; the peer still reads */
  TL_PHASE_GONE    /* its handles are being closed */
};

/* Bytes of the receive buffer: a maximal frame twice. */
#define TL_RECEIVE_SIZE (2 * (size_t)(TL_FRAME_SIZE + TL_PAYLOAD_MAX))

struct tl_conn {
  struct tl_conn *next; /* (loop) changes it with the lock held */
  struct tl_node *node;
  uint32_t id; /* 0 until the core was told; set with the lock held */
  int fd;      /* closed only where `sending` and `reading` are false */
  int watcher; /* an epoll descriptor of its own that watches fd, and is what
                * the loop watches: any thread may change what for */

  /* (lock) */
  struct tl_entry *head, **tail;
  bool sending;      /* somebody is in tl_queue_pump */
  bool blocked;      /* the loop waits until the socket takes more */
  bool told;         /* the core knows that it is gone, or asked for it */
  bool down;         /* the queue was dropped; nothing more is sent */
  int error;         /* errno of a send that failed, 0: none */
  bool reading;      /* somebody is the reader */
  bool lent;         /* and that is a worker: the loop does not look at input */
  const char *bad;   /* what a worker found wrong with what came, or NULL */
  uint32_t wanted;   /* EPOLLIN, EPOLLOUT: what the loop waits for; (loop)
                      * changes it */
  uint32_t watching; /* what the watcher was told */

  /* (loop) */
  enum tl_phase phase;
  bool dialled;
  unsigned handles;
  uv_poll_t poll;
  uv_timer_t timer;

  struct tl_compress *compress; /* NULL: this node does without */
  bool compresses;              /* the peer does too; the reader sets it, with
                                 * the lock held */

  /* (reader) */
  bool fed;              /* frames were given to the core since the last batch
                          * end */
  unsigned char *buffer; /* TL_RECEIVE_SIZE bytes */
  size_t begin, end;
};

/* The connection that the core knows by ID, or NULL.  Lock held. */
struct tl_conn *tl_conn_find (struct tl_node *node, uint32_t id);

/* Is there one on which both nodes compress?  Lock held. */
bool tl_conn_compresses (const struct tl_node *node);

/* These and the next: loop thread, lock not held.  A connection around FD,
 * which is taken over; NULL where memory is short.
 */
struct tl_conn *tl_conn_make (struct tl_node *node, int fd, bool dialled);
void tl_conn_watch (struct tl_conn *conn, uint32_t events);

/* Tell the watcher what is wanted now.  Lock held, any thread. */
void tl_conn_rewatch (struct tl_conn *conn);

/* The connection stands: tell the core. */
void tl_conn_up (struct tl_conn *conn);

/* End it at once, without a word to the core. */
void tl_conn_end (struct tl_conn *conn);

void tl_conn_dial (struct tl_node *node);
void tl_conn_dialled (struct tl_conn *conn); /* it can be written to */
void tl_conn_accept (struct tl_node *node);
void tl_conn_turn (struct tl_node *node);
void tl_conn_end_all (struct tl_node *node);

/* Read what has come on CONN and give it to the core; until the socket is
 * empty where ALL.  Returns why the connection must go, or NULL.
 *
 * Frames, acknowledgements included, come in through the reader alone: the
 * thread that has set `reading`.  That is the loop, in this function; or, where
 * just one request waits, its worker, in tl_read_until: what it waits for then
 * wakes it rather than the loop first.
 */
const char *tl_receive (struct tl_conn *conn, bool all);

/* Lock held: make the caller the reader for CALL, if that is the only one that
 * waits and nobody reads.  The connection, or NULL.
 */
struct tl_conn *tl_read_begin (struct tl_node *node,
                               const struct tl_call *call);

/* Lock not held: read until CALL has ended or the connection has, and leave
 * reading to the loop.
 */
void tl_read_until (struct tl_conn *conn, const struct tl_call *call);

/* The connection is gone, or must go, for REASON. */
void tl_conn_fail (struct tl_conn *conn, const char *reason);

/* ---- Requests ---- */

/* A request of a client, from its first piece to its last.  (lock) */
struct tl_inside {
  uint64_t number;
  uint64_t began; /* time */
  struct tl_inside *next, *prev;
  bool linked;
};

struct tl_extent {
  uint64_t offset, length;
  bool allocated;
};

#define TL_EXTENTS 64

/* What an extents request wants instead of bytes. */
struct tl_snapshot {
  uint64_t end; /* where the range ends, exclusive */
  unsigned n;
  struct tl_extent extents[TL_EXTENTS];
};

enum { TL_CALL_WAITS, TL_CALL_SLEEPS, TL_CALL_ENDED };

/* One piece of a request, on its worker's stack.  The worker returns only once
 * `state` is TL_CALL_ENDED: the core is done with it, and nothing refers to
 * its buffer.
 */
struct tl_call {
  struct tl_request request; /* first, so that the core's pointer is ours */
  void *bytes;               /* read: here */
  const void *payload;       /* write: from here */
  struct tl_snapshot *snapshot;
  struct tl_entry entry;
  struct tl_inside *inside;
  bool last;              /* ends with it, however it ends */
  bool ended;             /* (lock) the core is done with it */
  bool waits;             /* (lock) it is counted in node->waiting */
  _Atomic uint32_t state; /* a futex */
};

/* The core is done with the request.  Lock held. */
void tl_call_end (struct tl_node *node, struct tl_request *request);

/* The entry of CALL has left its queue.  Lock held. */
void tl_call_settle (struct tl_node *node, struct tl_call *call);

void tl_snapshot_take (struct tl_node *node, struct tl_call *call);

/* ---- Control socket ---- */

#define TL_CONTROL_CLIENTS 32
#define TL_CONTROL_LINE 4096
#define TL_CONTROL_TEXT 1024

struct tl_control_client {
  struct tl_node *node;
  bool used; /* (loop) until its handle is closed */
  bool closing;
  bool over; /* it will say nothing more */
  int fd;
  uv_poll_t poll;
  size_t filled;
  char line[TL_CONTROL_LINE + 1];

  /* (lock) */
  uint64_t token; /* of the command under way, 0: none */
  bool replied;
  int status;
  char text[TL_CONTROL_TEXT];
};

/* Bind the control socket; a descriptor, or -1 with one line in ERROR. */
int tl_control_bind (struct tl_node *node, char *error, size_t error_size);

/* Remove the file of the control socket, if it is still ours. */
void tl_control_unlink (struct tl_node *node);

void tl_control_accept (struct tl_node *node);
void tl_control_turn (struct tl_node *node);
void tl_control_end_all (struct tl_node *node);
bool tl_control_idle (const struct tl_node *node);
void tl_control_reply (struct tl_node *node, uint64_t token, int status,
                       const char *text); /* lock held */

/* ---- Work off the loop ---- */

#define TL_REASON 256

/* Saves of the state file, one at a time. */
struct tl_persist {
  unsigned wanted;         /* (lock) how many the core waits for */
  struct tl_record record; /* (lock) the newest */
  bool busy;               /* (loop) */
  uv_work_t work;
  struct tl_record saving; /* the work's */
  int result;
  char reason[TL_REASON];
};

void tl_persist_turn (struct tl_node *node);

struct tl_ask {
  bool create;
  struct tl_uuid uuid;
  struct tl_view before, after;
};

#define TL_ARBITER_OUTPUT 4096

struct tl_arbiter {
  unsigned wanted;   /* (lock) */
  struct tl_ask ask; /* (lock) the newest */
  bool busy;         /* (loop) */
  uv_work_t work;

  pthread_mutex_t child_lock; /* guards the next two; innermost */
  pid_t child;                /* that runs and is not reaped, 0: none */
  bool ended;                 /* start no more */

  /* The work's. */
  struct tl_ask asking;
  enum tl_answer result;
  bool known;
  struct tl_uuid uuid;
  struct tl_view view;
  char reason[TL_REASON];
};

void tl_arbiter_turn (struct tl_node *node);

/* Kill the command that runs, and start none any more.  Any thread. */
void tl_arbiter_end (struct tl_node *node);

/* Run `COMMAND cas VOLUME OLD NEW`, as the work does.  Blocks, at most for
 * LIMIT microseconds and the time a kill takes.
 */
void tl_arbiter_run (struct tl_arbiter *arbiter, const char *command,
                     const char *volume, uint64_t limit);

/* Start the words of ARGUMENTS with the shell, as a process group of its own,
 * its output going to OUT and ERR.  0 or an errno value.
 */
int tl_spawn (char *const arguments[], char *const environment[], int out,
              int err, pid_t *child);

#define TL_NOTIFY_WORDS 17
#define TL_NOTIFY_TEXT 160 /* longer than a control path and its name */

struct tl_notify {
  bool wanted; /* (lock) something has changed */

  /* (loop), and the work's while that runs */
  bool busy;    /* until the command has ended */
  bool watched; /* the handle is open */
  uv_work_t work;
  uv_poll_t poll;
  struct tl_status told; /* to the last one, or what the node began as */
  unsigned n_text;
  char text[TL_NOTIFY_WORDS][TL_NOTIFY_TEXT];
  pid_t child;
  int pidfd;
  int error; /* errno value of the start */
};

void tl_notify_turn (struct tl_node *node);

/* Leave the command that runs to itself. */
void tl_notify_end (struct tl_node *node);

#define TL_LOG_LINES 64
#define TL_LOG_LINE 512

struct tl_log {
  unsigned first, n; /* (lock) a ring */
  unsigned lost;     /* (lock) lines for which there was no room */
  struct {
    bool error;
    char text[TL_LOG_LINE];
  } lines[TL_LOG_LINES];
  bool busy; /* (loop) */
  uv_work_t work;
};

/* Queue a line for the operator: whoever reads it may be slow.  Lock held. */
void tl_log_add (struct tl_node *node, bool error, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));
void tl_log_turn (struct tl_node *node);

/* Hand over what is queued, on this thread.  Lock not held. */
void tl_log_flush (struct tl_node *node);

/* ---- Paths ---- */

/* Those of the connection to the peer, as they were last seen.  (loop) */
struct tl_paths {
  uint32_t conn; /* of which connection; 0: none */
  unsigned now, most;
};

/* How many paths to the peer work: 0 while not connected, 1 with plain TCP.
 * Loop thread, lock held.
 */
unsigned tl_mptcp_paths (const struct tl_node *node);

/* Look, and log what has changed. */
void tl_mptcp_look (struct tl_node *node);

/* ---- The node ---- */

struct tl_client {
  uint64_t epoch;
};

/* Workers that can be woken without the lock: 64 connections with the threads
 * that nbdkit gives each, of which one acknowledgement may end all.  Those
 * beyond are woken while it is held.
 */
#define TL_WAKES 1024
#define TL_RANDOM 64

struct tl_node {
  /* Fixed once tl_node_open has returned. */
  char volume[TL_NAME_SIZE], name[TL_NAME_SIZE];
  uint64_t size, deadline;
  enum tl_policy policy;
  bool compress, mptcp;
  char *state, *control, *arbiter_command, *notify_command;
  void (*log) (void *opaque, bool error, const char *line);
  void *opaque;
  struct tl_address listen_address, peer_address;
  int state_lock, listen_fd, control_fd;
  dev_t control_dev; /* which file the control socket is */
  ino_t control_ino;
  bool control_bound;
  struct tl_store *store;

  pthread_mutex_t lock;
  pthread_cond_t changed; /* a request left while somebody waits for that, or
                           * the loop has ended */

  /* (lock) */
  struct tl_core *core;
  struct tl_update update;
  bool started, stopped, over; /* over: no more steps */
  bool loop_ended;
  uint64_t wake;  /* when the core wants to be told the time */
  uint64_t armed; /* for when the loop's timer is set */
  bool poke_open; /* the async handle may be used */
  bool dial_wanted;
  uint64_t random[TL_RANDOM];
  unsigned n_random;
  _Atomic uint32_t *wakes[TL_WAKES]; /* workers to be woken after unlock */
  unsigned n_wakes;
  uint64_t entered; /* number of the newest request */
  struct tl_inside *inside_first, *inside_last; /* in order of number */
  unsigned waiting;                             /* calls that have not ended */
  unsigned admitting, clients;
  struct tl_pool pools[TL_POOLS];
  struct tl_conn *conns;
  uint64_t token;
  struct tl_log log_queue;
  uint64_t compressed_from, compressed_to; /* payload bytes that were sent
                                            * compressed, before and after */

  struct tl_control_client control_clients[TL_CONTROL_CLIENTS];
  struct tl_persist persist;
  struct tl_arbiter arbiter;
  struct tl_notify notify;
  struct tl_latency write_latency, read_latency; /* atomic */

  /* (loop) */
  uv_loop_t loop;
  uv_async_t async;
  uv_timer_t timer, resume, paths_timer;
  uv_poll_t listen_poll, control_poll;
  pthread_t thread;
  bool loop_ready, thread_running; /* start and close only */
  bool ending, closing;
  uint32_t last_id;
  struct tl_address refused; /* the last address that was turned away */
  uint64_t refused_logged;   /* when */
  struct tl_paths paths;
};

uint64_t tl_now (void); /* monotonic, microseconds */

/* Fresh random bytes; waits where the system has none yet. */
void tl_random_bytes (void *bytes, size_t length);

static inline void
tl_lock (struct tl_node *node)
{
  pthread_mutex_lock (&node->lock);
}

/* Release the lock, then wake the workers whose requests have ended. */
void tl_unlock (struct tl_node *node);

/* Send what is queued anywhere; the lock is released during each sendmsg, and
 * with the first one COPY is made, if it is not NULL.
 */
void tl_pump (struct tl_node *node, struct tl_copy *copy);

/* The same, then tl_unlock. */
void tl_leave (struct tl_node *node);

/* Tell the core the time, if it wants to be told.  Lock held. */
void tl_tell_time (struct tl_node *node);

/* Wake the worker that sleeps on STATE once the lock is released. */
void tl_wake_later (struct tl_node *node, _Atomic uint32_t *state);

/* Tell the core and carry out what it answers, and again with TL_EV_TIME while
 * it asks for that.  Fills in time and random number of EVENT.  Lock held.
 */
void tl_step (struct tl_node *node, struct tl_event *event);

/* Make the loop look around.  Lock held. */
void tl_poke (struct tl_node *node);

/* The loop looks around: everything that other threads left for it to do. */
void tl_turn (struct tl_node *node);

int tl_loop_init (struct tl_node *node, char *error, size_t error_size);
void *tl_loop_main (void *node);

/* Stop watching the listening sockets for a second: no descriptor is free. */
void tl_loop_pause (struct tl_node *node);

int tl_listen_open (const struct tl_address *address, bool mptcp, char *error,
                    size_t error_size);

#endif
