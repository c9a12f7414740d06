/* The kernel's NBD client, over generic netlink.  One thread; a structure per
 * process: it is not used on both sides of a fork.
 */
#ifndef TWINLOG_CLIENT_ATTACH_KERNEL_H
#define TWINLOG_CLIENT_ATTACH_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KERNEL_ANY_DEVICE (-1)

struct nl_sock;

struct kernel {
  struct nl_sock *requests;
  struct nl_sock *events; /* NULL: none were asked for */
  int family;
};

/* What a device is made from. */
struct kernel_device {
  int index; /* N of /dev/nbdN, or KERNEL_ANY_DEVICE */
  int fd;    /* a connected socket behind the handshake */
  uint64_t size;
  uint64_t block_size;
  uint64_t flags;           /* of the export, as the NBD protocol has them */
  unsigned request_timeout; /* seconds, 0: none */
  unsigned reconnect;       /* seconds that requests wait without a socket */
  const char *identifier;
};

/* The results are exit statuses (enum tl_status_code); where not 0, one line
 * is in ERROR.
 */

/* Find the kernel's NBD client.  With EVENTS hear of links that die. */
int kernel_open (struct kernel *kernel, bool events, char *error,
                 size_t error_size);
void kernel_close (struct kernel *kernel);

/* Make a device of a socket, which stays the caller's as well; *INDEX says
 * which one.
 */
int kernel_connect (struct kernel *kernel, const struct kernel_device *device,
                    int *index, char *error, size_t error_size);

/* Put FD in the place of the device's dead socket.  Where its socket is not
 * dead this succeeds and does nothing.
 */
int kernel_reconfigure (struct kernel *kernel, int index, int fd,
                        const char *identifier, char *error, size_t error_size);

/* End the device: its requests fail from now on.  It is free once its last
 * user has closed it.
 */
int kernel_disconnect (struct kernel *kernel, int index, char *error,
                       size_t error_size);

/* To poll for reading. */
int kernel_events_fd (const struct kernel *kernel);

/* Read what events there are.  Has the link of INDEX died? */
bool kernel_link_dead (struct kernel *kernel, int index);

#endif
