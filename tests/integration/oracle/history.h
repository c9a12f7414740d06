/* What a writer began and what was acknowledged to it: an append-only text
 * file, one line per event, kept outside the device under test. Both writers
 * use it, and it alone decides what counts as lost. */
#ifndef TL_ORACLE_HISTORY_H
#define TL_ORACLE_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TL_KEY_MAX 64

/* One line: `begin KEY SUM MICROSECONDS` or `done KEY SUM MICROSECONDS`. */
struct tl_event {
  char key[TL_KEY_MAX];
  uint64_t sum;  /* XXH64 of the content */
  uint64_t usec; /* CLOCK_MONOTONIC */
  size_t line;
  bool done;
};

struct tl_verdict {
  size_t acknowledged; /* events `done` */
  size_t lost;         /* keys whose content is neither the last acknowledged
                          one nor one begun after it */
};

/* Microseconds of CLOCK_MONOTONIC. Any thread. */
uint64_t tl_now_usec (void);

/* Fills `size` bytes at `data`, different for every `seed`. Any thread. */
void tl_fill (unsigned char *data, size_t size, uint64_t seed);

/* Opens `path` for appending, created where missing. Returns the descriptor,
 * which the caller closes, or -1 with errno. */
int tl_history_open (const char *path);

/* Appends one event, in a single write, so that threads may share `fd`.
 * Returns 0, or -1 with errno. */
int tl_history_note (int fd, bool done, const char *key, uint64_t sum);

/* Reads a whole history, sorted by key and then by time. The caller frees
 * `*events`. Returns 0, or -1 after one line on stderr. */
int tl_history_load (const char *path, struct tl_event **events, size_t *count);

/* Reads back what is stored under `key`. Returns 0 and its XXH64, or -1 after
 * the reason was put into `reason`. */
typedef int tl_read_back (void *opaque, const char *key, uint64_t *sum,
                          char *reason, size_t size);

/* Compares every key with what `read_back` finds. The first losses are named
 * on stderr. */
void tl_history_judge (const struct tl_event *events, size_t count,
                       tl_read_back *read_back, void *opaque,
                       struct tl_verdict *verdict);

#endif
