/* The parameters, their meaning and their contradictions. */
#include "values.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEADLINE_DEFAULT "5" /* seconds */

/* ---- Taking values ---- */

static int __attribute__ ((format (printf, 3, 4)))
fail (char *error, size_t error_size, const char *format, ...)
{
  va_list arguments;

  va_start (arguments, format);
  vsnprintf (error, error_size, format, arguments);
  va_end (arguments);
  return -1;
}

static bool
printable (const char *text)
{
  for (; *text; text++)
    if ((unsigned char)*text < ' ' || *text == 127)
      return false;
  return true;
}

/* LINE 0: the command line. */
static int
take (struct tl_parameters *p, const char *key, const char *value,
      unsigned line, char *error, size_t error_size)
{
  struct tl_given *given;
  char where[300] = "", space[256];
  const char *bad;
  unsigned k;

  if (line)
    snprintf (where, sizeof where, "%.256s:%u: ", p->path, line);
  if (!printable (key))
    return fail (error, error_size, "%sa key holds a control character", where);
  for (k = 0; k < TL_KEYS; k++)
    if (strcmp (key, tl_parameter_table[k].key) == 0)
      break;
  if (k == TL_KEYS) {
    char known[256] = "";
    size_t used = 0;

    for (unsigned i = 0; i < TL_KEYS; i++)
      used += (size_t)snprintf (known + used, sizeof known - used, "%s%s",
                                i ? ", " : "", tl_parameter_table[i].key);
    return fail (error, error_size,
                 "%sunknown parameter \"%s\"; there are %s%s", where, key,
                 known, line ? "" : ", config");
  }
  if (!printable (value))
    return fail (error, error_size,
                 "%s%s=: the value holds a control character", where, key);
  if (!value[0])
    return fail (error, error_size, "%s%s=: the value is empty", where, key);

  given = line ? &p->file[k] : &p->command[k];
  if (given->text) {
    if (strcmp (given->text, value) == 0)
      return 0;
    if (line)
      return fail (error, error_size,
                   "%s%s=%s: given twice, line %u says %s=%s", where, key,
                   value, given->line, key, given->text);
    return fail (error, error_size, "%s=%s: given twice, before as %s=%s", key,
                 value, key, given->text);
  }
  given->text = strdup (value);
  if (!given->text)
    return fail (error, error_size, "out of memory");
  given->line = line;
  bad = tl_parameter_table[k].parse (p, given->text, space, sizeof space);
  if (bad)
    return fail (error, error_size, "%s%s=%s: %s", where, key, value, bad);
  return 0;
}

static int
take_from_file (void *opaque, const char *key, const char *value, unsigned line,
                char *error, size_t error_size)
{
  return take (opaque, key, value, line, error, error_size);
}

void
tl_parameters_init (struct tl_parameters *p, const struct tl_host *host)
{
  *p = (struct tl_parameters){.host = *host};
}

int
tl_parameters_set (struct tl_parameters *p, const char *key, const char *value,
                   char *error, size_t error_size)
{
  if (strcmp (key, "config") != 0)
    return take (p, key, value, 0, error, error_size);

  if (!value[0] || !printable (value))
    return fail (error, error_size, "config=: expected the path of a file");
  if (p->path) {
    if (strcmp (p->path, value) == 0)
      return 0;
    return fail (error, error_size, "config=%s: given twice, before as %s",
                 value, p->path);
  }
  p->path = strdup (value);
  if (!p->path)
    return fail (error, error_size, "out of memory");
  return tl_ini_read (p->path, take_from_file, p, error, error_size);
}

/* ---- All of them together ---- */

static const struct tl_given *
effective (const struct tl_parameters *p, enum tl_key key)
{
  return p->command[key].text ? &p->command[key] : &p->file[key];
}

/* KEY=VALUE, with where it stands if that is the file. */
static const char *
show (const struct tl_parameters *p, enum tl_key key, char *space, size_t size)
{
  const struct tl_given *given = effective (p, key);

  if (given->line)
    snprintf (space, size, "%s=%s (%s:%u)", tl_parameter_table[key].key,
              given->text, p->path, given->line);
  else
    snprintf (space, size, "%s=%s", tl_parameter_table[key].key, given->text);
  return space;
}

static int
fill_default (struct tl_parameters *p, enum tl_key key, const char *format,
              const char *argument, char *error, size_t error_size)
{
  char text[256], space[256];
  const char *bad;

  if (effective (p, key)->text)
    return 0;
  snprintf (text, sizeof text, format, argument);
  p->command[key].text = strdup (text);
  if (!p->command[key].text)
    return fail (error, error_size, "out of memory");
  bad = tl_parameter_table[key].parse (p, p->command[key].text, space,
                                       sizeof space);
  if (bad)
    return fail (error, error_size, "%s=%s: %s", tl_parameter_table[key].key,
                 text, bad);
  return 0;
}

static int
check_contradictions (const struct tl_parameters *p, char *error,
                      size_t error_size)
{
  static const enum tl_key paths[] = {TL_KEY_CONTROL, TL_KEY_STATE,
                                      TL_KEY_STORE};
  const char *const values[] = {p->control, p->state, p->store};
  char one[512], two[512];

  if (p->policy == TL_POLICY_ARBITER && !p->arbiter)
    return fail (error, error_size, "%s needs an arbiter; give arbiter=COMMAND",
                 show (p, TL_KEY_POLICY, one, sizeof one));
  if (p->policy == TL_POLICY_CONTINUE && p->arbiter)
    return fail (error, error_size,
                 "%s contradicts %s: a node that goes on unasked makes an "
                 "arbiter useless; leave one of them out",
                 show (p, TL_KEY_POLICY, one, sizeof one),
                 show (p, TL_KEY_ARBITER, two, sizeof two));
  if (p->auto_promote && !p->arbiter)
    return fail (error, error_size, "%s needs an arbiter; give arbiter=COMMAND",
                 show (p, TL_KEY_AUTO_PROMOTE, one, sizeof one));
  if (strcmp (p->listen, p->peer) == 0)
    return fail (error, error_size,
                 "%s is this node's own address, %s; give that of the other "
                 "node",
                 show (p, TL_KEY_PEER, one, sizeof one),
                 show (p, TL_KEY_LISTEN, two, sizeof two));
  for (unsigned i = 0; i < 3; i++)
    for (unsigned j = i + 1; j < 3; j++)
      if (values[i] && values[j] && strcmp (values[i], values[j]) == 0)
        return fail (error, error_size,
                     "%s and %s are one file; each needs its own",
                     show (p, paths[i], one, sizeof one),
                     show (p, paths[j], two, sizeof two));
  return 0;
}

int
tl_parameters_check (struct tl_parameters *p, char *error, size_t error_size)
{
  char space[256];

  for (unsigned k = 0; k < TL_KEYS; k++)
    if (tl_parameter_table[k].required && !effective (p, k)->text)
      return fail (error, error_size,
                   "%s= is missing; size, name, node, listen and peer must be "
                   "given",
                   tl_parameter_table[k].key);

  /* Values were parsed as they came; those that count are parsed last. */
  for (unsigned k = 0; k < TL_KEYS; k++) {
    const char *text = effective (p, k)->text;

    if (text && tl_parameter_table[k].parse (p, text, space, sizeof space))
      return fail (error, error_size, "%s=%s: cannot be used",
                   tl_parameter_table[k].key, text);
  }
  if (fill_default (p, TL_KEY_CONTROL, "/run/twinlog/%s.ctl", p->volume, error,
                    error_size) == -1 ||
      fill_default (p, TL_KEY_STATE, "/var/lib/twinlog/%s.state", p->volume,
                    error, error_size) == -1 ||
      fill_default (p, TL_KEY_LOCK, "%s", "on", error, error_size) == -1 ||
      fill_default (p, TL_KEY_FLUSH, "%s", "auto", error, error_size) == -1 ||
      fill_default (p, TL_KEY_POLICY, "%s", p->arbiter ? "arbiter" : "error",
                    error, error_size) == -1 ||
      fill_default (p, TL_KEY_DEADLINE, "%s", DEADLINE_DEFAULT, error,
                    error_size) == -1)
    return -1;
  return check_contradictions (p, error, error_size);
}

void
tl_parameters_clear (struct tl_parameters *p)
{
  for (unsigned k = 0; k < TL_KEYS; k++) {
    free (p->command[k].text);
    free (p->file[k].text);
  }
  free (p->path);
  free (p->control_path);
  free (p->state_path);
  free (p->store_path);
  *p = (struct tl_parameters){.host = p->host};
}
