/* Views and UUIDs as text, for the arbiter and the state file.
 *
 * twinlog1:UUID:NUMBER:ID:PARENT:PRIMARY:MEMBER[+MEMBER]
 *
 * The number is decimal, the ids are 16 hexadecimal digits.  The parser takes
 * exactly what the formatter makes: it formats what it read and compares.
 */
#include "state.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "twinlog1:"

void
tl_uuid_format (const struct tl_uuid *uuid, char text[37])
{
  unsigned i;

  for (i = 0; i < sizeof uuid->bytes; i++) {
    if (i == 4 || i == 6 || i == 8 || i == 10)
      *text++ = '-';
    snprintf (text, 3, "%02x", uuid->bytes[i]);
    text += 2;
  }
}

int
tl_uuid_parse (const char *text, struct tl_uuid *uuid)
{
  struct tl_uuid parsed;
  char again[37], pair[3] = "";
  const char *from = text;
  unsigned i;

  if (strlen (text) != sizeof again - 1)
    return -1;
  for (i = 0; i < sizeof parsed.bytes; i++) {
    if (i == 4 || i == 6 || i == 8 || i == 10)
      from++;
    memcpy (pair, from, 2);
    parsed.bytes[i] = (uint8_t)strtoul (pair, NULL, 16);
    from += 2;
  }
  /* Anything but digits and hyphens in their places comes out different. */
  tl_uuid_format (&parsed, again);
  if (strcmp (text, again) != 0)
    return -1;
  *uuid = parsed;
  return 0;
}

void
tl_view_format (const struct tl_uuid *uuid, const struct tl_view *view,
                char text[TL_VIEW_TEXT])
{
  char id[37];
  unsigned i;
  size_t used;

  tl_uuid_format (uuid, id);
  used = (size_t)snprintf (
      text, TL_VIEW_TEXT,
      PREFIX "%s:%" PRIu64 ":%016" PRIx64 ":%016" PRIx64 ":%s:", id,
      view->number, view->id, view->parent, view->primary);
  for (i = 0; i < view->n_members && i < TL_MEMBERS && used < TL_VIEW_TEXT; i++)
    used += (size_t)snprintf (text + used, TL_VIEW_TEXT - used, "%s%s",
                              i > 0 ? "+" : "", view->members[i]);
}

/* Copy a name that is LENGTH bytes long.  0, or -1 where it is no name. */
static int
take_name (char name[TL_NAME_SIZE], const char *text, size_t length)
{
  if (length >= TL_NAME_SIZE)
    return -1;
  memcpy (name, text, length);
  name[length] = '\0';
  return tl_name_valid (name) ? 0 : -1;
}

/* Cut LINE at its colons.  The number of fields, at most MOST + 1. */
static unsigned
split (char *line, char *fields[], unsigned most)
{
  unsigned n = 0;

  while (line != NULL) {
    if (n == most)
      return most + 1;
    fields[n++] = strsep (&line, ":");
  }
  return n;
}

int
tl_view_parse (const char *text, struct tl_uuid *uuid, struct tl_view *view)
{
  char line[TL_VIEW_TEXT], again[TL_VIEW_TEXT], copy[TL_VIEW_TEXT];
  char *fields[7], *member, *rest;
  struct tl_uuid id;
  struct tl_view v;
  size_t length = strlen (text);

  while (length > 0 && isspace ((unsigned char)text[length - 1]))
    length--;
  if (length >= sizeof line)
    return -1;
  memcpy (line, text, length);
  line[length] = '\0';
  memcpy (copy, line, length + 1);
  memset (&v, 0, sizeof v);
  if (split (line, fields, 7) != 7 || tl_uuid_parse (fields[1], &id) == -1)
    return -1;
  v.number = strtoull (fields[2], NULL, 10);
  v.id = strtoull (fields[3], NULL, 16);
  v.parent = strtoull (fields[4], NULL, 16);
  if (take_name (v.primary, fields[5], strlen (fields[5])) == -1)
    return -1;
  for (rest = fields[6]; (member = strsep (&rest, "+")) != NULL; v.n_members++)
    if (v.n_members == TL_MEMBERS ||
        take_name (v.members[v.n_members], member, strlen (member)) == -1)
      return -1;
  /* Other spellings, and what does not fit the types, end here. */
  tl_view_format (&id, &v, again);
  if (strcmp (copy, again) != 0 || v.number == 0 || !tl_view_valid (&v))
    return -1;
  *uuid = id;
  *view = v;
  return 0;
}
