/* A node's export, connected to for the kernel.  One thread. */
#ifndef TWINLOG_CLIENT_ATTACH_EXPORT_H
#define TWINLOG_CLIENT_ATTACH_EXPORT_H

#include <stddef.h>
#include <stdint.h>

struct export
{
  int fd; /* the connection behind the handshake, the caller's to close */
  uint64_t size;
  uint64_t block_size; /* that the kernel can use */
  uint64_t flags;      /* as the NBD protocol has them */
};

/* Connect to the export NAME at the Unix socket PATH and shake hands, at most
 * TIMEOUT milliseconds.  An exit status; where not 0, one line is in ERROR.
 */
int export_open (struct export *export, const char *path, const char *name,
                 unsigned timeout, char *error, size_t error_size);

#endif
