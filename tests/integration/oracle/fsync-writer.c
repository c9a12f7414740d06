/* Writes small files one by one from several threads, each made durable with
 * fsync of the file and of its directory, and notes each one before the first
 * fsync and after the last; later compares what is there with those notes. */
#include "history.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define FILE_MAX 16384
#define THREADS_MAX 64

struct thread {
  pthread_t id;
  const char *prefix;
  int number;
  int root;    /* descriptor of the directory written in */
  int history; /* shared, appended to in single writes */
  uint64_t limit;
  int error; /* errno that ended it, 0 at the limit */
  const char *step;
};

static int
write_all (int fd, const unsigned char *data, size_t size)
{
  while (size > 0) {
    ssize_t n = write (fd, data, size);

    if (n < 0)
      return -1;
    data += n;
    size -= (size_t)n;
  }
  return 0;
}

/* Neither file system keeps fsync honest while its log dies. XFS flushes the
 * data disk in the middle, and where the log dies meanwhile finds nothing left
 * to force; ext4 takes a commit that has ended for one that succeeded. Both
 * then return success (seen with a log that kept every write: at most kills up
 * to one file of each thread). Programs would have died with that machine;
 * these live on, so an fsync counts if the file system was still alive after
 * it. A change of the group asks that of both: it opens a transaction and says
 * if that failed. A change of the times does not with ext4, which drops the
 * error and only then goes read-only. */
static int
still_alive (int fd)
{
  struct stat st;

  if (fstat (fd, &st) == -1)
    return -1;
  return fchown (fd, (uid_t)-1, st.st_gid ^ 1);
}

/* One file, acknowledged when this returns NULL; else the step that failed,
 * with errno. */
static const char *
write_file (struct thread *thread, int dir, const char *key, uint64_t seed)
{
  unsigned char data[FILE_MAX];
  size_t size = 1 + seed % FILE_MAX;
  const char *step = NULL;
  uint64_t sum;
  int fd, error;

  tl_fill (data, size, seed);
  sum = XXH64 (data, size, 0);
  fd = openat (dir, strchr (key, '/') + 1,
               O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd == -1)
    return "create";
  if (write_all (fd, data, size) == -1)
    step = "write";
  else if (tl_history_note (thread->history, false, key, sum) == -1)
    step = "history";
  else if (fsync (fd) == -1)
    step = "fsync";
  else if (fsync (dir) == -1)
    step = "fsync of the directory";
  else if (still_alive (fd) == -1)
    step = "change after fsync";
  else if (tl_history_note (thread->history, true, key, sum) == -1)
    step = "history";
  error = errno;
  close (fd);
  errno = error;
  return step;
}

static void *
run (void *opaque)
{
  struct thread *thread = opaque;
  char key[TL_KEY_MAX], name[32];
  uint64_t seed = tl_now_usec () ^ ((uint64_t)thread->number << 48);
  int dir = -1;

  snprintf (name, sizeof name, "%s-%d", thread->prefix, thread->number);
  if (mkdirat (thread->root, name, 0700) == -1)
    thread->step = "mkdir";
  else if ((dir = openat (thread->root, name,
                          O_RDONLY | O_DIRECTORY | O_CLOEXEC)) == -1)
    thread->step = "open of the directory";
  else if (fsync (thread->root) == -1)
    thread->step = "fsync of the top directory";
  for (uint64_t i = 0; thread->step == NULL; i++) {
    if (thread->limit > 0 && i == thread->limit) {
      close (dir);
      return NULL;
    }
    snprintf (key, sizeof key, "%s/%08" PRIu64, name, i);
    tl_fill ((unsigned char *)&seed, sizeof seed, seed + 1);
    thread->step = write_file (thread, dir, key, seed);
  }
  thread->error = errno;
  if (dir != -1)
    close (dir);
  return NULL;
}

/* The file system reports its lost log device with one of these. */
static int
expected (int error)
{
  return error == 0 || error == EIO || error == EROFS;
}

static int
write_files (const char *root, const char *prefix, const char *path,
             int threads, uint64_t limit)
{
  static struct thread list[THREADS_MAX];
  int history = tl_history_open (path);
  int fd = open (root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int status = 0, started;

  if (history == -1 || fd == -1) {
    fprintf (stderr, "fsync-writer: %s: %s\n", history == -1 ? path : root,
             strerror (errno));
    return 1;
  }
  for (started = 0; started < threads; started++) {
    list[started] = (struct thread){.prefix = prefix,
                                    .number = started,
                                    .root = fd,
                                    .history = history,
                                    .limit = limit};
    errno = pthread_create (&list[started].id, NULL, run, &list[started]);
    if (errno != 0) {
      fprintf (stderr, "fsync-writer: thread: %s\n", strerror (errno));
      status = 1;
      break;
    }
  }
  for (int i = 0; i < started; i++) {
    pthread_join (list[i].id, NULL);
    if (list[i].step != NULL)
      fprintf (stderr, "fsync-writer: thread %d stopped: %s: %s\n", i,
               list[i].step, strerror (list[i].error));
    if (!expected (list[i].error))
      status = 1;
  }
  close (fd);
  close (history);
  return status;
}

static int
read_file (void *opaque, const char *key, uint64_t *sum, char *reason,
           size_t size)
{
  static unsigned char data[FILE_MAX + 1];
  const int *root = opaque;
  int fd = openat (*root, key, O_RDONLY | O_CLOEXEC);
  size_t used = 0;
  ssize_t n = -1;

  if (fd != -1)
    while ((n = read (fd, data + used, sizeof data - used)) > 0)
      used += (size_t)n;
  if (n == -1)
    snprintf (reason, size, "%s", strerror (errno));
  else
    *sum = XXH64 (data, used, 0);
  if (fd != -1)
    close (fd);
  return n == -1 ? -1 : 0;
}

static int
verify (const char *root, const char *path)
{
  struct tl_event *events;
  struct tl_verdict verdict;
  size_t count;
  int fd;

  if (tl_history_load (path, &events, &count) == -1)
    return 2;
  fd = open (root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd == -1) {
    fprintf (stderr, "fsync-writer: %s: %s\n", root, strerror (errno));
    free (events);
    return 2;
  }
  tl_history_judge (events, count, read_file, &fd, &verdict);
  printf ("%zu %zu\n", verdict.acknowledged, verdict.lost);
  close (fd);
  free (events);
  return verdict.lost > 0;
}

int
main (int argc, char **argv)
{
  if ((argc == 6 || argc == 7) && strcmp (argv[1], "write") == 0) {
    int threads = atoi (argv[5]);

    if (threads >= 1 && threads <= THREADS_MAX && strlen (argv[3]) < 16)
      return write_files (argv[2], argv[3], argv[4], threads,
                          argc == 7 ? strtoull (argv[6], NULL, 10) : 0);
  } else if (argc == 4 && strcmp (argv[1], "verify") == 0)
    return verify (argv[2], argv[3]);
  fprintf (stderr,
           "usage: fsync-writer write DIRECTORY PREFIX HISTORY THREADS "
           "[FILES PER THREAD]\n"
           "       fsync-writer verify DIRECTORY HISTORY\n"
           "verify prints the numbers of acknowledged and of lost files and "
           "exits 1 where any is lost, 2 where it could not compare.\n");
  return 2;
}
