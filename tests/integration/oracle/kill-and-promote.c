/* Kills the primary, promotes the other node and measures the time until the
 * first write there succeeds. One program, so that nothing but the failover
 * is measured. */
#include "history.h"

#include <errno.h>
#include <inttypes.h>
#include <libnbd.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK 4096
#define PATIENCE_USEC 60000000u
#define PAUSE_USEC 2000

extern char **environ;

/* Runs the command once, its output on stderr. Returns its exit status, or -1
 * with errno. */
static int
run (char **command)
{
  posix_spawn_file_actions_t actions;
  pid_t pid;
  int status;

  posix_spawn_file_actions_init (&actions);
  posix_spawn_file_actions_adddup2 (&actions, STDERR_FILENO, STDOUT_FILENO);
  errno = posix_spawnp (&pid, command[0], &actions, NULL, command, environ);
  posix_spawn_file_actions_destroy (&actions);
  if (errno != 0)
    return -1;
  while (waitpid (pid, &status, 0) == -1)
    if (errno != EINTR)
      return -1;
  return WIFEXITED (status) ? WEXITSTATUS (status) : 128;
}

/* Writes one block and reads it back. Returns 0, or -1 with nbd_get_error. */
static int
write_block (const char *socket, uint64_t offset, uint64_t seed)
{
  struct nbd_handle *nbd = nbd_create ();
  unsigned char data[BLOCK], back[BLOCK];
  int status = -1;

  tl_fill (data, sizeof data, seed);
  if (nbd != NULL && nbd_connect_unix (nbd, socket) == 0 &&
      nbd_pwrite (nbd, data, sizeof data, offset, 0) == 0 &&
      nbd_pread (nbd, back, sizeof back, offset, 0) == 0) {
    if (memcmp (data, back, sizeof data) != 0) {
      fprintf (stderr, "kill-and-promote: the first write reads back "
                       "differently\n");
      exit (1);
    }
    nbd_shutdown (nbd, 0);
    status = 0;
  }
  nbd_close (nbd);
  return status;
}

int
main (int argc, char **argv)
{
  uint64_t killed, offset;
  pid_t pid;
  int status;

  if (argc < 5 || (pid = atoi (argv[1])) <= 1) {
    fprintf (stderr,
             "usage: kill-and-promote PID SOCKET OFFSET PROMOTE-COMMAND...\n"
             "Prints when it killed PID (microseconds of CLOCK_MONOTONIC) and "
             "the milliseconds\nuntil the command had succeeded and until a "
             "write at OFFSET had.\n");
    return 2;
  }
  offset = strtoull (argv[3], NULL, 10);

  killed = tl_now_usec ();
  if (kill (pid, SIGKILL) == -1) {
    fprintf (stderr, "kill-and-promote: kill %d: %s\n", (int)pid,
             strerror (errno));
    return 1;
  }
  while ((status = run (argv + 4)) != 0) {
    if (status == -1) {
      fprintf (stderr, "kill-and-promote: %s: %s\n", argv[4], strerror (errno));
      return 1;
    }
    if (tl_now_usec () - killed > PATIENCE_USEC) {
      fprintf (stderr, "kill-and-promote: %s: still exit status %d\n", argv[4],
               status);
      return 1;
    }
    usleep (PAUSE_USEC);
  }
  uint64_t promoted = tl_now_usec ();
  while (write_block (argv[2], offset, killed) == -1) {
    if (tl_now_usec () - killed > PATIENCE_USEC) {
      fprintf (stderr, "kill-and-promote: %s\n", nbd_get_error ());
      return 1;
    }
    usleep (PAUSE_USEC);
  }
  printf ("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", killed,
          (promoted - killed + 999) / 1000,
          (tl_now_usec () - killed + 999) / 1000);
  return 0;
}
