/* The sockets of the mirror channel: TCP, or multipath TCP (RFC 8684), with
 * which one connection goes over all cables between the machines.  Which
 * addresses take part is for the administrator to tell the kernel.
 */
#ifndef TWINLOG_NET_TCP_H
#define TWINLOG_NET_TCP_H

#include <stdbool.h>
#include <stdint.h>

struct tcp_info;

/* A stream socket that does not block, or -1 with errno.  Any thread. */
int tl_tcp_socket (int family, bool mptcp);

/* Does ERROR of tl_tcp_socket say that the kernel has no multipath TCP? */
bool tl_tcp_no_mptcp (int error);

/* What the kernel knows of a connection. */
struct tl_tcp {
  unsigned paths; /* that work, as far as it has noticed; 1 with plain TCP */
  uint64_t busy;  /* microseconds in which the link carried something: of all
                   * paths together, divided by their number */
  uint64_t acked; /* bytes that the peer has acknowledged */
  bool idle; /* on one path, at least, less was to be sent than it carries */
};

/* Look at the connection FD.  False: it is none.  Any thread. */
bool tl_tcp_look (int fd, struct tl_tcp *tcp);

/* The same from what the kernel says of each of N paths. */
void tl_tcp_sum (const struct tcp_info *infos, unsigned n, struct tl_tcp *tcp);

#endif
