#include "verify.h"
#include "arguments.h"
#include "commands.h"
#include "control.h"

#include "core/core.h"

#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#define INTERVAL 100 /* milliseconds between questions */

static json_int_t
number (const json_t *node, const char *key)
{
  return json_integer_value (
      json_object_get (json_object_get (node, "verify"), key));
}

static bool
truth (const json_t *node, const char *key)
{
  return json_is_true (json_object_get (json_object_get (node, "verify"), key));
}

static void
progress (const json_t *node)
{
  double size = json_number_value (json_object_get (node, "size"));

  if (isatty (STDERR_FILENO) && size > 0)
    fprintf (stderr, "\rcompared %.1f%%, %lld bytes differ ",
             100 * (double)number (node, "checked-bytes") / size,
             (long long)number (node, "different-bytes"));
}

/* What the verify that has ended found. */
static int
conclude (const json_t *node)
{
  json_int_t different = number (node, "different-bytes");

  if (isatty (STDERR_FILENO))
    fputc ('\n', stderr);
  if (truth (node, "interrupted")) {
    fprintf (stderr,
             "twinlog: interrupted after %lld bytes: the connection of the "
             "nodes ended; run it again\n",
             (long long)number (node, "checked-bytes"));
    return TL_FAILED;
  }
  printf ("compared %lld bytes, %lld differ%s\n",
          (long long)number (node, "checked-bytes"), (long long)different,
          different ? "ed and were copied again" : "");
  if (fflush (stdout) != 0) {
    perror ("twinlog: cannot write");
    return TL_FAILED;
  }
  return different ? TL_FAILED : TL_DONE;
}

int
command_verify (const struct arguments *arguments)
{
  char error[1024];
  json_t *node;
  int status = command_plain (arguments);

  while (status == TL_DONE) {
    status = command_ask_status (arguments, CONTROL_ASK_TIMEOUT, &node, error,
                                 sizeof error);
    if (status != TL_DONE) {
      fprintf (stderr, "twinlog: %s\n", error);
      break;
    }
    if (!truth (node, "active")) {
      status = conclude (node);
      json_decref (node);
      break;
    }
    progress (node);
    json_decref (node);
    poll (NULL, 0, INTERVAL);
  }
  return status;
}
