/* The link by itself: so many bytes over TCP, and 16 back. */
#ifndef TWINLOG_CLIENT_BENCH_LINK_H
#define TWINLOG_CLIENT_BENCH_LINK_H

#include "bench.h"

/* Measure against what answers at ADDRESS (ADDRESS:PORT), or, where that is
 * NULL, over this machine's loopback: each of SIZES for DURATION nanoseconds,
 * and the rate.  An exit status; where not 0, one line is in ERROR.
 */
int link_measure (const char *address, const struct bench_list *sizes,
                  int64_t duration, struct bench_link *link, char *error,
                  size_t error_size);

/* Answer at ADDRESS until the process is ended. */
int link_answer (const char *address, char *error, size_t error_size);

#endif
