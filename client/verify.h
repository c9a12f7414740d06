/* `twinlog verify`: start it at the node, and follow it to its end. */
#ifndef TWINLOG_CLIENT_VERIFY_H
#define TWINLOG_CLIENT_VERIFY_H

struct arguments;

/* The exit status: 0 where both copies were equal, 1 where something differed,
 * which the node has copied again, or where it did not come to its end.
 */
int command_verify (const struct arguments *arguments);

#endif
