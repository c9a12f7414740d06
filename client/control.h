/* Talking with a node over its control socket: one request line, one answer
 * line, both JSON objects.  One thread.
 */
#ifndef TWINLOG_CLIENT_CONTROL_H
#define TWINLOG_CLIENT_CONTROL_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#define CONTROL_DIRECTORY "/run/twinlog"
/* Milliseconds for an answer: a command may wait for the arbiter, a question
 * is answered at once.
 */
#define CONTROL_TIMEOUT 60000
#define CONTROL_ASK_TIMEOUT 5000
#define CONTROL_PATH_SIZE 4096

/* The results are exit statuses (enum tl_status_code); where not 0, one line
 * is in ERROR.
 */

/* Which socket: CONTROL if it is given, else that of VOLUME in DIRECTORY, else
 * the only one there.  PATH has CONTROL_PATH_SIZE bytes.
 */
int control_find (const char *directory, const char *control,
                  const char *volume, char *path, char *error,
                  size_t error_size);

/* Send REQUEST to the node at PATH and wait at most TIMEOUT milliseconds for
 * its answer, which is an object with a valid "status"; the caller drops the
 * reference.  TL_DONE says that *ANSWER is set, not what it says.
 */
int control_ask (const char *path, const json_t *request, unsigned timeout,
                 json_t **answer, char *error, size_t error_size);

/* Copy TEXT, which came from outside, without its control characters. */
const char *control_clean (const char *text, char *buffer, size_t size);

/* Milliseconds of the monotonic clock. */
int64_t control_now (void);

#endif
