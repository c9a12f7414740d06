/* The picture, drawn by gnuplot. */
#include "bench_report.h"

#include "core/core.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static bool
is_in_path (const char *program)
{
  const char *at = getenv ("PATH");
  char path[4096];

  while (at && *at) {
    int length = (int)strcspn (at, ":");

    snprintf (path, sizeof path, "%.*s/%s", length, at, program);
    if (access (path, X_OK) == 0)
      return true;
    at += length + (at[length] == ':');
  }
  return false;
}

int
report_plot_check (const char *path, char *error, size_t error_size)
{
  int fd;

  if (!is_in_path ("gnuplot")) {
    snprintf (error, error_size,
              "--plot needs gnuplot, which is not installed (gnuplot-nox)");
    return TL_FAILED;
  }
  fd = open (path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd == -1) {
    snprintf (error, error_size, "cannot write %s: %m", path);
    return TL_FAILED;
  }
  close (fd);
  return TL_DONE;
}

/* ---- The script ---- */

/* The points of one line: a size on so many connections. */
static void
put_points (const struct bench_result *result, uint32_t size,
            unsigned connections, FILE *script)
{
  fprintf (script, "$d%u_%u << END\n", size, connections);
  for (unsigned i = 0; i < result->n_rows; i++) {
    const struct bench_row *row = &result->rows[i];

    if (row->pattern == BENCH_WRITES && row->size == size &&
        row->connections == connections)
      fprintf (script, "%u %.1f %.3f %.3f\n", row->depth, row->per_second,
               row->bytes_per_second / 1e6, (double)row->p50 / 1e3);
  }
  fprintf (script, "END\n");
}

/* One panel: a line for each size and number of connections. */
static void
put_panel (const struct bench_options *options, const char *title,
           unsigned column, FILE *script)
{
  static const char *const colours[] = {"#7b3294", "#008837", "#2c7bb6",
                                        "#e66101", "#a50026", "#333333"};
  char size[32];

  fprintf (script, "set title '%s'\nplot ", title);
  for (unsigned i = 0; i < options->sizes.n; i++)
    for (unsigned j = 0; j < options->connections.n; j++) {
      struct bench_row row = {.size = options->sizes.value[i]};
      unsigned connections = options->connections.value[j];

      fprintf (script,
               "%s$d%u_%u using 1:%u with linespoints lc rgb '%s' dt %u pt %u "
               "title '%s, %u conn'",
               i + j ? ", " : "", row.size, connections, column, colours[i % 6],
               j + 1, j + 4, report_size (&row, size), connections);
    }
  fputc ('\n', script);
}

static void
put_script (const struct bench_result *result, FILE *script)
{
  const struct bench_options *options = result->options;

  for (unsigned i = 0; i < options->sizes.n; i++)
    for (unsigned j = 0; j < options->connections.n; j++)
      put_points (result, options->sizes.value[i],
                  options->connections.value[j], script);
  fprintf (script,
           "set terminal svg size 1600,560 font 'sans,12' background 'white'\n"
           "set multiplot layout 1,3\nset grid\nset logscale xy\n"
           "set key off\n"
           "set xlabel 'writes in flight on each connection'\n");
  put_panel (options, "writes a second", 2, script);
  put_panel (options, "MB a second", 3, script);
  fprintf (script, "set key outside right font ',9' samplen 2\n");
  put_panel (options, "microseconds a write (p50)", 4, script);
  fprintf (script, "unset multiplot\n");
}

/* gnuplot with FD as its input and the picture as its output; -1 or its
 * process id.
 */
static pid_t
start_gnuplot (int fd, const char *path)
{
  char *arguments[] = {"gnuplot", "-", NULL};
  posix_spawn_file_actions_t actions;
  pid_t pid = -1;

  posix_spawn_file_actions_init (&actions);
  if (posix_spawn_file_actions_adddup2 (&actions, fd, 0) != 0 ||
      posix_spawn_file_actions_addopen (
          &actions, 1, path, O_WRONLY | O_CREAT | O_TRUNC, 0666) != 0 ||
      posix_spawnp (&pid, "gnuplot", &actions, NULL, arguments, environ) != 0)
    pid = -1;
  posix_spawn_file_actions_destroy (&actions);
  return pid;
}

int
report_plot (const struct bench_result *result, const char *path, char *error,
             size_t error_size)
{
  FILE *script = tmpfile ();
  int status = 1;
  pid_t pid = -1;

  if (script) {
    put_script (result, script);
    if (fflush (script) == 0 && !ferror (script) &&
        lseek (fileno (script), 0, SEEK_SET) == 0)
      pid = start_gnuplot (fileno (script), path);
    if (pid != -1)
      while (waitpid (pid, &status, 0) == -1 && errno == EINTR)
        ;
    fclose (script);
  }
  if (pid != -1 && status == 0)
    return TL_DONE;
  snprintf (error, error_size, "gnuplot could not draw %s", path);
  return TL_FAILED;
}
