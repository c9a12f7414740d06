/* `twinlog bench`: how fast, and what would limit it.  What its parts hand to
 * each other.
 */
#ifndef TWINLOG_CLIENT_BENCH_H
#define TWINLOG_CLIENT_BENCH_H

#include "bench_options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct arguments;

enum bench_side { BENCH_CLIENT, BENCH_PRIMARY, BENCH_SECONDARY, BENCH_SIDES };

/* Chains of 8 KiB to 128 KiB writes, as ZFS commits its log, without and with
 * a flush behind each.
 */
enum bench_pattern { BENCH_WRITES, BENCH_CHAINS, BENCH_FLUSHED_CHAINS };

struct bench_row {
  enum bench_pattern pattern;
  uint32_t size;  /* bytes of a write; 0 for chains */
  unsigned depth; /* writes, or chains, in flight on each connection */
  unsigned connections;

  uint64_t done;     /* writes, or chains */
  double per_second; /* of them */
  double bytes_per_second;
  uint64_t p50, p99, p999; /* nanoseconds */
  double cpu[BENCH_SIDES]; /* microseconds for each; below 0: not known */
};

struct bench_ping {
  uint32_t size;
  uint64_t p50, p99; /* nanoseconds, for an answer of 16 bytes */
};

/* The link by itself. */
struct bench_link {
  unsigned n; /* 0: it was not measured */
  struct bench_ping ping[BENCH_VALUES];
  double bytes_per_second; /* one way, many at once */
};

/* What is measured. */
struct bench_target {
  bool throw_away;    /* all on this machine, over its loopback */
  const char *socket; /* of nbdkit's --unix, or NULL: */
  const char *uri;
  pid_t pid[BENCH_SIDES]; /* of the two nodes; 0: not known */
  uint64_t size;          /* bytes */
  uint64_t request_max;   /* bytes of one */
  bool flush;             /* is offered */
};

struct bench_result {
  const struct bench_options *options;
  const struct bench_target *target;
  struct bench_link link;
  unsigned cpus;
  unsigned n_rows;
  struct bench_row *rows;
};

int command_bench (const struct arguments *arguments);

/* Are the values of its options what they should be?  0, or -1 with one line
 * in ERROR; 0 for any other command.
 */
int bench_check_options (const struct arguments *arguments, char *error,
                         size_t error_size);

#endif
