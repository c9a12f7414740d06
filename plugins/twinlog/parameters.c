/* The parameters, their meaning and their contradictions. */
#include "parameters.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#define DEADLINE_MIN 200000
#define DEADLINE_MAX 300000000
#define DEADLINE_DEFAULT "5"

/* Each parser takes the text of a value and fills in its field.  NULL, or what
 * is allowed, to be read after "KEY=VALUE: ".
 */
typedef const char *parser (struct tl_parameters *p, const char *text,
                            char *space, size_t space_size);

/* ---- One value by itself ---- */

/* A number with the suffixes that nbdkit knows, the sector one included. */
static const char *
parse_size (struct tl_parameters *p, const char *text, char *space,
            size_t space_size)
{
  static const char allowed[] =
      "expected a size in bytes, with K, M, G or T for larger units";
  static const char units[] = "bkmgtpe";
  const char *c = text;
  const char *unit;
  uint64_t size = 0;

  if (*c < '0' || *c > '9')
    return allowed;
  for (; *c >= '0' && *c <= '9'; c++)
    if (__builtin_mul_overflow (size, 10, &size) ||
        __builtin_add_overflow (size, *c - '0', &size))
      return "the size is out of range";
  if (*c) {
    unit = strchr (units, *c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
    if (c[1] || (!unit && *c != 's' && *c != 'S'))
      return allowed;
    if (__builtin_mul_overflow (
            size, unit ? UINT64_C (1) << (10 * (unit - units)) : 512, &size))
      return "the size is out of range";
  }
  if (size > INT64_MAX)
    return "the size is out of range";
  if (size == 0)
    return "the size must not be 0";
  if (size % TL_BLOCK) {
    snprintf (space, space_size, "the size must be a multiple of %u bytes",
              (unsigned)TL_BLOCK);
    return space;
  }
  p->size = size;
  return NULL;
}

static const char *
name (const char **field, const char *text)
{
  if (!tl_name_valid (text))
    return "expected 1 to 63 letters, digits, '.', '_' or '-', not beginning "
           "with '.' or '-'";
  *field = text;
  return NULL;
}

static const char *
parse_name (struct tl_parameters *p, const char *text, char *space,
            size_t space_size)
{
  return name (&p->volume, text);
}

static const char *
parse_node (struct tl_parameters *p, const char *text, char *space,
            size_t space_size)
{
  return name (&p->node, text);
}

static const char *
parse_listen (struct tl_parameters *p, const char *text, char *space,
              size_t space_size)
{
  if (p->host.check_address (text, space, space_size) == -1)
    return space;
  p->listen = text;
  return NULL;
}

static const char *
parse_peer (struct tl_parameters *p, const char *text, char *space,
            size_t space_size)
{
  if (p->host.check_address (text, space, space_size) == -1)
    return space;
  p->peer = text;
  return NULL;
}

/* Relative paths are made absolute before nbdkit changes its directory. */
static const char *
path (struct tl_parameters *p, char **field, const char *text, char *space,
      size_t space_size)
{
  if (text[0] == '"')
    return "expected a path without quotes";
  if (text[strlen (text) - 1] == '/')
    return "expected the path of a file, not of a directory";
  free (*field);
  *field = p->host.absolute_path (text);
  if (!*field)
    return "the path cannot be made absolute";
  return NULL;
}

static const char *
parse_control (struct tl_parameters *p, const char *text, char *space,
               size_t space_size)
{
  const size_t limit = sizeof ((struct sockaddr_un *)0)->sun_path;
  const char *bad = path (p, &p->control_path, text, space, space_size);

  if (bad)
    return bad;
  if (strlen (p->control_path) >= limit) {
    snprintf (space, space_size,
              "the absolute path of a socket has at most %zu bytes", limit - 1);
    return space;
  }
  p->control = p->control_path;
  return NULL;
}

static const char *
parse_state (struct tl_parameters *p, const char *text, char *space,
             size_t space_size)
{
  const char *bad = path (p, &p->state_path, text, space, space_size);

  p->state = p->state_path;
  return bad;
}

static const char *
parse_store (struct tl_parameters *p, const char *text, char *space,
             size_t space_size)
{
  const char *bad = path (p, &p->store_path, text, space, space_size);

  p->store = p->store_path;
  return bad;
}

static const char *
parse_lock (struct tl_parameters *p, const char *text, char *space,
            size_t space_size)
{
  p->lock = strcmp (text, "on") == 0;
  return p->lock || strcmp (text, "off") == 0 ? NULL : "expected on or off";
}

static const char *
parse_flush (struct tl_parameters *p, const char *text, char *space,
             size_t space_size)
{
  static const char *const words[] = {
      [TL_FLUSH_AUTO] = "auto", [TL_FLUSH_ON] = "on", [TL_FLUSH_OFF] = "off"};

  for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++)
    if (strcmp (text, words[i]) == 0) {
      p->flush = i;
      return NULL;
    }
  return "expected auto, on or off";
}

static const char *
parse_policy (struct tl_parameters *p, const char *text, char *space,
              size_t space_size)
{
  static const char *const words[] = {[TL_POLICY_ERROR] = "error",
                                      [TL_POLICY_ARBITER] = "arbiter",
                                      [TL_POLICY_FREEZE] = "freeze",
                                      [TL_POLICY_CONTINUE] = "continue"};

  for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++)
    if (strcmp (text, words[i]) == 0) {
      p->policy = i;
      return NULL;
    }
  return "expected error, arbiter, freeze or continue";
}

static const char *
parse_arbiter (struct tl_parameters *p, const char *text, char *space,
               size_t space_size)
{
  p->arbiter = text;
  return NULL;
}

/* Seconds with up to six decimals; by hand, so that no locale changes it. */
static const char *
parse_deadline (struct tl_parameters *p, const char *text, char *space,
                size_t space_size)
{
  static const char allowed[] = "expected seconds from 0.2 to 300";
  uint64_t time = 0, unit = 1000000;
  const char *c = text;

  if (*c < '0' || *c > '9')
    return allowed;
  for (; *c >= '0' && *c <= '9'; c++) {
    time = time * 10 + (unsigned)(*c - '0') * UINT64_C (1000000);
    if (time > DEADLINE_MAX)
      return allowed;
  }
  if (*c == '.') {
    if (!c[1])
      return allowed;
    for (c++; *c >= '0' && *c <= '9' && unit > 1; c++) {
      unit /= 10;
      time += (unsigned)(*c - '0') * unit;
    }
  }
  if (*c || time < DEADLINE_MIN || time > DEADLINE_MAX)
    return allowed;
  p->deadline = time;
  return NULL;
}

static const struct {
  const char *key;
  parser *parse;
  bool required;
} table[TL_KEYS] = {
    [TL_KEY_SIZE] = {"size", parse_size, true},
    [TL_KEY_NAME] = {"name", parse_name, true},
    [TL_KEY_NODE] = {"node", parse_node, true},
    [TL_KEY_LISTEN] = {"listen", parse_listen, true},
    [TL_KEY_PEER] = {"peer", parse_peer, true},
    [TL_KEY_CONTROL] = {"control", parse_control, false},
    [TL_KEY_STATE] = {"state", parse_state, false},
    [TL_KEY_STORE] = {"store", parse_store, false},
    [TL_KEY_LOCK] = {"lock", parse_lock, false},
    [TL_KEY_FLUSH] = {"flush", parse_flush, false},
    [TL_KEY_POLICY] = {"on-partner-loss", parse_policy, false},
    [TL_KEY_ARBITER] = {"arbiter", parse_arbiter, false},
    [TL_KEY_DEADLINE] = {"deadline", parse_deadline, false},
};

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
    if (strcmp (key, table[k].key) == 0)
      break;
  if (k == TL_KEYS) {
    char known[256] = "";
    size_t used = 0;

    for (unsigned i = 0; i < TL_KEYS; i++)
      used += (size_t)snprintf (known + used, sizeof known - used, "%s%s",
                                i ? ", " : "", table[i].key);
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
  bad = table[k].parse (p, given->text, space, sizeof space);
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
    snprintf (space, size, "%s=%s (%s:%u)", table[key].key, given->text,
              p->path, given->line);
  else
    snprintf (space, size, "%s=%s", table[key].key, given->text);
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
  bad = table[key].parse (p, p->command[key].text, space, sizeof space);
  if (bad)
    return fail (error, error_size, "%s=%s: %s", table[key].key, text, bad);
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
    if (table[k].required && !effective (p, k)->text)
      return fail (error, error_size,
                   "%s= is missing; size, name, node, listen and peer must be "
                   "given",
                   table[k].key);

  /* Values were parsed as they came; those that count are parsed last. */
  for (unsigned k = 0; k < TL_KEYS; k++) {
    const char *text = effective (p, k)->text;

    if (text && table[k].parse (p, text, space, sizeof space))
      return fail (error, error_size, "%s=%s: cannot be used", table[k].key,
                   text);
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
