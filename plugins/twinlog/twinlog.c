/* What nbdkit calls: nbdkit-twinlog-plugin(1).  Everything of substance is in
 * server/.
 */
#include "log.h"
#include "parameters.h"
#include "quit.h"

#include "core/frame.h"
#include "net/node.h"

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL

static struct tl_parameters parameters;
static struct tl_node *node; /* from get_ready to cleanup */

/* ---- Life cycle ---- */

static void
twinlog_load (void)
{
  static const struct tl_host host = {.absolute_path = nbdkit_absolute_path,
                                      .check_address = tl_address_check};

  tl_parameters_init (&parameters, &host);
}

static void
twinlog_unload (void)
{
  tl_parameters_clear (&parameters);
}

static int
twinlog_config (const char *key, const char *value)
{
  char error[1024];

  if (tl_parameters_set (&parameters, key, value, error, sizeof error) == -1) {
    nbdkit_error ("%s", error);
    return -1;
  }
  return 0;
}

static int
twinlog_config_complete (void)
{
  char error[1024];

  if (tl_parameters_check (&parameters, error, sizeof error) == -1) {
    nbdkit_error ("%s", error);
    return -1;
  }
  return 0;
}

#define twinlog_config_help                                                    \
  "[size=]SIZE        (required) Size of the volume, a multiple of 4096.\n"    \
  "name=VOLUME        (required) Name of the volume, the same on both "        \
  "nodes.\n"                                                                   \
  "node=NODE          (required) Name of this node.\n"                         \
  "listen=ADDRESS:PORT\n"                                                      \
  "                   (required) Where the other node connects to.\n"          \
  "peer=ADDRESS:PORT  (required) Where the other node listens.\n"              \
  "config=FILE        Read parameters from an INI file; those of the "         \
  "command\n"                                                                  \
  "                   line win.\n"                                             \
  "control=PATH       Control socket (/run/twinlog/VOLUME.ctl).\n"             \
  "state=PATH         State file (/var/lib/twinlog/VOLUME.state).\n"           \
  "store=PATH         Keep the RAM in a file, on tmpfs for example.\n"         \
  "lock=on|off        Lock the memory (on).\n"                                 \
  "flush=auto|on|off  Offer flush to clients (auto: where it is needed).\n"    \
  "on-partner-loss=error|arbiter|freeze|continue\n"                            \
  "                   What a primary does without its partner (arbiter\n"      \
  "                   where there is one, else error).\n"                      \
  "arbiter=COMMAND    The outside authority that orders views.\n"              \
  "deadline=SECONDS   When a waiting request fails, 0.2 to 300 (5).\n"         \
  "reads=confirmed|local\n"                                                    \
  "                   Whether a read of two members with an arbiter waits\n"   \
  "                   for the partner's word (confirmed).\n"                   \
  "auto-promote=on|off\n"                                                      \
  "                   Ask the arbiter for the primary role when the primary\n" \
  "                   has been away for the deadline (off).\n"                 \
  "resync-rate=RATE   Bytes a second that a resync sends at most (0: all).\n"  \
  "compress=none|lz4  Compress what the mirror sends where that pays "         \
  "(none).\n"                                                                  \
  "mptcp=on|off       Connect to the other node by several paths (off).\n"     \
  "notify=COMMAND     Run at each change of role, data state or link."

static void
twinlog_dump_plugin (void)
{
  printf ("twinlog_version=%s\n", TWINLOG_VERSION);
  printf ("twinlog_protocol_min=%u\n", TL_PROTOCOL_MIN);
  printf ("twinlog_protocol_max=%u\n", TL_PROTOCOL_MAX);
  printf ("twinlog_block=%u\n", TL_BLOCK);
  printf ("twinlog_policies=error arbiter freeze continue\n");
}

/* Errors are still seen here and the directory is still the user's; but no
 * thread that is started here would live on in the background.
 */
static int
twinlog_get_ready (void)
{
  const struct tl_node_config config = {.volume = parameters.volume,
                                        .node = parameters.node,
                                        .size = parameters.size,
                                        .listen = parameters.listen,
                                        .peer = parameters.peer,
                                        .control = parameters.control,
                                        .state = parameters.state,
                                        .store = parameters.store,
                                        .lock = parameters.lock,
                                        .policy = parameters.policy,
                                        .reads_local = parameters.reads_local,
                                        .auto_promote = parameters.auto_promote,
                                        .resync_rate = parameters.resync_rate,
                                        .compress = parameters.compress,
                                        .mptcp = parameters.mptcp,
                                        .arbiter = parameters.arbiter,
                                        .notify = parameters.notify,
                                        .deadline = parameters.deadline,
                                        .log = tl_log_line,
                                        .progress = tl_log_progress};
  char error[1024];

  tl_log_init (parameters.volume);
  if (tl_node_open (&node, &config, error, sizeof error) == -1) {
    node = NULL;
    nbdkit_error ("%s", error);
    return -1;
  }
  return 0;
}

static int
twinlog_after_fork (void)
{
  char error[1024];
  int code;

  tl_log_after_fork ();
  if (tl_node_start (node, error, sizeof error) == -1) {
    nbdkit_error ("%s", error);
    goto fail;
  }
  code = tl_quit_watch (node);
  if (code) {
    tl_node_stop (node);
    errno = code;
    nbdkit_error ("cannot start a thread: %m");
    goto fail;
  }
  return 0;

fail:
  tl_node_close (node);
  node = NULL;
  return -1;
}

static void
twinlog_cleanup (void)
{
  tl_quit_finish ();
  node = NULL;
}

/* ---- Clients ---- */

static const char *
describe (void)
{
  struct tl_status status;

  tl_node_status (node, &status);
  return nbdkit_printf_intern (
      "twinlog %s on node %s: %s, %s", parameters.volume, parameters.node,
      tl_role_name (status.role), tl_disk_name (status.disk));
}

static int
twinlog_list_exports (int readonly, int is_tls, struct nbdkit_exports *exports)
{
  const char *description = describe ();

  return description ? nbdkit_add_export (exports, "", description) : -1;
}

static const char *
twinlog_default_export (int readonly, int is_tls)
{
  return "";
}

static const char *
twinlog_export_description (void *handle)
{
  return describe ();
}

/* A client that asks for another volume by name must not get this one. */
static void *
twinlog_open (int readonly)
{
  const char *name = nbdkit_export_name ();
  struct tl_client *client;
  char why[256];

  if (name && name[0] && strcmp (name, parameters.volume) != 0) {
    nbdkit_error ("a client asked for the export \"%s\"; there are \"\" and "
                  "\"%s\"",
                  name, parameters.volume);
    return NULL;
  }
  client = tl_node_admit (node, why, sizeof why);
  if (!client)
    nbdkit_error ("client refused: %s", why);
  return client;
}

static void
twinlog_close (void *handle)
{
  tl_node_leave (node, handle);
}

static int64_t
twinlog_get_size (void *handle)
{
  return (int64_t)parameters.size;
}

static int
twinlog_block_size (void *handle, uint32_t *minimum, uint32_t *preferred,
                    uint32_t *maximum)
{
  *minimum = 1;
  *preferred = TL_BLOCK;
  *maximum = TL_PAYLOAD_MAX; /* one frame, one deadline */
  return 0;
}

static int
yes (void *handle)
{
  return 1;
}

static int
no (void *handle)
{
  return 0;
}

static int
twinlog_can_fua (void *handle)
{
  return NBDKIT_FUA_NATIVE;
}

static int
twinlog_can_cache (void *handle)
{
  return NBDKIT_CACHE_NATIVE;
}

/* A completed write is on all members.  Where no flush is offered, none is
 * sent, which saves a round trip; so `auto` offers none.
 */
static int
twinlog_can_flush (void *handle)
{
  return parameters.flush == TL_FLUSH_ON;
}

/* ---- Requests ---- */

/* The log has a line for what made requests fail, once; not for each. */
static int
result (int code)
{
  if (code == 0)
    return 0;
  nbdkit_set_error (code);
  return -1;
}

static int
twinlog_pread (void *handle, void *buffer, uint32_t length, uint64_t offset,
               uint32_t flags)
{
  return result (tl_node_read (node, handle, buffer, length, offset));
}

/* Every write is on all members before it completes: FUA adds nothing. */
static int
twinlog_pwrite (void *handle, const void *buffer, uint32_t length,
                uint64_t offset, uint32_t flags)
{
  return result (tl_node_write (node, handle, buffer, length, offset));
}

/* Zeroing gives the memory back.  Who forbids that gets zeroes written by
 * nbdkit, or where it was to be fast, is told that it would not be.
 */
static int
twinlog_zero (void *handle, uint32_t length, uint64_t offset, uint32_t flags)
{
  if (!(flags & NBDKIT_FLAG_MAY_TRIM))
    return result (EOPNOTSUPP);
  return result (tl_node_zero (node, handle, length, offset));
}

static int
twinlog_trim (void *handle, uint32_t length, uint64_t offset, uint32_t flags)
{
  return result (tl_node_zero (node, handle, length, offset));
}

static int
twinlog_flush (void *handle, uint32_t flags)
{
  return result (tl_node_flush (node, handle));
}

static int
twinlog_cache (void *handle, uint32_t length, uint64_t offset, uint32_t flags)
{
  return 0;
}

static int
add_extent (void *opaque, uint64_t offset, uint64_t length, bool allocated)
{
  return nbdkit_add_extent (
      opaque, offset, length,
      allocated ? 0 : NBDKIT_EXTENT_HOLE | NBDKIT_EXTENT_ZERO);
}

static int
twinlog_extents (void *handle, uint32_t length, uint64_t offset, uint32_t flags,
                 struct nbdkit_extents *extents)
{
  int code =
      tl_node_extents (node, handle, length, offset, add_extent, extents);

  return code == -1 ? -1 : result (code);
}

static struct nbdkit_plugin plugin = {
    .name = "twinlog",
    .longname = "twinlog mirrored RAM device",
    .version = TWINLOG_VERSION,
    .description = "a block device kept in the RAM of two machines at once",
    .load = twinlog_load,
    .unload = twinlog_unload,
    .config = twinlog_config,
    .config_complete = twinlog_config_complete,
    .config_help = twinlog_config_help,
    .magic_config_key = "size",
    .dump_plugin = twinlog_dump_plugin,
    .get_ready = twinlog_get_ready,
    .after_fork = twinlog_after_fork,
    .cleanup = twinlog_cleanup,
    .list_exports = twinlog_list_exports,
    .default_export = twinlog_default_export,
    .export_description = twinlog_export_description,
    .open = twinlog_open,
    .close = twinlog_close,
    .get_size = twinlog_get_size,
    .block_size = twinlog_block_size,
    .can_multi_conn = yes,
    .can_extents = yes,
    .can_trim = yes,
    .can_zero = yes,
    .can_fast_zero = yes,
    .is_rotational = no,
    .can_fua = twinlog_can_fua,
    .can_cache = twinlog_can_cache,
    .can_flush = twinlog_can_flush,
    .pread = twinlog_pread,
    .pwrite = twinlog_pwrite,
    .zero = twinlog_zero,
    .trim = twinlog_trim,
    .flush = twinlog_flush,
    .cache = twinlog_cache,
    .extents = twinlog_extents,
};

NBDKIT_REGISTER_PLUGIN (plugin)
