#include "bench_options.h"
#include "arguments.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECTOR 512
#define RTT_MAX 10000000.0 /* microseconds */
#define RATE_MAX 10000.0   /* Gbit a second */

/* A whole number with, where SUFFIX, K or M behind it; 0: it is none. */
static uint64_t
parse_number (const char *text, size_t length, bool suffix)
{
  uint64_t number = 0, unit = 1;

  if (suffix && length > 1) {
    char last = text[length - 1];

    unit = last == 'K' || last == 'k'   ? 1u << 10
           : last == 'M' || last == 'm' ? 1u << 20
                                        : 1;
    length -= unit > 1;
  }
  if (length == 0 || length > 9)
    return 0;
  for (size_t i = 0; i < length; i++) {
    if (text[i] < '0' || text[i] > '9')
      return 0;
    number = number * 10 + (uint64_t)(text[i] - '0');
  }
  return number * unit;
}

/* A list with commas; true if all of it is from 1 to MOST in steps of STEP. */
static bool
parse_list (const char *text, bool suffix, uint64_t step, uint64_t most,
            struct bench_list *list)
{
  list->n = 0;
  for (;;) {
    size_t length = strcspn (text, ",");
    uint64_t number = parse_number (text, length, suffix);

    if (number == 0 || number > most || number % step ||
        list->n == BENCH_VALUES)
      return false;
    list->value[list->n++] = (uint32_t)number;
    if (!text[length])
      return true;
    text += length + 1;
  }
}

/* A number with a point, above 0 up to MOST; *END is behind it. */
static bool
parse_real (const char *text, double most, double *number, char **end)
{
  if (text[0] < '0' || text[0] > '9')
    return false;
  for (const char *c = text; *c && *c != ','; c++)
    if ((*c < '0' || *c > '9') && *c != '.')
      return false;
  *number = strtod (text, end);
  return *number > 0 && *number <= most;
}

static int
bad (char *error, size_t error_size, enum option option, const char *value,
     const char *expected)
{
  snprintf (error, error_size, "--%s %.60s: expected %s", option_name (option),
            value, expected);
  return -1;
}

static int
parse_link (const char *text, struct bench_options *options)
{
  char *end;

  if (!parse_real (text, RTT_MAX, &options->round_trip, &end) || *end != ',')
    return -1;
  return parse_real (end + 1, RATE_MAX, &options->rate, &end) && !*end ? 0 : -1;
}

/* Options that exclude each other, or need one another. */
static int
check_together (const struct arguments *arguments, char *error,
                size_t error_size)
{
  const bool *given = arguments->given;
  bool node = arguments->volume || given[OPTION_CONTROL];
  const char *text = NULL;

  if (given[OPTION_ANSWER] &&
      (node || given[OPTION_SIZE] || given[OPTION_DEPTH] ||
       given[OPTION_CONNECTIONS] || given[OPTION_SECONDS] ||
       given[OPTION_CONTENT] || given[OPTION_LINK] || given[OPTION_PLOT] ||
       given[OPTION_JSON] || given[OPTION_PING] || given[OPTION_URI] ||
       given[OPTION_SOCKET] || given[OPTION_OVERWRITE]))
    text = "--answer goes with no other option";
  else if (given[OPTION_URI] && (node || given[OPTION_SOCKET]))
    text = "one target: --uri, or a volume and its --socket";
  else if (given[OPTION_OVERWRITE] && !node && !given[OPTION_URI] &&
           !given[OPTION_SOCKET])
    text = "--overwrite of what?  Name the volume, --socket or --uri";
  else if (given[OPTION_CONTROL] && !arguments->volume && !given[OPTION_SOCKET])
    text = "--control needs the volume, or --socket, to find its NBD socket";
  else if (given[OPTION_LINK] && !given[OPTION_PING] &&
           (node || given[OPTION_URI] || given[OPTION_SOCKET]))
    text = "--link needs --ping here: what the link is now has to be known";
  if (!text)
    return 0;
  snprintf (error, error_size, "%s", text);
  return -1;
}

static int
check_addresses (const struct arguments *arguments, char *error,
                 size_t error_size)
{
  static const enum option taken[] = {OPTION_PING, OPTION_ANSWER};
  const char *port;
  char host[64];

  for (unsigned i = 0; i < 2; i++)
    if (arguments->given[taken[i]] &&
        !bench_split_address (arguments->value[taken[i]], host, sizeof host,
                              &port))
      return bad (error, error_size, taken[i], arguments->value[taken[i]],
                  "ADDRESS:PORT, such as 10.0.0.2:10900");
  return 0;
}

int
bench_options_parse (const struct arguments *arguments,
                     struct bench_options *options, char *error,
                     size_t error_size)
{
  const char *const *value = arguments->value;
  double seconds = 0.8;
  char *end;

  *options = (struct bench_options){
      .sizes = {5, {4 << 10, 8 << 10, 32 << 10, 128 << 10, 1 << 20}},
      .depths = {5, {1, 4, 10, 16, 32}},
      .connections = {2, {1, 4}},
  };
  if (value[OPTION_SIZE] && !parse_list (value[OPTION_SIZE], true, SECTOR,
                                         BENCH_SIZE_MAX, &options->sizes))
    return bad (error, error_size, OPTION_SIZE, value[OPTION_SIZE],
                "bytes from 512 to 16M in steps of 512, such as 4K,128K");
  if (value[OPTION_DEPTH] && !parse_list (value[OPTION_DEPTH], false, 1,
                                          BENCH_DEPTH_MAX, &options->depths))
    return bad (error, error_size, OPTION_DEPTH, value[OPTION_DEPTH],
                "numbers from 1 to 256, such as 1,16");
  if (value[OPTION_CONNECTIONS] &&
      !parse_list (value[OPTION_CONNECTIONS], false, 1, BENCH_CONNECTIONS_MAX,
                   &options->connections))
    return bad (error, error_size, OPTION_CONNECTIONS,
                value[OPTION_CONNECTIONS], "numbers from 1 to 64, such as 1,4");
  if (value[OPTION_SECONDS] &&
      (!parse_real (value[OPTION_SECONDS], BENCH_SECONDS_MAX, &seconds, &end) ||
       *end || seconds < 0.05))
    return bad (error, error_size, OPTION_SECONDS, value[OPTION_SECONDS],
                "seconds from 0.05 to 3600");
  options->duration = (int64_t)(seconds * 1e9);
  if (value[OPTION_LINK] && parse_link (value[OPTION_LINK], options) == -1)
    return bad (error, error_size, OPTION_LINK, value[OPTION_LINK],
                "microseconds,Gbit/s such as 12,25");
  if (check_addresses (arguments, error, error_size) == -1)
    return -1;
  return check_together (arguments, error, error_size);
}

bool
bench_split_address (const char *text, char *host, size_t host_size,
                     const char **port)
{
  const char *colon = strrchr (text, ':');
  size_t length = colon ? (size_t)(colon - text) : 0;
  uint64_t number;

  if (!colon)
    return false;
  number = parse_number (colon + 1, strlen (colon + 1), false);
  if (number == 0 || number > 65535)
    return false;
  if (text[0] == '[' && length > 2 && text[length - 1] == ']') {
    text++;
    length -= 2;
  } else if (memchr (text, ':', length))
    return false;
  if (length == 0 || length >= host_size)
    return false;
  memcpy (host, text, length);
  host[length] = '\0';
  *port = colon + 1;
  return host[strspn (host, "0123456789abcdefABCDEF.:")] == '\0';
}
