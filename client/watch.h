/* `twinlog status --watch`: an entry whenever something of note changes. */
#ifndef TWINLOG_CLIENT_WATCH_H
#define TWINLOG_CLIENT_WATCH_H

#include <jansson.h>

struct arguments;

/* Go on until interrupted, or until nothing more can be written.  A node that
 * cannot be reached is waited for.  Returns the exit status.
 */
int watch_status (const struct arguments *arguments);

/* What of NODE makes a new entry where it differs.  The caller drops the
 * reference.
 */
json_t *watch_facts (const json_t *node);

#endif
