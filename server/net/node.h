/* A node: the core, the store and the state file of one volume, with the
 * mirror channel and the control socket around them.  This is what the plugin
 * calls; nothing here depends on nbdkit.
 */
#ifndef TWINLOG_NET_NODE_H
#define TWINLOG_NET_NODE_H

#include "core/core.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tl_node;
struct tl_client; /* one NBD connection */

struct tl_node_config {
  const char *volume;
  const char *node;
  uint64_t size;
  const char *listen;  /* ADDRESS:PORT, numeric; IPv6 as [ADDRESS]:PORT */
  const char *peer;    /* the same */
  const char *control; /* path of the control socket */
  const char *state;   /* path of the state file */
  const char *store;   /* path of a file that is the RAM, or NULL */
  bool lock;
  enum tl_policy policy;
  const char *arbiter; /* command line, split by a shell; NULL: none */
  const char *notify;  /* command line for a shell, told of changes; or NULL */
  uint64_t deadline;   /* microseconds */
  bool reads_local;    /* as in tl_core_config, with the next two */
  bool auto_promote;
  uint64_t resync_rate;
  bool compress; /* lz4, with a peer that has it too, where it pays */
  bool mptcp;    /* multipath TCP, with a peer that has it too */
  /* Lines for the operator.  Called from any thread, not with locks that the
   * callee could need.  PROGRESS lines may be overwritten by the next.
   */
  void (*log) (void *opaque, bool error, const char *line);
  void (*progress) (void *opaque, uint64_t done, uint64_t total);
  void *opaque;
};

/* Before nbdkit forks: load the state, open the store, bind the mirror and
 * control sockets.  0, or -1 with one line in ERROR and nothing left behind.
 * Strings of CONFIG are copied.
 */
int tl_node_open (struct tl_node **node, const struct tl_node_config *config,
                  char *error, size_t error_size);

/* After the fork: relock the memory, start the loop thread.  0 or -1. */
int tl_node_start (struct tl_node *node, char *error, size_t error_size);

/* Fail all waiting requests with ESHUTDOWN and every later one at once, say
 * bye to the peer, remove the control socket.  Returns within a second.
 * Called from a thread of the plugin's own; harmless twice.
 */
void tl_node_stop (struct tl_node *node);

/* Join the loop thread and free everything.  tl_node_stop came before it, if
 * tl_node_start did; no request is inside.
 */
void tl_node_close (struct tl_node *node);

/* Let an NBD client in.  Waits until the requests that were inside before have
 * ended, at most the deadline: a client that lost its connection re-sends.
 * NULL with one line in WHY where the node refuses.
 */
struct tl_client *tl_node_admit (struct tl_node *node, char *why,
                                 size_t why_size);
void tl_node_leave (struct tl_node *node, struct tl_client *client);

/* Serve one request; called by any number of nbdkit's workers at once; blocks
 * until the rules allow an answer.  Any length; split inside.  0 or an errno
 * value of EIO, ENOSPC, ESHUTDOWN.
 */
int tl_node_read (struct tl_node *node, struct tl_client *client, void *bytes,
                  uint32_t length, uint64_t offset);
int tl_node_write (struct tl_node *node, struct tl_client *client,
                   const void *bytes, uint32_t length, uint64_t offset);
int tl_node_zero (struct tl_node *node, struct tl_client *client,
                  uint32_t length, uint64_t offset);
int tl_node_flush (struct tl_node *node, struct tl_client *client);

/* Walk the extents of a range: EXTENT is called for each run, in order, with
 * ALLOCATED, without a lock held.  What it is told is as certain as what a read
 * returns, so that this may wait as a read does.  0; -1 where EXTENT returned
 * -1 to stop; or an errno value, as of tl_node_read, where the node does not
 * serve.
 */
int tl_node_extents (struct tl_node *node, struct tl_client *client,
                     uint32_t length, uint64_t offset,
                     int (*extent) (void *opaque, uint64_t offset,
                                    uint64_t length, bool allocated),
                     void *opaque);

/* A snapshot for the export's description. */
void tl_node_status (struct tl_node *node, struct tl_status *status);

/* Check a numeric ADDRESS:PORT.  0.0.0.0 and [::] pass; tl_node_open refuses
 * them for peer=.  0, or -1 with one line in ERROR.
 */
int tl_address_check (const char *text, char *error, size_t error_size);

#endif
