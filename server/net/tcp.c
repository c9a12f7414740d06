#include "net/tcp.h"

#include <errno.h>
#include <linux/mptcp.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#ifndef SOL_MPTCP
#define SOL_MPTCP 284
#endif

/* Paths of one connection that are looked at; the kernel lets 8 join. */
#define PATHS 16

/* include/net/tcp_states.h of the kernel */
#define ESTABLISHED 1

/* A path that has not answered so many time-outs in a row does not work: with
 * the shortest time-out that is after 0.6 seconds.
 */
#define TIMEOUTS 2

int
tl_tcp_socket (int family, bool mptcp)
{
  return socket (family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                 mptcp ? IPPROTO_MPTCP : 0);
}

bool
tl_tcp_no_mptcp (int error)
{
  return error == EPROTONOSUPPORT || error == ENOPROTOOPT ||
         error == ESOCKTNOSUPPORT;
}

static bool
works (const struct tcp_info *info)
{
  return info->tcpi_state == ESTABLISHED && info->tcpi_backoff < TIMEOUTS;
}

void
tl_tcp_sum (const struct tcp_info *infos, unsigned n, struct tl_tcp *tcp)
{
  *tcp = (struct tl_tcp){.paths = 0};
  for (const struct tcp_info *info = infos; info < infos + n; info++) {
    tcp->paths += works (info);
    tcp->busy += (info->tcpi_busy_time - info->tcpi_rwnd_limited) / n;
    tcp->acked += info->tcpi_bytes_acked;
    tcp->idle |= info->tcpi_delivery_rate_app_limited;
  }
}

bool
tl_tcp_look (int fd, struct tl_tcp *tcp)
{
  struct {
    struct mptcp_subflow_data head;
    struct tcp_info infos[PATHS];
  } all = {.head = {.size_subflow_data = sizeof all.head,
                    .size_user = sizeof all.infos[0]}};
  socklen_t length = sizeof all;
  unsigned n;

  if (getsockopt (fd, SOL_MPTCP, MPTCP_TCPINFO, &all, &length) == 0) {
    n = all.head.num_subflows < PATHS ? all.head.num_subflows : PATHS;
    tl_tcp_sum (all.infos, n, tcp);
    return true;
  }
  length = sizeof all.infos[0];
  if (getsockopt (fd, IPPROTO_TCP, TCP_INFO, all.infos, &length) == -1)
    return false;
  tl_tcp_sum (all.infos, 1, tcp);
  return true;
}
