#include "net/status_json.h"
#include "state/state.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A string whatever its bytes: what a peer or a command said need not be
 * UTF-8.
 */
static json_t *
string (const char *text)
{
  json_t *value = json_string (text);
  char clean[1024];
  size_t i;

  if (value)
    return value;
  for (i = 0; text[i] && i < sizeof clean - 1; i++)
    clean[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
  clean[i] = 0;
  return json_string (clean);
}

static json_t *
seconds_since (uint64_t then, uint64_t now)
{
  return json_real (now > then ? (double)(now - then) / 1e6 : 0);
}

static json_t *
view_json (const struct tl_view *view)
{
  json_t *members = json_array ();
  char id[17];

  for (unsigned i = 0; i < view->n_members; i++)
    json_array_append_new (members, string (view->members[i]));
  /* As text: JSON's numbers have 53 bits. */
  snprintf (id, sizeof id, "%016llx", (unsigned long long)view->id);
  return json_pack ("{s:I, s:s, s:o, s:o}", "number", (json_int_t)view->number,
                    "id", id, "primary", string (view->primary), "members",
                    members);
}

static json_t *
latency_json (const struct tl_latency *latency)
{
  return json_pack ("{s:I, s:I, s:I}", "p50",
                    (json_int_t)tl_latency_percentile (latency, 500), "p99",
                    (json_int_t)tl_latency_percentile (latency, 990), "p999",
                    (json_int_t)tl_latency_percentile (latency, 999));
}

static json_t *
counters_json (const struct tl_status *status)
{
  return json_pack (
      "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "reads",
      (json_int_t)status->reads, "writes", (json_int_t)status->writes, "zeroes",
      (json_int_t)status->zeroes, "flushes", (json_int_t)status->flushes,
      "failed", (json_int_t)status->failed, "bytes-read",
      (json_int_t)status->bytes_read, "bytes-written",
      (json_int_t)status->bytes_written, "resyncs", (json_int_t)status->resyncs,
      "resyncs-full", (json_int_t)status->resyncs_full, "promotions",
      (json_int_t)status->promotions);
}

/* From what was copied so far and the time that took; null where no resync is
 * under way or nothing was copied yet.
 */
static json_t *
estimate (const struct tl_status *status, uint64_t now)
{
  double elapsed, left;

  if (!status->resync_started || !status->resync_done ||
      now <= status->resync_started)
    return json_null ();
  elapsed = (double)(now - status->resync_started) / 1e6;
  left = status->resync_total > status->resync_done
             ? (double)(status->resync_total - status->resync_done)
             : 0;
  return json_real (elapsed * left / (double)status->resync_done);
}

static double
percent (uint64_t out_of_sync, uint64_t size)
{
  if (!out_of_sync)
    return 100;
  if (out_of_sync >= size)
    return 0;
  return 100 * (1 - (double)out_of_sync / (double)size);
}

static void
set_node (json_t *node, const struct tl_status *status,
          const struct tl_status_more *more)
{
  char uuid[37];

  tl_uuid_format (&status->uuid, uuid);
  json_object_set_new (node, "name", string (more->volume));
  json_object_set_new (node, "node", string (more->node));
  json_object_set_new (node, "size", json_integer ((json_int_t)more->size));
  json_object_set_new (node, "uuid", string (uuid));
  json_object_set_new (node, "role", string (tl_role_name (status->role)));
  json_object_set_new (node, "disk-state",
                       string (tl_disk_name (status->disk)));
  json_object_set_new (node, "connection-state",
                       string (tl_link_name (status->link)));
  json_object_set_new (node, "peer-node", string (status->peer));
  json_object_set_new (node, "peer-role",
                       string (status->peer_known
                                   ? tl_role_name (status->peer_role)
                                   : "Unknown"));
  json_object_set_new (node, "peer-disk-state",
                       string (status->peer_known
                                   ? tl_disk_name (status->peer_disk)
                                   : "DUnknown"));
  json_object_set_new (node, "view", view_json (&status->view));
}

static void
set_health (json_t *node, const struct tl_status *status,
            const struct tl_status_more *more)
{
  json_object_set_new (node, "copies", json_integer (status->copies));
  json_object_set_new (node, "suspended", json_boolean (status->suspended));
  json_object_set_new (node, "suspended-reason",
                       string (status->suspended_reason));
  json_object_set_new (node, "may-promote", json_boolean (status->may_promote));
  json_object_set_new (node, "may-promote-reason",
                       string (status->may_promote_reason));
  json_object_set_new (node, "out-of-sync",
                       json_integer ((json_int_t)status->out_of_sync));
  json_object_set_new (node, "percent-in-sync",
                       json_real (percent (status->out_of_sync, more->size)));
  json_object_set_new (node, "estimated-seconds-to-finish",
                       estimate (status, more->now));
  json_object_set_new (node, "ap-in-flight", json_integer (status->in_flight));
  json_object_set_new (node, "seconds-since-change",
                       seconds_since (status->changed, more->now));
  json_object_set_new (node, "seconds-since-peer",
                       status->heard ? seconds_since (status->heard, more->now)
                                     : json_null ());
  json_object_set_new (node, "disconnect-reason",
                       string (status->disconnect_reason));
  json_object_set_new (node, "trouble", string (status->trouble));
}

static json_t *
verify_json (const struct tl_status *status, uint64_t now)
{
  json_t *verify = json_object ();

  json_object_set_new (verify, "active", json_boolean (status->verify_active));
  json_object_set_new (verify, "interrupted",
                       json_boolean (status->verify_interrupted));
  json_object_set_new (verify, "checked-bytes",
                       json_integer ((json_int_t)status->verify_checked));
  json_object_set_new (verify, "different-bytes",
                       json_integer ((json_int_t)status->verify_different));
  json_object_set_new (verify, "seconds-since-end",
                       status->verify_ended
                           ? seconds_since (status->verify_ended, now)
                           : json_null ());
  return verify;
}

static json_t *
compress_json (const struct tl_status_more *more)
{
  return json_pack ("{s:b, s:I, s:I}", "active", (int)more->compress,
                    "bytes-before", (json_int_t)more->compressed_from,
                    "bytes-after", (json_int_t)more->compressed_to);
}

char *
tl_status_json (const struct tl_status *status,
                const struct tl_status_more *more)
{
  json_t *node = json_object ();
  json_t *answer;
  char *line;

  set_node (node, status, more);
  set_health (node, status, more);
  json_object_set_new (node, "policy", string (tl_policy_name (more->policy)));
  json_object_set_new (node, "arbiter", json_boolean (more->arbiter));
  json_object_set_new (node, "deadline-seconds",
                       json_real ((double)more->deadline / 1e6));
  json_object_set_new (node, "clients", json_integer (more->clients));
  json_object_set_new (node, "resident-bytes",
                       json_integer ((json_int_t)more->resident));
  json_object_set_new (node, "counters", counters_json (status));
  json_object_set_new (node, "paths", json_integer (more->paths));
  json_object_set_new (node, "compress", compress_json (more));
  json_object_set_new (node, "latency-us",
                       json_pack ("{s:o, s:o}", "write",
                                  latency_json (more->write), "read",
                                  latency_json (more->read)));
  json_object_set_new (node, "verify", verify_json (status, more->now));
  answer = json_pack ("{s:i, s:o}", "status", TL_DONE, "node", node);
  line = json_dumps (answer, JSON_COMPACT | JSON_REAL_PRECISION (6));
  json_decref (answer);
  return line;
}

char *
tl_answer_json (int status, const char *text)
{
  json_t *answer =
      json_pack ("{s:i, s:o}", "status", status, "text", string (text));
  char *line = json_dumps (answer, JSON_COMPACT);

  json_decref (answer);
  return line;
}
