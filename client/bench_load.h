/* The load: a thread for each connection, which keeps so many writes in
 * flight.  Nothing is allocated per request.
 */
#ifndef TWINLOG_CLIENT_BENCH_LOAD_H
#define TWINLOG_CLIENT_BENCH_LOAD_H

#include "bench.h"

/* Carry out ROW for so many nanoseconds, after a tenth of it to warm up, and
 * put into it what was measured.
 */
int load_run (const struct bench_target *target, int64_t duration,
              struct bench_row *row, char *error, size_t error_size);

/* Nanoseconds of the monotonic clock. */
int64_t load_now (void);

#endif
