/* The file of the control socket. */
#include "net/net.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Is anybody listening at ADDRESS? */
static bool
is_live (const struct sockaddr_un *address)
{
  int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  bool live = true;

  if (fd == -1)
    return true; /* say so rather than take it away */
  if (connect (fd, (const struct sockaddr *)address, sizeof *address) == -1)
    live = errno != ECONNREFUSED && errno != ENOENT;
  close (fd);
  return live;
}

static int
bind_private (int fd, const struct sockaddr_un *address)
{
  mode_t mask = umask (0177);
  int r = bind (fd, (const struct sockaddr *)address, sizeof *address);
  int error = errno;

  umask (mask);
  errno = error;
  return r;
}

int
tl_control_bind (struct tl_node *node, char *error, size_t error_size)
{
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const char *path = node->control;
  struct stat file;
  int fd;

  if (strlen (path) >= sizeof address.sun_path) {
    snprintf (error, error_size,
              "control=%s: the path is longer than the %zu bytes that a "
              "socket may have",
              path, sizeof address.sun_path - 1);
    return -1;
  }
  strcpy (address.sun_path, path);
  if (lstat (path, &file) == 0) {
    if (!S_ISSOCK (file.st_mode)) {
      snprintf (error, error_size,
                "control=%s: there is a file that is not a socket", path);
      return -1;
    }
    if (is_live (&address)) {
      snprintf (error, error_size,
                "control=%s: in use by another process; stop it, or choose "
                "another path",
                path);
      return -1;
    }
    unlink (path); /* left behind by a process that was killed */
  }

  fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd == -1 || bind_private (fd, &address) == -1) {
    snprintf (error, error_size, "control=%s: %s", address.sun_path,
              strerror (errno));
    if (fd != -1)
      close (fd);
    return -1;
  }
  if (listen (fd, 16) == -1 || stat (path, &file) == -1) {
    snprintf (error, error_size, "control=%s: %s", address.sun_path,
              strerror (errno));
    unlink (path);
    close (fd);
    return -1;
  }
  node->control_dev = file.st_dev;
  node->control_ino = file.st_ino;
  node->control_bound = true;
  return fd;
}

void
tl_control_unlink (struct tl_node *node)
{
  struct stat file;

  if (node->control_bound && lstat (node->control, &file) == 0 &&
      file.st_dev == node->control_dev && file.st_ino == node->control_ino)
    unlink (node->control);
  node->control_bound = false;
}
