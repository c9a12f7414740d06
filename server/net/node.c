/* The life of a node: open before nbdkit forks, start after it, stop when the
 * process is to end, close when nobody uses it any more.
 */
#include "net/net.h"
#include "net/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#endif

/* How long tl_node_stop waits for the loop to run out, microseconds. */
#define STOP_WAIT 900000

/* ---- Open ---- */

/* What an open that fails has to take back. */
struct made {
  bool state_directory, control_directory;
};

static int
parse_address (const char *key, const char *text, struct tl_address *address,
               char *error, size_t error_size)
{
  char why[200];

  if (tl_address_parse (text, address, why, sizeof why) == 0)
    return 0;
  snprintf (error, error_size, "%s: %s", key, why);
  return -1;
}

static int
open_addresses (struct tl_node *node, const struct tl_node_config *config,
                char *error, size_t error_size)
{
  const struct tl_address *here = &node->listen_address,
                          *there = &node->peer_address;

  if (parse_address ("listen", config->listen, &node->listen_address, error,
                     error_size) == -1 ||
      parse_address ("peer", config->peer, &node->peer_address, error,
                     error_size) == -1)
    return -1;
  if (tl_address_wildcard (there)) {
    snprintf (error, error_size, "peer=%s: not the address of one machine",
              config->peer);
    return -1;
  }
  if (!tl_address_wildcard (here) &&
      here->storage.ss_family != there->storage.ss_family) {
    snprintf (error, error_size,
              "listen=%s and peer=%s: one is IPv4, the other IPv6; the mirror "
              "connection needs the same on both sides",
              config->listen, config->peer);
    return -1;
  }
  if (tl_address_same_host (here, there) &&
      tl_address_port (here) == tl_address_port (there)) {
    snprintf (error, error_size,
              "peer=%s is the address of listen=: name that of the other node",
              config->peer);
    return -1;
  }
  return 0;
}

static int
copy_strings (struct tl_node *node, const struct tl_node_config *config)
{
  snprintf (node->volume, sizeof node->volume, "%s", config->volume);
  snprintf (node->name, sizeof node->name, "%s", config->node);
  node->state = tl_path_absolute (config->state);
  node->control = tl_path_absolute (config->control);
  if (config->arbiter)
    node->arbiter_command = strdup (config->arbiter);
  if (config->notify)
    node->notify_command = strdup (config->notify);
  return node->state && node->control &&
                 (!config->arbiter || node->arbiter_command) &&
                 (!config->notify || node->notify_command)
             ? 0
             : -1;
}

/* Make the directories, take the state file and read it.  1 where there is
 * none, 0 where RECORD was read.
 */
static int
open_state (struct tl_node *node, struct made *made, struct tl_record *record,
            char *error, size_t error_size)
{
  char why[400];
  int r = tl_path_make_parent ("state", node->state, error, error_size);

  if (r == -1)
    return -1;
  made->state_directory = r == 1;
  node->state_lock = tl_state_lock (node->state, error, error_size);
  if (node->state_lock == -1)
    return -1;
  r = tl_state_load (node->state, record, error, error_size);
  if (r == -1)
    return -1;
  if (r == 0 && !tl_record_check (record, node->volume, node->name, node->size,
                                  why, sizeof why)) {
    snprintf (error, error_size, "state=%s: %s", node->state, why);
    return -1;
  }
  if (tl_path_check_writable ("state", node->state, error, error_size) == -1)
    return -1;
  return r;
}

static int
open_sockets (struct tl_node *node, struct made *made, char *error,
              size_t error_size)
{
  int r;

  node->listen_fd =
      tl_listen_open (&node->listen_address, node->mptcp, error, error_size);
  if (node->listen_fd == -1)
    return -1;
  r = tl_path_make_parent ("control", node->control, error, error_size);
  if (r == -1)
    return -1;
  made->control_directory = r == 1;
  node->control_fd = tl_control_bind (node, error, error_size);
  return node->control_fd == -1 ? -1 : 0;
}

static uint64_t
block_sum (void *store, uint64_t block)
{
  unsigned char bytes[TL_BLOCK];

  tl_store_read (store, block * TL_BLOCK, TL_BLOCK, bytes);
  return tl_payload_checksum (bytes, TL_BLOCK);
}

static int
open_core (struct tl_node *node, const struct tl_node_config *config,
           const struct tl_record *record, char *error, size_t error_size)
{
  struct tl_store_config store_config = {.size = config->size,
                                         .path = config->store,
                                         .lock = config->lock,
                                         .progress = config->progress,
                                         .opaque = config->opaque};
  struct tl_core_config core_config = {.volume = node->volume,
                                       .node = node->name,
                                       .size = node->size,
                                       .arbiter = config->arbiter != NULL,
                                       .policy = config->policy,
                                       .reads_local = config->reads_local,
                                       .auto_promote = config->auto_promote,
                                       .resync_rate = config->resync_rate,
                                       .deadline = config->deadline};

  if (tl_store_open (&node->store, &store_config, error, error_size) == -1)
    return -1;
  core_config.kept = tl_store_kept (node->store, &core_config.kept_map);
  while (!core_config.incarnation)
    tl_random_bytes (&core_config.incarnation, sizeof core_config.incarnation);
  core_config.allocated = tl_store_allocated (node->store);
  core_config.sum = block_sum;
  core_config.sum_opaque = node->store;
  node->core = tl_core_new (&core_config, record);
  if (!node->core || tl_pools_init (node) == -1) {
    snprintf (error, error_size, "no memory for the node");
    return -1;
  }
  return 0;
}

static struct tl_node *
make_node (const struct tl_node_config *config)
{
  struct tl_node *node = calloc (1, sizeof *node);
  pthread_condattr_t attributes;

  if (!node)
    return NULL;
  node->state_lock = node->listen_fd = node->control_fd = -1;
  node->size = config->size;
  node->deadline = config->deadline;
  node->policy = config->policy;
  node->compress = config->compress;
  node->mptcp = config->mptcp;
  node->log = config->log;
  node->opaque = config->opaque;
  node->wake = node->armed = UINT64_MAX;
  pthread_mutex_init (&node->lock, NULL);
  pthread_mutex_init (&node->arbiter.child_lock, NULL);
  pthread_condattr_init (&attributes);
  pthread_condattr_setclock (&attributes, CLOCK_MONOTONIC);
  pthread_cond_init (&node->changed, &attributes);
  pthread_condattr_destroy (&attributes);
  return node;
}

static void
free_node (struct tl_node *node)
{
  tl_control_unlink (node);
  if (node->listen_fd != -1)
    close (node->listen_fd);
  if (node->control_fd != -1)
    close (node->control_fd);
  tl_core_free (node->core);
  if (node->store)
    tl_store_close (node->store);
  if (node->state_lock != -1)
    close (node->state_lock);
  tl_pools_free (node);
  free (node->state);
  free (node->control);
  free (node->arbiter_command);
  free (node->notify_command);
  pthread_cond_destroy (&node->changed);
  pthread_mutex_destroy (&node->arbiter.child_lock);
  pthread_mutex_destroy (&node->lock);
  free (node);
}

int
tl_node_open (struct tl_node **result, const struct tl_node_config *config,
              char *error, size_t error_size)
{
  struct tl_node *node = make_node (config);
  struct made made = {false, false};
  struct tl_record record;
  int r;

  if (!node || copy_strings (node, config) == -1) {
    snprintf (error, error_size, "no memory for the node");
    if (node)
      free_node (node);
    return -1;
  }
  r = open_addresses (node, config, error, error_size);
  if (r == 0)
    r = open_state (node, &made, &record, error, error_size);
  if (r != -1) {
    const struct tl_record *loaded = r == 0 ? &record : NULL;

    /* The store comes last: filling it takes time. */
    r = open_sockets (node, &made, error, error_size);
    if (r == 0)
      r = open_core (node, config, loaded, error, error_size);
  }
  if (r == -1) {
    tl_control_unlink (node);
    if (made.control_directory)
      tl_path_remove_parent (node->control);
    if (made.state_directory)
      tl_path_remove_parent (node->state);
    free_node (node);
    return -1;
  }
  *result = node;
  return 0;
}

/* ---- Start ---- */

/* Under memory pressure the kernel may wait for this very device: it is not to
 * wait for memory of ours, nor to end us to find some.  Asked for; where the
 * system refuses that is said once.
 */
static void
ask_for_privileges (struct tl_node *node)
{
  bool flusher = prctl (PR_SET_IO_FLUSHER, 1, 0, 0, 0) == 0;
  int fd = open ("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  bool spared = fd != -1 && write (fd, "-1000", 5) == 5;

  if (fd != -1)
    close (fd);
  if (flusher && spared)
    return;
  tl_lock (node);
  tl_log_add (node, false,
              "warning: the system refused %s%s%s (CAP_SYS_RESOURCE is "
              "needed): under memory pressure this node may stall or be ended",
              flusher ? "" : "PR_SET_IO_FLUSHER",
              flusher || spared ? "" : " and ",
              spared ? "" : "oom_score_adj -1000");
  tl_unlock (node);
}

/* An ignored SIGCHLD, inherited from whoever started the process, would lose
 * the exit status of the arbiter and of notify's command.
 */
static void
restore_sigchld (void)
{
  struct sigaction action;

  if (sigaction (SIGCHLD, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
    signal (SIGCHLD, SIG_DFL);
}

static int
start_thread (struct tl_node *node, char *error, size_t error_size)
{
  sigset_t all, before;
  int r;

  /* Signals are nbdkit's affair; libuv's pool inherits this too. */
  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, &before);
  r = pthread_create (&node->thread, NULL, tl_loop_main, node);
  pthread_sigmask (SIG_SETMASK, &before, NULL);
  if (r != 0) {
    snprintf (error, error_size, "cannot start the loop thread: %s",
              strerror (r));
    return -1;
  }
  node->thread_running = true;
  pthread_setname_np (node->thread, "twinlog");
  return 0;
}

int
tl_node_start (struct tl_node *node, char *error, size_t error_size)
{
  struct tl_event event = {.type = TL_EV_START};

  if (tl_store_relock (node->store, error, error_size) == -1 ||
      tl_loop_init (node, error, error_size) == -1)
    return -1;
  node->loop_ready = true;
  if (node->arbiter_command || node->notify_command)
    restore_sigchld ();
  ask_for_privileges (node);
  tl_lock (node);
  node->started = true;
  tl_core_status (node->core, tl_now (), &node->notify.told);
  tl_step (node, &event);
  tl_leave (node);
  return start_thread (node, error, error_size);
}

/* ---- Stop and close ---- */

void
tl_node_stop (struct tl_node *node)
{
  struct tl_event event = {.type = TL_EV_STOP};
  uint64_t until = tl_now () + STOP_WAIT;
  struct timespec end = {.tv_sec = (time_t)(until / 1000000),
                         .tv_nsec = (long)(until % 1000000) * 1000};

  tl_lock (node);
  if (!node->over) {
    if (node->started)
      tl_step (node, &event);
    node->over = true;
    tl_control_unlink (node);
    pthread_cond_broadcast (&node->changed);
    tl_poke (node);
  }
  tl_leave (node);
  tl_arbiter_end (node);

  tl_lock (node);
  while (node->thread_running && !node->loop_ended &&
         pthread_cond_timedwait (&node->changed, &node->lock, &end) == 0)
    ;
  tl_unlock (node);
}

void
tl_node_close (struct tl_node *node)
{
  if (node->loop_ready) {
    tl_node_stop (node);
    if (node->thread_running)
      pthread_join (node->thread, NULL);
    else
      tl_loop_main (node); /* the thread could not be started */
  }
  tl_log_flush (node);
  free_node (node);
}
