#include "watch.h"
#include "arguments.h"
#include "commands.h"
#include "control.h"
#include "show.h"

#include "core/core.h"

#include <poll.h>
#include <string.h>
#include <time.h>

#define INTERVAL 200 /* milliseconds between questions */

/* What makes a new entry.  Ages, counters and the like change all the time. */
static const char *const watched[] = {
    "role",        "disk-state",       "connection-state",
    "peer-node",   "peer-role",        "peer-disk-state",
    "view",        "copies",           "suspended",
    "may-promote", "suspended-reason", "disconnect-reason",
    "trouble",     "clients",
};

json_t *
watch_facts (const json_t *node)
{
  json_t *facts = json_object ();
  const json_t *percent = json_object_get (node, "percent-in-sync");

  for (size_t i = 0; i < sizeof watched / sizeof watched[0]; i++)
    json_object_set (facts, watched[i], json_object_get (node, watched[i]));
  /* A resync is told in steps of ten per cent. */
  json_object_set_new (
      facts, "tenth",
      json_integer ((json_int_t)json_number_value (percent) / 10));
  return facts;
}

static void
stamp (FILE *stream)
{
  struct timespec now;
  struct tm local;
  char text[32];

  clock_gettime (CLOCK_REALTIME, &now);
  localtime_r (&now.tv_sec, &local);
  strftime (text, sizeof text, "%F %T", &local);
  fprintf (stream, "-- %s.%03ld\n", text, now.tv_nsec / 1000000);
}

static void
print_node (const struct arguments *arguments, const json_t *node)
{
  if (arguments->given[OPTION_JSON]) {
    json_dumpf (node, stdout, JSON_COMPACT | JSON_REAL_PRECISION (12));
    putchar ('\n');
    return;
  }
  stamp (stdout);
  show_status (node, stdout);
}

int
watch_status (const struct arguments *arguments)
{
  json_t *node, *facts, *last = NULL;
  char error[1024], said[1024] = "";
  int status;

  for (;;) {
    status = command_ask_status (arguments, CONTROL_ASK_TIMEOUT, &node, error,
                                 sizeof error);
    if (status == TL_USAGE)
      break; /* another node, or none is named: that does not mend itself */
    if (status == TL_DONE) {
      facts = watch_facts (node);
      if (!last || !json_equal (facts, last))
        print_node (arguments, node);
      json_decref (last);
      last = facts;
      json_decref (node);
      said[0] = '\0';
    } else if (strcmp (said, error) != 0) {
      snprintf (said, sizeof said, "%s", error);
      if (!arguments->given[OPTION_JSON])
        stamp (stdout);
      fflush (stdout);
      fprintf (stderr, "twinlog: %s\n", error);
      json_decref (last);
      last = NULL;
    }
    if (fflush (stdout) != 0) {
      perror ("twinlog: cannot write");
      status = TL_FAILED;
      snprintf (error, sizeof error, "%s", "");
      break;
    }
    poll (NULL, 0, INTERVAL);
  }
  json_decref (last);
  if (error[0])
    fprintf (stderr, "twinlog: %s\n", error);
  return status;
}
