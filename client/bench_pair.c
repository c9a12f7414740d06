#include "bench_pair.h"
#include "commands.h"
#include "control.h"
#include "wait.h"

#include "core/core.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SIZE (128u << 20) /* bytes of the volume */
#define VOLUME "bench"
#define PLUGIN "plugins/twinlog/nbdkit-twinlog-plugin.so"
#define ARBITER "twinlog-arbiter-file"
#define LIMIT 30000 /* milliseconds for each step of the start */
#define INTERVAL 20 /* milliseconds between questions */
#define TRIES 3     /* for ports that another process may take first */

/* How the two nodes are started. */
struct plan {
  const char *directory;
  char plugin[4096];
  char arbiter[4096];
  unsigned port[2];
  bool lock;
};

/* ---- The plan ---- */

/* Run from a build tree, this uses what lies there; otherwise what is
 * installed.
 */
static void
find_programs (struct plan *plan)
{
  char here[2048];
  ssize_t n = readlink ("/proc/self/exe", here, sizeof here - 1);
  char *slash;

  here[n > 0 ? n : 0] = '\0';
  for (unsigned i = 0; i < 2 && (slash = strrchr (here, '/')); i++)
    *slash = '\0';
  snprintf (plan->plugin, sizeof plan->plugin, "%s/" PLUGIN, here);
  if (access (plan->plugin, R_OK) == 0)
    snprintf (plan->arbiter, sizeof plan->arbiter,
              "arbiter='%s/" ARBITER "' '%s/arbiter'", TWINLOG_SCRIPTS,
              plan->directory);
  else {
    strcpy (plan->plugin, "twinlog");
    snprintf (plan->arbiter, sizeof plan->arbiter,
              "arbiter=" ARBITER " '%s/arbiter'", plan->directory);
  }
}

/* May this process, and so the nodes, lock that much memory? */
static bool
may_lock (void)
{
  void *memory = mmap (NULL, SIZE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  bool locked;

  if (memory == MAP_FAILED)
    return false;
  locked = mlock (memory, SIZE) == 0;
  munmap (memory, SIZE);
  return locked;
}

static bool
is_free (unsigned port)
{
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_addr.s_addr = htonl (INADDR_LOOPBACK),
                                .sin_port = htons ((uint16_t)port)};
  int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool free;

  free =
      fd != -1 && bind (fd, (struct sockaddr *)&address, sizeof address) == 0;
  if (fd != -1)
    close (fd);
  return free;
}

/* Below those that the kernel hands out. */
static void
choose_ports (struct plan *plan)
{
  struct timespec now;
  unsigned next;

  clock_gettime (CLOCK_REALTIME, &now);
  next = (unsigned)now.tv_nsec / 1000 + (unsigned)getpid ();
  for (unsigned i = 0; i < 2; i++) {
    do
      next = next * 1103515245u + 12345u;
    while (!is_free (12000 + (next >> 8) % 20000) ||
           (i == 1 && plan->port[0] == 12000 + (next >> 8) % 20000));
    plan->port[i] = 12000 + (next >> 8) % 20000;
  }
}

/* ---- The keeper ---- */

static void
path_of (char *path, size_t size, const char *directory, const char *name,
         unsigned i)
{
  snprintf (path, size, "%s/%c%s", directory, 'a' + (int)i, name);
}

/* In the node's process. */
static void
become_node (const struct plan *plan, unsigned i)
{
  char socket[128], control[128], state[128], log[128], listen[64], peer[64];
  char node[] = "node=?";
  int fd;

  node[5] = (char)('a' + i);
  path_of (socket, sizeof socket, plan->directory, ".sock", i);
  snprintf (control, sizeof control, "control=%s/%c.ctl", plan->directory,
            node[5]);
  snprintf (state, sizeof state, "state=%s/%c.state", plan->directory, node[5]);
  path_of (log, sizeof log, plan->directory, ".log", i);
  snprintf (listen, sizeof listen, "listen=127.0.0.1:%u", plan->port[i]);
  snprintf (peer, sizeof peer, "peer=127.0.0.1:%u", plan->port[1 - i]);
  prctl (PR_SET_PDEATHSIG, SIGKILL);
  for (int number = 1; number < 32; number++)
    signal (number, SIG_DFL);
  fd = open (log, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (fd != -1) {
    dup2 (fd, 1);
    dup2 (fd, 2);
  }
  fd = open ("/dev/null", O_RDONLY);
  if (fd != -1)
    dup2 (fd, 0);
  execlp ("nbdkit", "nbdkit", "-f", "--unix", socket, plan->plugin, "128M",
          "name=" VOLUME, node, listen, peer, control, state, plan->arbiter,
          "flush=on", plan->lock ? "lock=on" : "lock=off", (char *)NULL);
  fprintf (stderr, "cannot run nbdkit: %m\n");
  _exit (127);
}

static int
remove_one (const char *path, const struct stat *st, int type, struct FTW *ftw)
{
  remove (path);
  return 0;
}

static void
remove_tree (const char *directory)
{
  nftw (directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Keeps the nodes until the leash is let go, and then ends them.  It tells
 * their process ids through REPORT, and a further one, 0, when a node ends.
 */
static void
keep (const struct plan *plan, int leash, int report)
{
  struct pollfd let_go = {leash, POLLIN, 0};
  pid_t nodes[2], none = 0;
  bool told = false;

  setsid ();
  for (int number = 1; number < 32; number++)
    if (number != SIGCHLD)
      signal (number, SIG_IGN);
  for (unsigned i = 0; i < 2; i++) {
    nodes[i] = fork ();
    if (nodes[i] == 0)
      become_node (plan, i);
  }
  told = write (report, nodes, sizeof nodes) != sizeof nodes;
  while (poll (&let_go, 1, told ? -1 : INTERVAL) == 0)
    for (unsigned i = 0; i < 2 && !told; i++) {
      siginfo_t info = {.si_pid = 0};

      if (nodes[i] == -1 || (waitid (P_PID, (id_t)nodes[i], &info,
                                     WEXITED | WNOHANG | WNOWAIT) == 0 &&
                             info.si_pid != 0))
        told = write (report, &none, sizeof none) != 0;
    }
  for (unsigned i = 0; i < 2; i++)
    if (nodes[i] > 0) {
      kill (nodes[i], SIGKILL);
      waitpid (nodes[i], NULL, 0);
    }
  remove_tree (plan->directory);
  _exit (0);
}

/* ---- The start ---- */

/* The last line that a node logged. */
static void
last_words (const struct bench_pair *pair, char *words, size_t size)
{
  char line[512], path[128];

  words[0] = '\0';
  for (unsigned i = 0; i < 2; i++) {
    FILE *log;

    path_of (path, sizeof path, pair->directory, ".log", i);
    log = fopen (path, "r");
    while (log && fgets (line, sizeof line, log)) {
      line[strcspn (line, "\n")] = '\0';
      if (strstr (line, "error") || strstr (line, "cannot"))
        control_clean (line, words, size);
    }
    if (log)
      fclose (log);
  }
}

/* Ask node A until its status has both STATES. */
static int
await (const struct bench_pair *pair, int report, const char *const states[],
       char *error, size_t error_size)
{
  json_t *request = json_pack ("{s:s}", "command", "status"), *answer, *node;
  int64_t until = control_now () + LIMIT;
  struct pollfd ended = {report, POLLIN, 0};
  char path[128], words[256], text[512];
  bool there = false;

  path_of (path, sizeof path, pair->directory, ".ctl", 0);
  while (!there && control_now () < until && poll (&ended, 1, INTERVAL) == 0) {
    if (control_ask (path, request, 1000, &answer, text, sizeof text) !=
        TL_DONE)
      continue;
    node = json_object_get (answer, "node");
    there = wait_matches (node, states[0]) && wait_matches (node, states[1]) &&
            wait_matches (node, states[2]);
    json_decref (answer);
  }
  json_decref (request);
  if (there)
    return TL_DONE;
  last_words (pair, words, sizeof words);
  command_explain (TL_FAILED, error, error_size, "the pair did not start%s%s",
                   words[0] ? ": " : " in time", words);
  return TL_FAILED;
}

static int
create (const struct bench_pair *pair, char *error, size_t error_size)
{
  json_t *request = json_pack ("{s:s}", "command", "create"), *answer;
  char path[128];
  int status;

  path_of (path, sizeof path, pair->directory, ".ctl", 0);
  status =
      control_ask (path, request, CONTROL_TIMEOUT, &answer, error, error_size);
  json_decref (request);
  if (status != TL_DONE)
    return status;
  status = (int)json_integer_value (json_object_get (answer, "status"));
  if (status != TL_DONE)
    command_explain (TL_FAILED, error, error_size,
                     "the pair was not created: %s",
                     command_word (answer, "text"));
  json_decref (answer);
  return status;
}

/* Start the keeper and learn of the nodes. */
static int
start_keeper (struct bench_pair *pair, const struct plan *plan, int *report,
              char *error, size_t error_size)
{
  int leash[2] = {-1, -1}, reports[2] = {-1, -1};
  pid_t nodes[2] = {-1, -1};

  if (pipe2 (leash, O_CLOEXEC) == -1 || pipe2 (reports, O_CLOEXEC) == -1 ||
      (pair->keeper = fork ()) == -1) {
    command_explain (TL_FAILED, error, error_size, "cannot start a pair: %m");
    for (unsigned i = 0; i < 2; i++) {
      close (leash[i]);
      close (reports[i]);
    }
    remove_tree (plan->directory);
    return TL_FAILED;
  }
  if (pair->keeper == 0) {
    close (leash[1]);
    keep (plan, leash[0], reports[1]);
  }
  close (leash[0]);
  close (reports[1]);
  pair->leash = leash[1];
  *report = reports[0];
  if (read (*report, nodes, sizeof nodes) != sizeof nodes)
    return command_explain (TL_FAILED, error, error_size,
                            "cannot start a pair");
  pair->primary = nodes[0];
  pair->secondary = nodes[1];
  return TL_DONE;
}

static int
make_directories (struct bench_pair *pair, char *error, size_t error_size)
{
  const char *base = getenv ("TMPDIR");
  char arbiter[128];
  int n = snprintf (pair->directory, sizeof pair->directory,
                    "%s/twinlog-bench.XXXXXX", base && *base ? base : "/tmp");

  if (n >= (int)sizeof pair->directory || strchr (pair->directory, '\''))
    return command_explain (TL_FAILED, error, error_size,
                            "set TMPDIR to a shorter, plainer path");
  if (!mkdtemp (pair->directory))
    return command_explain (TL_FAILED, error, error_size, "cannot make %s: %m",
                            pair->directory);
  snprintf (arbiter, sizeof arbiter, "%s/arbiter", pair->directory);
  if (mkdir (arbiter, 0700) == -1) {
    remove (pair->directory);
    return command_explain (TL_FAILED, error, error_size, "cannot make %s: %m",
                            arbiter);
  }
  path_of (pair->socket, sizeof pair->socket, pair->directory, ".sock", 0);
  return TL_DONE;
}

static int
start_once (struct bench_pair *pair, char *error, size_t error_size)
{
  static const char *const connected[] = {"Connected", "Secondary", "Empty"},
                           *const complete[] = {"Connected", "UpToDate",
                                                "peer:UpToDate"};
  struct plan plan = {.directory = pair->directory, .lock = may_lock ()};
  int report = -1, status;

  status = make_directories (pair, error, error_size);
  if (status != TL_DONE)
    return status;
  find_programs (&plan);
  choose_ports (&plan);
  pair->leash = -1;
  status = start_keeper (pair, &plan, &report, error, error_size);
  if (pair->leash == -1)
    return status;
  if (status == TL_DONE)
    status = await (pair, report, connected, error, error_size);
  if (status == TL_DONE)
    status = create (pair, error, error_size);
  if (status == TL_DONE)
    status = await (pair, report, complete, error, error_size);
  close (report);
  if (status != TL_DONE)
    pair_end (pair);
  return status;
}

int
pair_start (struct bench_pair *pair, char *error, size_t error_size)
{
  int status;

  for (unsigned i = 1;; i++) {
    status = start_once (pair, error, error_size);
    if (status == TL_DONE || i == TRIES || !strstr (error, "address is in use"))
      return status;
  }
}

void
pair_end (struct bench_pair *pair)
{
  close (pair->leash);
  while (waitpid (pair->keeper, NULL, 0) == -1 && errno == EINTR)
    ;
}
