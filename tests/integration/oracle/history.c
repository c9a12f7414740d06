#include "history.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NAMED_LOSSES 10

uint64_t
tl_now_usec (void)
{
  struct timespec now;

  clock_gettime (CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void
tl_fill (unsigned char *data, size_t size, uint64_t seed)
{
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;

  for (size_t i = 0; i < size; i++) {
    /* xorshift64: cheap, and no two seeds give the same bytes. */
    if (i % 8 == 0) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
    }
    data[i] = (unsigned char)(state >> (i % 8 * 8));
  }
}

int
tl_history_open (const char *path)
{
  return open (path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

int
tl_history_note (int fd, bool done, const char *key, uint64_t sum)
{
  char line[TL_KEY_MAX + 64];
  int length =
      snprintf (line, sizeof line, "%s %s %016" PRIx64 " %" PRIu64 "\n",
                done ? "done" : "begin", key, sum, tl_now_usec ());
  ssize_t written = write (fd, line, (size_t)length);

  if (written == length)
    return 0;
  if (written >= 0)
    errno = ENOSPC;
  return -1;
}

static int
compare (const void *a, const void *b)
{
  const struct tl_event *left = a, *right = b;
  int order = strcmp (left->key, right->key);

  if (order != 0)
    return order;
  return left->line < right->line ? -1 : left->line > right->line;
}

int
tl_history_load (const char *path, struct tl_event **events, size_t *count)
{
  FILE *file = fopen (path, "re");
  struct tl_event *list = NULL;
  size_t used = 0, room = 0;
  char line[TL_KEY_MAX + 64], word[8];

  if (file == NULL) {
    fprintf (stderr, "history %s: %s\n", path, strerror (errno));
    return -1;
  }
  while (fgets (line, sizeof line, file) != NULL) {
    if (used == room) {
      struct tl_event *more;

      room = room ? room * 2 : 4096;
      more = realloc (list, room * sizeof *list);
      if (more == NULL) {
        fprintf (stderr, "history %s: %s\n", path, strerror (errno));
        goto fail;
      }
      list = more;
    }
    if (sscanf (line, "%7s %63s %" SCNx64 " %" SCNu64, word, list[used].key,
                &list[used].sum, &list[used].usec) != 4 ||
        (strcmp (word, "done") != 0 && strcmp (word, "begin") != 0)) {
      fprintf (stderr, "history %s, line %zu: not an event\n", path, used + 1);
      goto fail;
    }
    list[used].done = strcmp (word, "done") == 0;
    list[used].line = used;
    used++;
  }
  fclose (file);
  if (used > 0)
    qsort (list, used, sizeof *list, compare);
  *events = list;
  *count = used;
  return 0;

fail:
  free (list);
  fclose (file);
  return -1;
}

/* Is `sum` the last acknowledged content of the events `first` to `last` of
 * one key, or one that was begun after that? */
static bool
acceptable (const struct tl_event *events, size_t first, size_t last,
            uint64_t sum)
{
  for (size_t i = last + 1; i-- > first;) {
    if (events[i].sum == sum)
      return true;
    if (events[i].done)
      return false;
  }
  return false;
}

void
tl_history_judge (const struct tl_event *events, size_t count,
                  tl_read_back *read_back, void *opaque,
                  struct tl_verdict *verdict)
{
  size_t last;

  verdict->acknowledged = verdict->lost = 0;
  for (size_t first = 0; first < count; first = last + 1) {
    size_t done = 0;
    uint64_t sum;
    char reason[160];

    for (last = first;; last++) {
      done += events[last].done;
      if (last + 1 == count ||
          strcmp (events[first].key, events[last + 1].key) != 0)
        break;
    }
    verdict->acknowledged += done;
    if (done == 0)
      continue;
    if (read_back (opaque, events[first].key, &sum, reason, sizeof reason) ==
        0) {
      if (acceptable (events, first, last, sum))
        continue;
      snprintf (reason, sizeof reason, "another content");
    }
    if (verdict->lost++ < NAMED_LOSSES)
      fprintf (stderr, "lost: %s: %s\n", events[first].key, reason);
  }
  if (verdict->lost > NAMED_LOSSES)
    fprintf (stderr, "lost: and %zu more\n", verdict->lost - NAMED_LOSSES);
}
