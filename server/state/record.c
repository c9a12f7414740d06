/* The JSON of a state file.
 *
 * {"format": "twinlog-state", "version": 1, "checksum": "…", "record": {…}}
 *
 * The checksum is XXH3-64 of the record, printed compact and with sorted keys:
 * a change by hand, or a disk that returned something else, is noticed, while
 * white space does not count.
 */
#include "record.h"

#include "core/map.h"
#include "state.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define FORMAT "twinlog-state"
#define VERSION 1

#define ID_TEXT 17 /* 16 digits and the NUL */

/* What a record must be, when it is read and before it is written.  NULL, or
 * what is wrong.
 */
static const char *
check_record (const struct tl_record *record)
{
  unsigned i;

  if (!tl_name_valid (record->volume) || !tl_name_valid (record->node))
    return "a name is not valid";
  if (record->peer[0] != '\0' && !tl_name_valid (record->peer))
    return "the peer's name is not valid";
  if (record->size == 0 || record->size % TL_BLOCK != 0 ||
      record->size > INT64_MAX)
    return "the size is not valid";
  if (!tl_view_valid (&record->view) || !tl_view_valid (&record->proposal) ||
      record->view.number > INT64_MAX || record->proposal.number > INT64_MAX)
    return "a view is not valid";
  if (record->view.number != 0 && tl_uuid_zero (&record->uuid))
    return "the UUID is missing";
  if (record->n_history > TL_HISTORY)
    return "the history is too long";
  for (i = 0; i < record->n_history; i++)
    if (!tl_view_valid (&record->history[i]) ||
        record->history[i].number == 0 || record->history[i].number > INT64_MAX)
      return "a view of the history is not valid";
  return NULL;
}

/* ---- Out ---- */

/* jansson takes over what is passed on as `_new`, and passes on NULL as a
 * failure; so failures need no handling before the end.
 */

static json_t *
print_id (uint64_t id)
{
  char text[ID_TEXT];

  snprintf (text, sizeof text, "%016" PRIx64, id);
  return json_string (text);
}

static json_t *
print_view (const struct tl_view *view)
{
  json_t *members = json_array ();
  unsigned i;
  int r = 0;

  for (i = 0; i < view->n_members; i++)
    r |= json_array_append_new (members, json_string (view->members[i]));
  if (r != 0) {
    json_decref (members);
    return NULL;
  }
  return json_pack ("{s:I, s:o, s:o, s:s, s:o}", "number",
                    (json_int_t)view->number, "id", print_id (view->id),
                    "parent", print_id (view->parent), "primary", view->primary,
                    "members", members);
}

static json_t *
print_history (const struct tl_record *record)
{
  json_t *history = json_array ();
  unsigned i;
  int r = 0;

  for (i = 0; i < record->n_history; i++)
    r |= json_array_append_new (history, print_view (&record->history[i]));
  if (r == 0)
    return history;
  json_decref (history);
  return NULL;
}

static int
checksum (const json_t *json, char text[ID_TEXT])
{
  char *canonical = json_dumps (json, JSON_COMPACT | JSON_SORT_KEYS);

  if (canonical == NULL)
    return -1;
  snprintf (text, ID_TEXT, "%016" PRIx64,
            (uint64_t)XXH3_64bits (canonical, strlen (canonical)));
  free (canonical);
  return 0;
}

char *
tl_record_print (const struct tl_record *record, const char **why)
{
  char uuid[37], sum[ID_TEXT];
  json_t *json, *file = NULL;
  char *text = NULL;

  *why = check_record (record);
  if (*why != NULL)
    return NULL;
  *why = "memory is short";
  tl_uuid_format (&record->uuid, uuid);
  json = json_pack (
      "{s:s, s:s, s:I, s:s, s:o, s:o, s:o, s:o, s:o, s:s}", "volume",
      record->volume, "node", record->node, "size", (json_int_t)record->size,
      "uuid", uuid, "view", print_view (&record->view), "proposal",
      print_view (&record->proposal), "history", print_history (record),
      "incarnation", print_id (record->incarnation), "peer-view",
      print_id (record->peer_view), "peer", record->peer);
  if (json != NULL && checksum (json, sum) == 0)
    file = json_pack ("{s:s, s:i, s:s, s:O}", "format", FORMAT, "version",
                      VERSION, "checksum", sum, "record", json);
  if (file != NULL)
    text = json_dumps (file, JSON_INDENT (2));
  json_decref (file);
  json_decref (json);
  return text;
}

/* ---- In ---- */

static int
parse_name (const json_t *json, char name[TL_NAME_SIZE])
{
  size_t length;

  if (!json_is_string (json))
    return -1;
  length = json_string_length (json);
  if (length >= TL_NAME_SIZE)
    return -1;
  memcpy (name, json_string_value (json), length + 1);
  return 0;
}

static int
parse_id (const json_t *json, uint64_t *id)
{
  const char *text = json_string_value (json);

  if (text == NULL || strlen (text) != ID_TEXT - 1 ||
      strspn (text, "0123456789abcdef") != ID_TEXT - 1)
    return -1;
  *id = strtoull (text, NULL, 16);
  return 0;
}

static int
parse_number (const json_t *json, uint64_t *number)
{
  if (!json_is_integer (json) || json_integer_value (json) < 0)
    return -1;
  *number = (uint64_t)json_integer_value (json);
  return 0;
}

static int
parse_view (const json_t *json, struct tl_view *view)
{
  const json_t *members = json_object_get (json, "members");
  size_t i;

  memset (view, 0, sizeof *view);
  if (json_object_size (json) != 5 || !json_is_array (members) ||
      json_array_size (members) > TL_MEMBERS ||
      parse_number (json_object_get (json, "number"), &view->number) == -1 ||
      parse_id (json_object_get (json, "id"), &view->id) == -1 ||
      parse_id (json_object_get (json, "parent"), &view->parent) == -1 ||
      parse_name (json_object_get (json, "primary"), view->primary) == -1)
    return -1;
  for (i = 0; i < json_array_size (members); i++)
    if (parse_name (json_array_get (members, i), view->members[i]) == -1)
      return -1;
  view->n_members = (unsigned)i;
  return 0;
}

static int
parse_record (const json_t *json, struct tl_record *record)
{
  const json_t *history = json_object_get (json, "history");
  const char *uuid = json_string_value (json_object_get (json, "uuid"));
  size_t i;

  memset (record, 0, sizeof *record);
  if (json_object_size (json) != 10 ||
      parse_name (json_object_get (json, "volume"), record->volume) == -1 ||
      parse_name (json_object_get (json, "node"), record->node) == -1 ||
      parse_name (json_object_get (json, "peer"), record->peer) == -1 ||
      parse_number (json_object_get (json, "size"), &record->size) == -1 ||
      uuid == NULL || tl_uuid_parse (uuid, &record->uuid) == -1 ||
      parse_view (json_object_get (json, "view"), &record->view) == -1 ||
      parse_view (json_object_get (json, "proposal"), &record->proposal) ==
          -1 ||
      parse_id (json_object_get (json, "incarnation"), &record->incarnation) ==
          -1 ||
      parse_id (json_object_get (json, "peer-view"), &record->peer_view) ==
          -1 ||
      !json_is_array (history) || json_array_size (history) > TL_HISTORY)
    return -1;
  for (i = 0; i < json_array_size (history); i++)
    if (parse_view (json_array_get (history, i), &record->history[i]) == -1)
      return -1;
  record->n_history = (unsigned)i;
  return 0;
}

/* NULL, or what is wrong with FILE. */
static const char *
parse_file (const json_t *file, struct tl_record *record)
{
  const json_t *json = json_object_get (file, "record");
  const char *format = json_string_value (json_object_get (file, "format"));
  const char *told = json_string_value (json_object_get (file, "checksum"));
  char sum[ID_TEXT];

  if (format == NULL || strcmp (format, FORMAT) != 0)
    return "it is not a state file";
  if (json_integer_value (json_object_get (file, "version")) != VERSION)
    return "its version is not known to this release";
  if (!json_is_object (json) || told == NULL || json_object_size (file) != 4)
    return "it is incomplete";
  if (checksum (json, sum) == -1)
    return "memory is short";
  if (strcmp (told, sum) != 0)
    return "its checksum does not hold";
  if (parse_record (json, record) == -1)
    return "a field is missing or of the wrong kind";
  return check_record (record);
}

int
tl_record_parse (const char *text, size_t length, struct tl_record *record,
                 const char **why)
{
  struct tl_record parsed;
  json_t *file;

  file = json_loadb (text, length, JSON_REJECT_DUPLICATES, NULL);
  if (file == NULL) {
    *why = length == 0 ? "it is empty" : "it is truncated or not JSON";
    return -1;
  }
  *why = parse_file (file, &parsed);
  json_decref (file);
  if (*why != NULL)
    return -1;
  *record = parsed;
  return 0;
}
