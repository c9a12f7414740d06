/* A store that outlives its process: what it keeps, when that is believed, and
 * that no end of the process leaves a block torn.
 */
#include "stores.h"

#include "core/core.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#define BLOCKS 64u
#define SIZE ((uint64_t)BLOCKS * TL_BLOCK)

static struct tl_store *
open_kept (const char *name)
{
  return open_store (SIZE, unit_path (name), false);
}

START_TEST (memory_keeps_nothing)
{
  struct tl_store *store = open_store (SIZE, NULL, false);
  uint64_t *dirty;

  ck_assert_ptr_null (tl_store_kept (store, &dirty));
  tl_store_close (store);
}
END_TEST

START_TEST (all_is_there_again)
{
  struct tl_store *store = open_kept ("again");
  unsigned char bytes[TL_BLOCK], is[TL_BLOCK];
  uint64_t *dirty, incarnation;
  struct tl_kept *kept = tl_store_kept (store, &dirty);

  ck_assert_uint_ne (kept->incarnation, 0);
  ck_assert_uint_eq (kept->data, TL_EMPTY);
  incarnation = kept->incarnation;
  kept->data = TL_COMPLETE;
  kept->map_incarnation = 7;
  dirty[0] = 5;
  memset (bytes, 'x', sizeof bytes);
  tl_store_write (store, 3 * TL_BLOCK, TL_BLOCK, bytes);
  tl_store_close (store);

  store = open_kept ("again");
  kept = tl_store_kept (store, &dirty);
  ck_assert_uint_eq (kept->incarnation, incarnation);
  ck_assert_uint_eq (kept->data, TL_COMPLETE);
  ck_assert_uint_eq (kept->map_incarnation, 7);
  ck_assert_uint_eq (dirty[0], 5);
  ck_assert_uint_eq (tl_store_allocated (store)->count, 1);
  tl_store_read (store, 3 * TL_BLOCK, TL_BLOCK, is);
  ck_assert_mem_eq (is, bytes, sizeof is);
  tl_store_close (store);
}
END_TEST

/* Change one byte of the header file at OFFSET. */
static void
damage (const char *name, off_t offset)
{
  int fd = open (unit_path (name), O_RDWR);
  char byte;

  ck_assert_int_ne (fd, -1);
  ck_assert_int_eq (pread (fd, &byte, 1, offset), 1);
  byte ^= 1;
  ck_assert_int_eq (pwrite (fd, &byte, 1, offset), 1);
  close (fd);
}

/* Is a store that was COMPLETE believed after DAMAGE_AT is changed? */
static bool
believed (const char *name, off_t damage_at, bool new_file)
{
  struct tl_store *store = open_kept (name);
  uint64_t *dirty, incarnation;
  struct tl_kept *kept = tl_store_kept (store, &dirty);
  char header[64];
  bool same;

  kept->data = TL_COMPLETE;
  incarnation = kept->incarnation;
  tl_store_close (store);
  snprintf (header, sizeof header, "%s.header", name);
  if (damage_at >= 0)
    damage (header, damage_at);
  if (new_file)
    ck_assert_int_eq (unlink (unit_path (name)), 0);
  store = open_kept (name);
  kept = tl_store_kept (store, &dirty);
  same = kept->incarnation == incarnation;
  ck_assert_uint_eq (kept->data, same ? TL_COMPLETE : TL_EMPTY);
  tl_store_close (store);
  return same;
}

START_TEST (only_what_is_its_own_is_believed)
{
  ck_assert (believed ("same", -1, false));
  ck_assert (!believed ("format", 3, false)); /* another format */
  ck_assert (!believed ("boot", 20, false));  /* another boot */
  ck_assert (!believed ("file", -1, true));   /* another file */
}
END_TEST

/* Write and zero for ever, whole blocks of one byte each. */
static void
scribble (const char *name, uint64_t seed)
{
  struct tl_store *store = open_kept (name);
  static unsigned char bytes[BLOCKS * TL_BLOCK];

  for (;;) {
    uint64_t random = unit_random (&seed);
    uint64_t first = random % BLOCKS;
    uint64_t count = 1 + (random >> 8) % (BLOCKS - first);

    if ((random >> 16) % 8 == 0) {
      /* Parts of two blocks, which are zero or not, never half. */
      tl_store_zero (store, first * TL_BLOCK, count * TL_BLOCK);
      continue;
    }
    memset (bytes, (int)(random >> 24 & 0xff), count * TL_BLOCK);
    tl_store_write (store, first * TL_BLOCK, count * TL_BLOCK, bytes);
  }
}

START_TEST (no_end_leaves_a_block_torn)
{
  uint64_t seed = 42;

  for (unsigned round = 0; round < 300; round++) {
    struct timespec wait = {.tv_nsec = 200000};
    unsigned char bytes[TL_BLOCK];
    struct tl_store *store;
    pid_t child = fork ();
    int status;

    ck_assert_int_ne (child, -1);
    if (child == 0)
      scribble ("torn", seed + round);
    wait.tv_nsec += (long)(unit_random (&seed) % 1500000);
    nanosleep (&wait, NULL);
    kill (child, SIGKILL);
    ck_assert_int_eq (waitpid (child, &status, 0), child);
    ck_assert (WIFSIGNALED (status));

    store = open_kept ("torn");
    for (unsigned i = 0; i < BLOCKS; i++) {
      tl_store_read (store, (uint64_t)i * TL_BLOCK, TL_BLOCK, bytes);
      ck_assert_msg (memcmp (bytes, bytes + 1, TL_BLOCK - 1) == 0,
                     "round %u: block %u is torn", round, i);
    }
    tl_store_close (store);
  }
}
END_TEST

UNIT_MAIN ("kept", memory_keeps_nothing, all_is_there_again,
           only_what_is_its_own_is_believed, no_end_leaves_a_block_torn)
