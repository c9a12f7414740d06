/* Commands of the operator's, run by a node.
 *
 * posix_spawn, not uv_spawn: that would install a handler for SIGCHLD in a
 * process that is nbdkit's, not ours.
 */
#include "net/net.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>

int
tl_spawn (char *const arguments[], char *const environment[], int out, int err,
          pid_t *child)
{
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none, defaults;
  int error;

  sigemptyset (&none);
  sigfillset (&defaults);
  posix_spawn_file_actions_init (&actions);
  posix_spawnattr_init (&attributes);
  posix_spawn_file_actions_addopen (&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2 (&actions, out, 1);
  posix_spawn_file_actions_adddup2 (&actions, err, 2);
  posix_spawnattr_setflags (&attributes, POSIX_SPAWN_SETPGROUP |
                                             POSIX_SPAWN_SETSIGMASK |
                                             POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup (&attributes, 0);
  posix_spawnattr_setsigmask (&attributes, &none);
  posix_spawnattr_setsigdefault (&attributes, &defaults);
  error = posix_spawn (child, "/bin/sh", &actions, &attributes, arguments,
                       environment);
  posix_spawnattr_destroy (&attributes);
  posix_spawn_file_actions_destroy (&actions);
  return error;
}
