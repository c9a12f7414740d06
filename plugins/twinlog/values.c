/* The values of the parameters, each by itself. */
#include "values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#define DEADLINE_MIN 200000
#define DEADLINE_MAX 300000000
#define RATE_MIN 65536

/* A number with the suffixes that nbdkit knows, the sector one included. */
static const char *
number (uint64_t *result, const char *text)
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
  *result = size;
  return NULL;
}

static const char *
parse_size (struct tl_parameters *p, const char *text, char *space,
            size_t space_size)
{
  const char *bad = number (&p->size, text);

  if (bad)
    return bad;
  if (p->size == 0)
    return "the size must not be 0";
  if (p->size % TL_BLOCK) {
    snprintf (space, space_size, "the size must be a multiple of %u bytes",
              (unsigned)TL_BLOCK);
    return space;
  }
  return NULL;
}

static const char *
parse_resync_rate (struct tl_parameters *p, const char *text, char *space,
                   size_t space_size)
{
  const char *bad = number (&p->resync_rate, text);

  if (bad)
    return bad;
  if (p->resync_rate != 0 && p->resync_rate < RATE_MIN)
    return "expected at least 64K bytes a second, or 0 for no limit";
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
on_or_off (bool *field, const char *text)
{
  *field = strcmp (text, "on") == 0;
  return *field || strcmp (text, "off") == 0 ? NULL : "expected on or off";
}

static const char *
parse_auto_promote (struct tl_parameters *p, const char *text, char *space,
                    size_t space_size)
{
  return on_or_off (&p->auto_promote, text);
}

static const char *
parse_compress (struct tl_parameters *p, const char *text, char *space,
                size_t space_size)
{
  p->compress = strcmp (text, "lz4") == 0;
  return p->compress || strcmp (text, "none") == 0 ? NULL
                                                   : "expected none or lz4";
}

static const char *
parse_mptcp (struct tl_parameters *p, const char *text, char *space,
             size_t space_size)
{
  return on_or_off (&p->mptcp, text);
}

static const char *
parse_reads (struct tl_parameters *p, const char *text, char *space,
             size_t space_size)
{
  p->reads_local = strcmp (text, "local") == 0;
  return p->reads_local || strcmp (text, "confirmed") == 0
             ? NULL
             : "expected confirmed or local";
}

static const char *
parse_lock (struct tl_parameters *p, const char *text, char *space,
            size_t space_size)
{
  return on_or_off (&p->lock, text);
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

static const char *
parse_notify (struct tl_parameters *p, const char *text, char *space,
              size_t space_size)
{
  p->notify = text;
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

const struct tl_parameter tl_parameter_table[TL_KEYS] = {
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
    [TL_KEY_READS] = {"reads", parse_reads, false},
    [TL_KEY_AUTO_PROMOTE] = {"auto-promote", parse_auto_promote, false},
    [TL_KEY_RESYNC_RATE] = {"resync-rate", parse_resync_rate, false},
    [TL_KEY_COMPRESS] = {"compress", parse_compress, false},
    [TL_KEY_MPTCP] = {"mptcp", parse_mptcp, false},
    [TL_KEY_NOTIFY] = {"notify", parse_notify, false},
};
