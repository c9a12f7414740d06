/* `twinlog wait`. */
#ifndef TWINLOG_CLIENT_WAIT_H
#define TWINLOG_CLIENT_WAIT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct arguments;

/* Is STATE a word that can be waited for?  0, or -1 with one line in ERROR. */
int wait_check_state (const char *state, char *error, size_t error_size);

/* Is NODE, the object of `status`, in STATE? */
bool wait_matches (const json_t *node, const char *state);

int command_wait (const struct arguments *arguments);

#endif
