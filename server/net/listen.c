/* The listening socket of the mirror channel. */
#include "net/net.h"
#include "net/tcp.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int
tl_listen_open (const struct tl_address *address, bool mptcp, char *error,
                size_t error_size)
{
  char text[TL_ADDRESS_TEXT];
  int one = 1;
  int fd = tl_tcp_socket (address->storage.ss_family, mptcp);

  tl_address_format (address, text);
  if (fd == -1) {
    if (mptcp && tl_tcp_no_mptcp (errno))
      snprintf (error, error_size,
                "mptcp=on: the kernel has no multipath TCP, or it is switched "
                "off: see 'sysctl net.mptcp.enabled', or leave the parameter "
                "out");
    else
      snprintf (error, error_size, "listen=%s: socket: %s", text,
                strerror (errno));
    return -1;
  }
  setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind (fd, (const struct sockaddr *)&address->storage, address->length) ==
          0 &&
      listen (fd, 16) == 0)
    return fd;

  if (errno == EADDRINUSE)
    snprintf (error, error_size,
              "listen=%s: the address is in use: another node or program "
              "listens there; stop it or choose another port",
              text);
  else if (errno == EADDRNOTAVAIL)
    snprintf (error, error_size,
              "listen=%s: this machine has no such address (see 'ip address')",
              text);
  else
    snprintf (error, error_size, "listen=%s: %s", text, strerror (errno));
  close (fd);
  return -1;
}
