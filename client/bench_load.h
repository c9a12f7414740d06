/* The load: workers, a connection each, which keep so many writes in flight. */
#ifndef TWINLOG_CLIENT_BENCH_LOAD_H
#define TWINLOG_CLIENT_BENCH_LOAD_H

#include "bench.h"

/* Once, before load_run: write the bytes of the file at PATH over and over, or,
 * where that is NULL, bytes that do not compress, so that no link looks faster
 * than it is.  These return an exit status; where not 0, one line is in ERROR.
 */
int load_content (const char *path, char *error, size_t error_size);

/* Carry out ROW for so many nanoseconds, after a tenth of it to warm up, and
 * put into it what was measured; for longer where no write ended in that time.
 */
int load_run (const struct bench_target *target, int64_t duration,
              struct bench_row *row, char *error, size_t error_size);

#endif
