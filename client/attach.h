/* `twinlog attach` and `twinlog detach`: a volume as a block device of this
 * machine, through the kernel's NBD client.
 */
#ifndef TWINLOG_CLIENT_ATTACH_H
#define TWINLOG_CLIENT_ATTACH_H

#include <stddef.h>

struct arguments;

int command_attach (const struct arguments *arguments);
int command_detach (const struct arguments *arguments);

/* Are the values of --device and --reconnect what they should be?  0, or -1
 * with one line in ERROR.
 */
int attach_check_options (const struct arguments *arguments, char *error,
                          size_t error_size);

#endif
