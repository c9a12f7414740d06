/* Runs commands in a virtual machine for those outside. A connection is one
 * command: a line `SECONDS LENGTH`, a script of so many bytes, and whatever
 * the script is to read. What it writes comes back as it is, and after that
 * four bytes, its exit status: three digits and a newline. A script that takes
 * longer is killed with all that it started in its session; its status is then
 * 124. A connection that ends without a status tells of a machine that died. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCRIPT_MAX (1 << 20)
#define SECONDS_MAX 86400
#define DRAIN 10 /* seconds that input which nobody reads is waited for */
#define TIMED_OUT 124

static void
give_up (const char *what)
{
  perror (what);
  exit (1);
}

/* Reads exactly `size` bytes; returns -1 where there are less. */
static int
read_all (int fd, char *data, size_t size)
{
  while (size > 0) {
    ssize_t n = read (fd, data, size);

    if (n <= 0)
      return -1;
    data += n;
    size -= (size_t)n;
  }
  return 0;
}

/* The line at the head, byte by byte: what follows is not ours to read. */
static int
read_header (int fd, int *seconds, size_t *length)
{
  char line[40];

  for (size_t used = 0; used < sizeof line - 1; used++) {
    if (read_all (fd, line + used, 1) == -1)
      return -1;
    if (line[used] == '\n') {
      line[used] = '\0';
      if (sscanf (line, "%d %zu", seconds, length) != 2 || *seconds < 1 ||
          *seconds > SECONDS_MAX || *length > SCRIPT_MAX)
        return -1;
      return 0;
    }
  }
  return -1;
}

/* Waits for the script; returns its status as a shell would give it. */
static int
await (pid_t child, int seconds)
{
  struct pollfd ended = {.events = POLLIN};
  int status, timed_out;

  ended.fd = (int)syscall (SYS_pidfd_open, child, 0);
  timed_out = poll (&ended, 1, seconds * 1000) == 0;
  if (timed_out) {
    kill (-child, SIGKILL);
    kill (child, SIGKILL);
  }
  if (waitpid (child, &status, 0) == -1)
    give_up ("waitpid");
  if (timed_out)
    return TIMED_OUT;
  return WIFEXITED (status) ? WEXITSTATUS (status) : 128 + WTERMSIG (status);
}

/* What the script did not read is read here: closing a connection with unread
 * input would throw away output that is still on its way. */
static void
drain (int fd)
{
  struct timeval limit = {.tv_sec = DRAIN};
  char unread[4096];

  setsockopt (fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  while (read (fd, unread, sizeof unread) > 0)
    ;
}

static void
serve (int fd)
{
  static char script[SCRIPT_MAX + 1];
  char trailer[5];
  size_t length;
  int seconds;
  pid_t child;

  if (read_header (fd, &seconds, &length) == -1 ||
      read_all (fd, script, length) == -1)
    return;
  child = fork ();
  if (child == -1)
    give_up ("fork");
  if (child == 0) {
    setsid ();
    for (int i = 0; i < 3; i++)
      dup2 (fd, i);
    close (fd);
    execl ("/bin/sh", "sh", "-c", script, NULL);
    give_up ("/bin/sh");
  }
  snprintf (trailer, sizeof trailer, "%03d\n", await (child, seconds) & 0xff);
  if (send (fd, trailer, 4, MSG_NOSIGNAL) == 4 && shutdown (fd, SHUT_WR) == 0)
    drain (fd);
}

static int
listen_on (in_port_t port)
{
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons (port),
                                .sin_addr.s_addr = htonl (INADDR_ANY)};
  int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int yes = 1;

  if (fd == -1 ||
      setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == -1 ||
      bind (fd, (struct sockaddr *)&address, sizeof address) == -1 ||
      listen (fd, SOMAXCONN) == -1)
    give_up ("listen");
  return fd;
}

int
main (int argc, char **argv)
{
  FILE *console;
  int listening;

  if (argc != 3) {
    fprintf (stderr, "usage: twinlog-agent PORT CONSOLE\n");
    return 2;
  }
  signal (SIGCHLD, SIG_IGN);
  setenv ("PATH", "/usr/bin", 1);
  setenv ("HOME", "/root", 1);
  listening = listen_on ((in_port_t)atoi (argv[1]));
  console = fopen (argv[2], "we");
  if (console == NULL)
    give_up (argv[2]);
  fprintf (console, "twinlog-agent: ready\n");
  fclose (console);
  for (;;) {
    int fd = accept4 (listening, NULL, NULL, SOCK_CLOEXEC);

    if (fd == -1 && errno != EINTR && errno != ECONNABORTED)
      give_up ("accept");
    if (fd != -1 && fork () == 0) {
      signal (SIGCHLD, SIG_DFL);
      serve (fd);
      _exit (0);
    }
    if (fd != -1)
      close (fd);
  }
}
