/* A record as JSON: twinlog-state(5).  Pure, any thread. */
#ifndef TWINLOG_STATE_RECORD_H
#define TWINLOG_STATE_RECORD_H

#include "core/view.h"

/* The text of a state file, to be freed by the caller, or NULL with a few
 * words in WHY: the record could not be read back, or memory is short.
 */
char *tl_record_print (const struct tl_record *record, const char **why);

/* The reverse.  0, or -1 with a few words in WHY; RECORD is written only where
 * 0 is returned.
 */
int tl_record_parse (const char *text, size_t length, struct tl_record *record,
                     const char **why);

#endif
