#include "net/tcp.h"

#include "unit.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct tcp_info quick = {.tcpi_state = 1,
                                      .tcpi_busy_time = 3000,
                                      .tcpi_rwnd_limited = 1000,
                                      .tcpi_bytes_acked = 70};
static const struct tcp_info slow = {.tcpi_state = 1,
                                     .tcpi_backoff = 1,
                                     .tcpi_busy_time = 6000,
                                     .tcpi_bytes_acked = 30};

START_TEST (one_path)
{
  struct tl_tcp tcp;

  tl_tcp_sum (&quick, 1, &tcp);
  ck_assert_uint_eq (tcp.paths, 1);
  ck_assert_uint_eq (tcp.busy, 2000);
  ck_assert_uint_eq (tcp.acked, 70);
  ck_assert (!tcp.idle);
}
END_TEST

/* So that acked / busy is the rate of both. */
START_TEST (two_paths)
{
  struct tcp_info infos[] = {quick, slow};
  struct tl_tcp tcp;

  tl_tcp_sum (infos, 2, &tcp);
  ck_assert_uint_eq (tcp.paths, 2);
  ck_assert_uint_eq (tcp.busy, 4000);
  ck_assert_uint_eq (tcp.acked, 100);
  ck_assert (!tcp.idle);
  infos[1].tcpi_delivery_rate_app_limited = 1;
  tl_tcp_sum (infos, 2, &tcp);
  ck_assert (tcp.idle);
}
END_TEST

START_TEST (not_all_work)
{
  struct tcp_info infos[] = {quick, slow, quick, quick};
  struct tl_tcp tcp;

  infos[1].tcpi_backoff = 2; /* silent */
  infos[2].tcpi_state = 7;   /* closed */
  tl_tcp_sum (infos, 4, &tcp);
  ck_assert_uint_eq (tcp.paths, 2);
  tl_tcp_sum (infos, 0, &tcp);
  ck_assert_uint_eq (tcp.paths, 0);
  ck_assert_uint_eq (tcp.busy, 0);
}
END_TEST

/* Connect two sockets made by tl_tcp_socket over 127.0.0.1. */
static void
connection (bool mptcp, int fds[3])
{
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_addr.s_addr = htonl (INADDR_LOOPBACK)};
  socklen_t length = sizeof address;

  fds[0] = tl_tcp_socket (AF_INET, mptcp);
  fds[1] = tl_tcp_socket (AF_INET, mptcp);
  ck_assert_int_ne (fds[0], -1);
  ck_assert_int_ne (fds[1], -1);
  ck_assert_int_eq (bind (fds[0], (struct sockaddr *)&address, length), 0);
  ck_assert_int_eq (listen (fds[0], 1), 0);
  ck_assert_int_eq (getsockname (fds[0], (struct sockaddr *)&address, &length),
                    0);
  ck_assert_int_eq (connect (fds[1], (struct sockaddr *)&address, length), -1);
  ck_assert_int_eq (errno, EINPROGRESS);
  while ((fds[2] = accept (fds[0], NULL, NULL)) == -1)
    ck_assert_int_eq (errno, EAGAIN);
}

static void
one_path_each (bool mptcp)
{
  struct tl_tcp tcp;
  int fds[3];

  connection (mptcp, fds);
  for (unsigned i = 1; i < 3; i++) {
    ck_assert (tl_tcp_look (fds[i], &tcp));
    ck_assert_uint_eq (tcp.paths, 1);
  }
  for (unsigned i = 0; i < 3; i++)
    close (fds[i]);
}

START_TEST (real_ones)
{
  int fd = tl_tcp_socket (AF_INET, true);

  one_path_each (false);
  if (fd == -1)
    ck_assert (tl_tcp_no_mptcp (errno));
  else {
    close (fd);
    one_path_each (true);
  }
}
END_TEST

START_TEST (no_connection)
{
  struct tl_tcp tcp;
  int fd = socket (AF_UNIX, SOCK_STREAM, 0);

  ck_assert (!tl_tcp_look (fd, &tcp));
  close (fd);
  ck_assert (!tl_tcp_look (-1, &tcp));
  ck_assert (tl_tcp_no_mptcp (ENOPROTOOPT));
  ck_assert (tl_tcp_no_mptcp (EPROTONOSUPPORT));
  ck_assert (!tl_tcp_no_mptcp (EMFILE));
}
END_TEST

UNIT_MAIN ("tcp", one_path, two_paths, not_all_work, real_ones, no_connection)
