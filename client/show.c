#include "show.h"
#include "commands.h"
#include "control.h"

#include <stdbool.h>
#include <string.h>

/* The text at KEY as it may be printed; NULL where there is none. */
static const char *
text_at (const json_t *node, const char *key, char *buffer, size_t size)
{
  const char *text = json_string_value (json_object_get (node, key));

  return text && text[0] ? control_clean (text, buffer, size) : NULL;
}

static double
number_at (const json_t *node, const char *key)
{
  return json_number_value (json_object_get (node, key));
}

static const char *
duration (double seconds, char *buffer, size_t size)
{
  if (seconds < 10)
    snprintf (buffer, size, "%.1f s", seconds);
  else if (seconds < 120)
    snprintf (buffer, size, "%.0f s", seconds);
  else if (seconds < 7200)
    snprintf (buffer, size, "%.0f min", seconds / 60);
  else if (seconds < 172800)
    snprintf (buffer, size, "%.0f h", seconds / 3600);
  else
    snprintf (buffer, size, "%.0f days", seconds / 86400);
  return buffer;
}

static const char *
bytes (double n, char *buffer, size_t size)
{
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  unsigned unit = 0;

  for (; n >= 1024 && unit < 5; unit++)
    n /= 1024;
  snprintf (buffer, size, n < 10 && unit ? "%.1f%s" : "%.0f%s", n, units[unit]);
  return buffer;
}

static void
show_view (const json_t *node, FILE *stream)
{
  const json_t *view = json_object_get (node, "view");
  const json_t *members = json_object_get (view, "members");
  char buffer[64];
  const char *primary = text_at (view, "primary", buffer, sizeof buffer);

  if (number_at (view, "number") == 0) {
    fprintf (stream, " view:none (not created yet)");
    return;
  }
  fprintf (stream, " view:%.0f (primary %s, %s", number_at (view, "number"),
           primary ? primary : "?",
           json_array_size (members) == 1 ? "member" : "members");
  for (size_t i = 0; i < json_array_size (members); i++) {
    const char *member = json_string_value (json_array_get (members, i));

    fprintf (stream, " %s",
             member ? control_clean (member, buffer, sizeof buffer) : "?");
  }
  fputc (')', stream);
}

/* G2: where one copy is all there is, that must not be overlooked. */
static void
show_copies (const json_t *node, FILE *stream)
{
  double copies = number_at (node, "copies");
  const char *disk = command_word (node, "disk-state");

  if (number_at (json_object_get (node, "view"), "number") == 0 || copies >= 2)
    return;
  if (copies == 0)
    fprintf (stream, "  NO COPY IN REACH: no node that this one can see holds "
                     "every acknowledged write\n");
  else if (strcmp (disk, "UpToDate") == 0)
    fprintf (stream, "  ONE COPY ONLY: what is acknowledged is lost if this "
                     "node fails now\n");
  else if (strcmp (disk, "Consistent") == 0)
    fprintf (stream, "  ONE COPY IN REACH, this node's: the other node may "
                     "have newer data\n");
  else
    fprintf (stream, "  ONE COPY ONLY: what is acknowledged is lost if the "
                     "other node fails now\n");
}

static void
show_peer (const json_t *node, FILE *stream)
{
  char name[64], one[32], two[32], three[32];
  const char *peer = text_at (node, "peer-node", name, sizeof name);
  const char *connection = command_word (node, "connection-state");

  fprintf (stream, "  %s connection:%s", peer ? peer : "peer",
           control_clean (connection, one, sizeof one));
  if (strcmp (command_word (node, "peer-role"), "Unknown") != 0)
    fprintf (stream, " role:%s disk:%s",
             control_clean (command_word (node, "peer-role"), two, sizeof two),
             control_clean (command_word (node, "peer-disk-state"), three,
                            sizeof three));
  fputc ('\n', stream);
  if (strncmp (connection, "Sync", 4) == 0) {
    fprintf (stream, "    resync done:%.2f%% left:%s",
             number_at (node, "percent-in-sync"),
             bytes (number_at (node, "out-of-sync"), one, sizeof one));
    if (json_is_number (json_object_get (node, "estimated-seconds-to-finish")))
      fprintf (stream, " eta:%s",
               duration (number_at (node, "estimated-seconds-to-finish"), two,
                         sizeof two));
    fputc ('\n', stream);
  }
}

static void
show_latency (const json_t *node, const char *what, FILE *stream)
{
  const json_t *latency =
      json_object_get (json_object_get (node, "latency-us"), what);

  if (number_at (latency, "p50") > 0)
    fprintf (stream, " %s-p50:%.0fus %s-p99:%.0fus", what,
             number_at (latency, "p50"), what, number_at (latency, "p99"));
}

static void
show_clients (const json_t *node, FILE *stream)
{
  const json_t *counters = json_object_get (node, "counters");

  fprintf (stream, "  clients:%.0f in-flight:%.0f", number_at (node, "clients"),
           number_at (node, "ap-in-flight"));
  if (number_at (counters, "failed") > 0)
    fprintf (stream, " failed:%.0f", number_at (counters, "failed"));
  show_latency (node, "write", stream);
  show_latency (node, "read", stream);
  fputc ('\n', stream);
}

/* Waiting or not, promotable or not, and why. */
static void
show_reasons (const json_t *node, bool primary, FILE *stream)
{
  char buffer[512];
  const char *reason;

  if (json_is_true (json_object_get (node, "suspended"))) {
    reason = text_at (node, "suspended-reason", buffer, sizeof buffer);
    fprintf (stream, "  suspended: %s\n", reason ? reason : "yes");
  }
  if (!primary) {
    bool may = json_is_true (json_object_get (node, "may-promote"));

    reason = text_at (node, "may-promote-reason", buffer, sizeof buffer);
    fprintf (stream, "  may-promote:%s", may ? "yes" : "no");
    if (reason)
      fprintf (stream, " (%s)", reason);
    fputc ('\n', stream);
  }
  reason = text_at (node, "trouble", buffer, sizeof buffer);
  if (reason)
    fprintf (stream, "  trouble: %s\n", reason);
}

void
show_status (const json_t *node, FILE *stream)
{
  bool primary = strcmp (command_word (node, "role"), "Primary") == 0;
  char one[512], two[64];
  const char *reason;

  fprintf (stream, "%s", control_clean (command_word (node, "name"), one, 64));
  fprintf (stream, " node:%s",
           control_clean (command_word (node, "node"), one, 64));
  fprintf (stream, " role:%s size:%s\n",
           control_clean (command_word (node, "role"), one, 64),
           bytes (number_at (node, "size"), two, sizeof two));
  fprintf (stream, "  disk:%s copies:%.0f",
           control_clean (command_word (node, "disk-state"), one, 64),
           number_at (node, "copies"));
  show_view (node, stream);
  fputc ('\n', stream);
  show_copies (node, stream);
  show_peer (node, stream);
  if (primary)
    show_clients (node, stream);
  show_reasons (node, primary, stream);
  fprintf (stream, "  last change %s ago",
           duration (number_at (node, "seconds-since-change"), one, 64));
  if (json_is_number (json_object_get (node, "seconds-since-peer")))
    fprintf (stream, ", last word from the peer %s ago",
             duration (number_at (node, "seconds-since-peer"), one, 64));
  fputc ('\n', stream);
  reason = text_at (node, "disconnect-reason", one, sizeof one);
  if (reason)
    fprintf (stream, "  last disconnect: %s\n", reason);
}
