/* What `twinlog bench` is asked to do.  Pure. */
#ifndef TWINLOG_CLIENT_BENCH_OPTIONS_H
#define TWINLOG_CLIENT_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arguments;

#define BENCH_VALUES 16            /* of a list */
#define BENCH_SIZE_MAX (16u << 20) /* bytes of a write */
#define BENCH_DEPTH_MAX 256
#define BENCH_CONNECTIONS_MAX 64
#define BENCH_SECONDS_MAX 3600

struct bench_list {
  unsigned n;
  uint32_t value[BENCH_VALUES];
};

struct bench_options {
  struct bench_list sizes;  /* bytes */
  struct bench_list depths; /* in flight on each connection */
  struct bench_list connections;
  int64_t duration;  /* of one figure, nanoseconds */
  double round_trip; /* of --link, microseconds; 0: not given */
  double rate;       /* of --link, Gbit a second */
};

/* 0, or -1 with one line in ERROR. */
int bench_options_parse (const struct arguments *arguments,
                         struct bench_options *options, char *error,
                         size_t error_size);

/* Is TEXT ADDRESS:PORT, numeric, IPv6 in brackets?  Then in HOST, of HOST_SIZE
 * bytes, and *PORT, which points into TEXT.
 */
bool bench_split_address (const char *text, char *host, size_t host_size,
                          const char **port);

#endif
