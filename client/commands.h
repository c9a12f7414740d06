/* What the commands do; each returns the exit status. */
#ifndef TWINLOG_CLIENT_COMMANDS_H
#define TWINLOG_CLIENT_COMMANDS_H

#include <jansson.h>
#include <stddef.h>

struct arguments;

int command_status (const struct arguments *arguments);

/* Those that the node carries out: their name and flags are sent, its text is
 * shown.
 */
int command_plain (const struct arguments *arguments);

/* Ask the node for its object, at most TIMEOUT milliseconds.  The caller drops
 * the reference.  An exit status; where not 0, one line is in ERROR.
 */
int command_ask_status (const struct arguments *arguments, unsigned timeout,
                        json_t **node, char *error, size_t error_size);

/* Say on standard error what went wrong, in one line; STATUS is returned. */
int command_complain (int status, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));

/* Put what went wrong into ERROR, in one line; RESULT is returned. */
int command_explain (int result, char *error, size_t error_size,
                     const char *format, ...)
    __attribute__ ((format (printf, 4, 5)));

/* The text of NODE at KEY, "?" where there is none. */
const char *command_word (const json_t *node, const char *key);

#endif
