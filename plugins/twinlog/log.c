#include "log.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <syslog.h>
#include <unistd.h>

/* Set before there are threads, only read afterwards. */
static const char *log_volume = "";
static bool to_syslog;

void
tl_log_init (const char *volume)
{
  log_volume = volume;
}

void
tl_log_after_fork (void)
{
  struct stat st;

  to_syslog = fstat (STDERR_FILENO, &st) == -1 ||
              (S_ISCHR (st.st_mode) && st.st_rdev == makedev (1, 3));
}

/* A pipe that polls as writable takes PIPE_BUF bytes without waiting; the
 * lines are shorter.  A terminal that was stopped does not.
 */
static bool
to_stderr (const char *text, size_t length)
{
  struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};

  return poll (&fd, 1, 0) == 1 && (fd.revents & POLLOUT) &&
         write (STDERR_FILENO, text, length) == (ssize_t)length;
}

void
tl_log_line (void *opaque, bool error, const char *line)
{
  char text[1024];
  int length;

  length = snprintf (text, sizeof text, "twinlog: %s: %s\n", log_volume, line);
  if (length >= (int)sizeof text) {
    length = sizeof text - 1;
    text[length - 1] = '\n';
  }
  if (to_syslog || !to_stderr (text, (size_t)length))
    syslog (LOG_DAEMON | (error ? LOG_ERR : LOG_NOTICE), "%.*s", length - 1,
            text);
}

void
tl_log_progress (void *opaque, uint64_t done, uint64_t total)
{
  static int shown = -1; /* only called before there are threads */
  char text[160];
  int percent, length;

  if (total == 0 || !isatty (STDERR_FILENO))
    return;
  percent = (int)((double)done * 100 / (double)total);
  if (percent == shown)
    return;
  shown = percent;
  length =
      snprintf (text, sizeof text, "\rtwinlog: %s: preparing memory %d %%%s",
                log_volume, percent, done >= total ? "\n" : "");
  to_stderr (text, (size_t)length);
}
