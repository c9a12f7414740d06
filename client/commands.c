#include "commands.h"
#include "arguments.h"
#include "control.h"
#include "show.h"
#include "watch.h"

#include "core/core.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *
command_word (const json_t *node, const char *key)
{
  const char *text = json_string_value (json_object_get (node, key));

  return text ? text : "?";
}

/* Send REQUEST, which is used up.  The answer's status is what is returned, and
 * its text is in ERROR where that is not 0.
 */
static int
ask (const struct arguments *arguments, json_t *request, unsigned timeout,
     json_t **answer, char *error, size_t error_size)
{
  char path[CONTROL_PATH_SIZE];
  const char *text;
  int status;

  *answer = NULL;
  status = control_find (CONTROL_DIRECTORY, arguments->value[OPTION_CONTROL],
                         arguments->volume, path, error, error_size);
  if (status == TL_DONE)
    status = control_ask (path, request, timeout, answer, error, error_size);
  json_decref (request);
  if (status != TL_DONE)
    return status;
  status = (int)json_integer_value (json_object_get (*answer, "status"));
  if (status != TL_DONE) {
    text = json_string_value (json_object_get (*answer, "text"));
    control_clean (text ? text : "the node refused and did not say why", error,
                   error_size);
    json_decref (*answer);
    *answer = NULL;
  }
  return status;
}

int
command_ask_status (const struct arguments *arguments, unsigned timeout,
                    json_t **node, char *error, size_t error_size)
{
  json_t *answer;
  const char *name;
  int status;

  *node = NULL;
  status = ask (arguments, json_pack ("{s:s}", "command", "status"), timeout,
                &answer, error, error_size);
  if (status != TL_DONE)
    return status;
  *node = json_incref (json_object_get (answer, "node"));
  json_decref (answer);
  name = json_string_value (json_object_get (*node, "name"));
  if (!name) {
    snprintf (error, error_size,
              "the node's answer is not understood; is it a node of twinlog, "
              "of this version?");
    status = TL_FAILED;
  } else if (arguments->volume && strcmp (arguments->volume, name) != 0) {
    char clean[TL_NAME_SIZE];

    snprintf (error, error_size, "the node at %s has the volume %s, not %s",
              arguments->given[OPTION_CONTROL]
                  ? arguments->value[OPTION_CONTROL]
                  : "that socket",
              control_clean (name, clean, sizeof clean), arguments->volume);
    status = TL_USAGE;
  }
  if (status != TL_DONE) {
    json_decref (*node);
    *node = NULL;
  }
  return status;
}

int
command_complain (int status, const char *format, ...)
{
  va_list list;

  fputs ("twinlog: ", stderr);
  va_start (list, format);
  vfprintf (stderr, format, list);
  va_end (list);
  fputc ('\n', stderr);
  return status;
}

int
command_explain (int result, char *error, size_t error_size, const char *format,
                 ...)
{
  va_list list;

  va_start (list, format);
  vsnprintf (error, error_size, format, list);
  va_end (list);
  return result;
}

/* What was not written, to a full disk say, was not shown. */
static int
written (void)
{
  if (fflush (stdout) == 0 && !ferror (stdout))
    return TL_DONE;
  perror ("twinlog: cannot write");
  return TL_FAILED;
}

int
command_status (const struct arguments *arguments)
{
  char error[1024];
  json_t *node;
  int status;

  if (arguments->given[OPTION_WATCH])
    return watch_status (arguments);
  status = command_ask_status (arguments, CONTROL_ASK_TIMEOUT, &node, error,
                               sizeof error);
  if (status != TL_DONE)
    return command_complain (status, "%s", error);
  if (arguments->given[OPTION_JSON]) {
    json_dumpf (node, stdout, JSON_INDENT (2) | JSON_REAL_PRECISION (12));
    putchar ('\n');
  } else
    show_status (node, stdout);
  json_decref (node);
  return written ();
}

int
command_plain (const struct arguments *arguments)
{
  json_t *request, *answer, *node;
  const char *text;
  char error[1024];
  int status;

  /* Who names a volume means that one, whichever node has the socket. */
  if (arguments->volume) {
    status = command_ask_status (arguments, CONTROL_ASK_TIMEOUT, &node, error,
                                 sizeof error);
    if (status != TL_DONE)
      return command_complain (status, "%s", error);
    json_decref (node);
  }
  request = json_pack ("{s:s}", "command", arguments->command->name);
  for (unsigned i = 0; i < OPTIONS; i++)
    if (arguments->given[i] && option_is_flag (i))
      json_object_set_new (request, option_name (i), json_true ());
  status =
      ask (arguments, request, CONTROL_TIMEOUT, &answer, error, sizeof error);
  if (status != TL_DONE)
    return command_complain (status, "%s", error);
  text = json_string_value (json_object_get (answer, "text"));
  if (text && text[0])
    puts (control_clean (text, error, sizeof error));
  json_decref (answer);
  return written ();
}
