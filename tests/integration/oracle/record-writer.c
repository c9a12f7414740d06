/* The same check as fsync-writer without a file system: records of 4 KiB
 * written through libnbd from several connections, each noted before it is
 * sent and after it is acknowledged, round and round as in a log. */
#include "history.h"

#include <errno.h>
#include <inttypes.h>
#include <libnbd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#define RECORD 4096
#define THREADS_MAX 64

struct thread {
  pthread_t id;
  const char *socket;
  int number;
  int history;           /* shared, appended to in single writes */
  uint64_t start, slots; /* its own part of the device, in records */
  uint64_t limit;
  char failure[200];
};

static struct nbd_handle *
connect_to (const char *socket)
{
  struct nbd_handle *nbd = nbd_create ();

  if (nbd != NULL && nbd_connect_unix (nbd, socket) == -1) {
    nbd_close (nbd);
    nbd = NULL;
  }
  return nbd;
}

/* One record, durable when this returns 0. */
static int
write_record (struct nbd_handle *nbd, const unsigned char *data,
              uint64_t offset)
{
  if (nbd_can_fua (nbd) == 1)
    return nbd_pwrite (nbd, data, RECORD, offset, LIBNBD_CMD_FLAG_FUA);
  if (nbd_pwrite (nbd, data, RECORD, offset, 0) == -1)
    return -1;
  return nbd_can_flush (nbd) == 1 ? nbd_flush (nbd, 0) : 0;
}

static void *
run (void *opaque)
{
  struct thread *thread = opaque;
  struct nbd_handle *nbd = connect_to (thread->socket);
  uint64_t seed = tl_now_usec () ^ ((uint64_t)thread->number << 48);
  unsigned char data[RECORD];
  char key[TL_KEY_MAX];

  for (uint64_t i = 0; nbd != NULL; i++) {
    uint64_t offset = (thread->start + i % thread->slots) * RECORD;
    uint64_t sum;

    if (thread->limit > 0 && i == thread->limit) {
      nbd_shutdown (nbd, 0);
      nbd_close (nbd);
      return NULL;
    }
    tl_fill (data, sizeof data, seed + i);
    sum = XXH64 (data, sizeof data, 0);
    snprintf (key, sizeof key, "%012" PRIu64, offset);
    if (tl_history_note (thread->history, false, key, sum) == -1) {
      snprintf (thread->failure, sizeof thread->failure, "history: %s",
                strerror (errno));
      nbd_close (nbd);
      return NULL;
    }
    if (write_record (nbd, data, offset) == -1)
      break;
    if (tl_history_note (thread->history, true, key, sum) == -1) {
      snprintf (thread->failure, sizeof thread->failure, "history: %s",
                strerror (errno));
      nbd_close (nbd);
      return NULL;
    }
  }
  /* libnbd's text belongs to this thread only. */
  snprintf (thread->failure, sizeof thread->failure, "%s", nbd_get_error ());
  nbd_close (nbd);
  return NULL;
}

static int
write_records (const char *socket, const char *path, int threads, uint64_t span,
               uint64_t limit)
{
  static struct thread list[THREADS_MAX];
  int history = tl_history_open (path);
  int status = 0, started;

  if (history == -1) {
    fprintf (stderr, "record-writer: %s: %s\n", path, strerror (errno));
    return 1;
  }
  for (started = 0; started < threads; started++) {
    uint64_t slots = span / RECORD / (uint64_t)threads;

    list[started] = (struct thread){.socket = socket,
                                    .number = started,
                                    .history = history,
                                    .start = slots * (uint64_t)started,
                                    .slots = slots,
                                    .limit = limit};
    errno = pthread_create (&list[started].id, NULL, run, &list[started]);
    if (errno != 0) {
      fprintf (stderr, "record-writer: thread: %s\n", strerror (errno));
      status = 1;
      break;
    }
  }
  for (int i = 0; i < started; i++) {
    pthread_join (list[i].id, NULL);
    if (list[i].failure[0] != '\0')
      fprintf (stderr, "record-writer: connection %d stopped: %s\n", i,
               list[i].failure);
  }
  close (history);
  return status;
}

static int
read_record (void *opaque, const char *key, uint64_t *sum, char *reason,
             size_t size)
{
  unsigned char data[RECORD];

  if (nbd_pread (opaque, data, sizeof data, strtoull (key, NULL, 10), 0) ==
      -1) {
    snprintf (reason, size, "%s", nbd_get_error ());
    return -1;
  }
  *sum = XXH64 (data, sizeof data, 0);
  return 0;
}

static int
verify (const char *socket, const char *path)
{
  struct tl_event *events;
  struct tl_verdict verdict;
  struct nbd_handle *nbd;
  size_t count;

  if (tl_history_load (path, &events, &count) == -1)
    return 2;
  nbd = connect_to (socket);
  if (nbd == NULL) {
    fprintf (stderr, "record-writer: %s\n", nbd_get_error ());
    free (events);
    return 2;
  }
  tl_history_judge (events, count, read_record, nbd, &verdict);
  printf ("%zu %zu\n", verdict.acknowledged, verdict.lost);
  nbd_shutdown (nbd, 0);
  nbd_close (nbd);
  free (events);
  return verdict.lost > 0;
}

int
main (int argc, char **argv)
{
  if ((argc == 6 || argc == 7) && strcmp (argv[1], "write") == 0) {
    int threads = atoi (argv[4]);
    uint64_t span = strtoull (argv[5], NULL, 10);

    if (threads >= 1 && threads <= THREADS_MAX &&
        span / RECORD >= (uint64_t)threads)
      return write_records (argv[2], argv[3], threads, span,
                            argc == 7 ? strtoull (argv[6], NULL, 10) : 0);
  } else if (argc == 4 && strcmp (argv[1], "verify") == 0)
    return verify (argv[2], argv[3]);
  fprintf (stderr,
           "usage: record-writer write SOCKET HISTORY CONNECTIONS BYTES "
           "[RECORDS PER CONNECTION]\n"
           "       record-writer verify SOCKET HISTORY\n"
           "verify prints the numbers of acknowledged and of lost records and "
           "exits 1 where any is lost, 2 where it could not compare.\n");
  return 2;
}
