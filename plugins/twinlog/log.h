/* Where the lines for the operator go. */
#ifndef TWINLOG_LOG_H
#define TWINLOG_LOG_H

#include <stdbool.h>
#include <stdint.h>

/* Lines carry the name of VOLUME, which must outlive the last of them. */
void tl_log_init (const char *volume);

/* After nbdkit has gone to the background, or not: where it threw standard
 * error away, lines go to the system log from here on.
 */
void tl_log_after_fork (void);

/* Callbacks for a node; any thread.  Neither waits for a reader of standard
 * error that does not read.
 */
void tl_log_line (void *opaque, bool error, const char *line);

/* Shows DONE of TOTAL bytes of memory being prepared, on a terminal only. */
void tl_log_progress (void *opaque, uint64_t done, uint64_t total);

#endif
