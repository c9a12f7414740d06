/* A bad network in one direction: delays, loses and reorders the packets that
 * iptables -j NFQUEUE hands it.
 *
 *   twinlog-packets QUEUE SEED
 *
 * It says «ready» once the queue is its own.  Each line on standard input,
 * «DELAY JITTER LOSS», goes for packets that come from then on: let each go
 * after DELAY milliseconds and a random part of JITTER, so that later ones may
 * overtake, but lose LOSS in a thousand.  It answers how many it has let go and
 * lost until then.  The end of standard input ends it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <libnetfilter_queue/libnetfilter_queue.h>
#include <linux/netfilter.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MOST 65536u
#define RECEIVE_BUFFER (4u << 20)

struct waiting {
  uint64_t due; /* microseconds */
  uint32_t id;
};

/* Those that were not let go yet, in the order in which they are. */
static struct waiting waiting[MOST];
static unsigned first, n_waiting;

static uint64_t delay, jitter; /* microseconds */
static unsigned loss;          /* in a thousand */
static uint64_t let_go, lost;

static uint64_t
now (void)
{
  struct timespec time;

  clock_gettime (CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

static void
fail (const char *what)
{
  fprintf (stderr, "twinlog-packets: %s: %s\n", what, strerror (errno));
  exit (1);
}

static void
keep (uint32_t id, uint64_t due)
{
  unsigned at = first + n_waiting++;

  for (; at > first && waiting[(at - 1) % MOST].due > due; at--)
    waiting[at % MOST] = waiting[(at - 1) % MOST];
  waiting[at % MOST] = (struct waiting){due, id};
}

static int
came (struct nfq_q_handle *queue, struct nfgenmsg *message,
      struct nfq_data *data, void *opaque)
{
  const struct nfqnl_msg_packet_hdr *header = nfq_get_msg_packet_hdr (data);
  uint32_t id = ntohl (header->packet_id);
  uint64_t due = now () + delay;

  if ((unsigned)(random () % 1000) < loss || n_waiting == MOST) {
    lost++;
    return nfq_set_verdict (queue, id, NF_DROP, 0, NULL);
  }
  if (jitter)
    due += (uint64_t)random () % jitter;
  keep (id, due);
  return 0;
}

/* How long until the next one, in milliseconds; -1: there is none. */
static int
release (struct nfq_q_handle *queue)
{
  uint64_t time = now ();

  for (; n_waiting; first++, n_waiting--) {
    const struct waiting *next = &waiting[first % MOST];

    if (next->due > time)
      return (int)((next->due - time + 999) / 1000);
    nfq_set_verdict (queue, next->id, NF_ACCEPT, 0, NULL);
    let_go++;
  }
  return -1;
}

/* One line.  False at the end of the input. */
static bool
obey (void)
{
  char line[100];
  uint64_t new_delay, new_jitter;

  if (!fgets (line, sizeof line, stdin))
    return false;
  if (sscanf (line, "%" SCNu64 " %" SCNu64 " %u", &new_delay, &new_jitter,
              &loss) != 3) {
    errno = EINVAL;
    fail (line);
  }
  delay = new_delay * 1000;
  jitter = new_jitter * 1000;
  printf ("%" PRIu64 " %" PRIu64 "\n", let_go, lost);
  return true;
}

int
main (int argc, char **argv)
{
  static char buffer[1u << 16];
  struct nfq_handle *handle = nfq_open ();
  struct nfq_q_handle *queue;
  struct pollfd fds[2];

  if (argc != 3) {
    fprintf (stderr, "usage: twinlog-packets QUEUE SEED\n");
    return 2;
  }
  srandom ((unsigned)strtoul (argv[2], NULL, 10));
  setvbuf (stdin, NULL, _IONBF, 0);
  setvbuf (stdout, NULL, _IOLBF, 0);
  if (!handle)
    fail ("no netfilter queues");
  queue = nfq_create_queue (handle, (uint16_t)strtoul (argv[1], NULL, 10), came,
                            NULL);
  if (!queue)
    fail ("the queue");
  if (nfq_set_mode (queue, NFQNL_COPY_META, 0) < 0 ||
      nfq_set_queue_maxlen (queue, MOST) < 0)
    fail ("the queue's mode");
  nfnl_rcvbufsiz (nfq_nfnlh (handle), RECEIVE_BUFFER);
  fds[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
  fds[1] = (struct pollfd){.fd = nfq_fd (handle), .events = POLLIN};
  puts ("ready");
  for (;;) {
    if (poll (fds, 2, release (queue)) == -1 && errno != EINTR)
      fail ("poll");
    if (fds[1].revents) {
      ssize_t n = recv (fds[1].fd, buffer, sizeof buffer, MSG_DONTWAIT);

      /* What did not fit into its buffer was lost, as on a network. */
      if (n > 0)
        nfq_handle_packet (handle, buffer, (int)n);
      else if (n == -1 && errno != EAGAIN && errno != ENOBUFS)
        fail ("recv");
    }
    if (fds[0].revents && !obey ())
      return 0;
  }
}
