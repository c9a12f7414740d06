#include "stores.h"

#include <inttypes.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define NOBODY 65534

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define MLOCK_WORKS 0 /* these sanitizers leave it out */
#else
#define MLOCK_WORKS 1
#endif

/* Locked memory of this process, in bytes. */
static uint64_t
locked (void)
{
  FILE *file = fopen ("/proc/self/status", "r");
  char line[256];
  uint64_t kib = 0;

  ck_assert_ptr_nonnull (file);
  while (fgets (line, sizeof line, file))
    if (sscanf (line, "VmLck: %" SCNu64, &kib) == 1)
      break;
  fclose (file);
  return kib << 10;
}

/* Random writes, zeroes, reads and clears against a plain array, with what
 * must be allocated.  SIZE is that of the store.
 */
static void
play (struct tl_store *store, uint64_t size, unsigned rounds)
{
  const struct tl_map *map = tl_store_allocated (store);
  unsigned char *model = calloc (1, size), *buffer = malloc (size);
  bool *allocated = calloc (size / TL_BLOCK, sizeof *allocated);
  uint64_t state = size;

  ck_assert_uint_eq (map->blocks, size / TL_BLOCK);
  for (unsigned round = 0; round < rounds; round++) {
    uint64_t offset = unit_random (&state) % size;
    uint64_t length = unit_random (&state) % (size - offset) + 1;
    uint64_t what = unit_random (&state) % 100;

    if (unit_random (&state) % 2) /* small ones more often */
      length = length % 10000 + 1;
    if (unit_random (&state) % 2) { /* whole blocks more often */
      offset -= offset % TL_BLOCK;
      length = (length + TL_BLOCK - 1) / TL_BLOCK * TL_BLOCK;
    }
    if (length > size - offset)
      length = size - offset;
    if (what < 40) {
      for (uint64_t i = 0; i < length; i++)
        buffer[i] = (unsigned char)(round + i + 1);
      ck_assert_int_eq (tl_store_reserve (store, offset, length), 0);
      tl_store_write (store, offset, length, buffer);
      memcpy (model + offset, buffer, length);
      for (uint64_t i = 0; i < tl_block_count (offset, length); i++)
        allocated[tl_block_first (offset) + i] = true;
    } else if (what < 70) {
      tl_store_zero (store, offset, length);
      memset (model + offset, 0, length);
      for (uint64_t i = (offset + TL_BLOCK - 1) / TL_BLOCK;
           (i + 1) * TL_BLOCK <= offset + length; i++)
        allocated[i] = false;
    } else if (what < 99) {
      memset (buffer, 0xee, length);
      tl_store_read (store, offset, length, buffer);
      ck_assert_mem_eq (buffer, model + offset, length);
    } else {
      tl_store_clear (store);
      memset (model, 0, size);
      memset (allocated, 0, size / TL_BLOCK * sizeof *allocated);
    }
    for (uint64_t i = 0; i < size / TL_BLOCK; i++)
      ck_assert_msg (tl_map_test (map, i) == allocated[i],
                     "round %u, block %" PRIu64, round, i);
  }
  tl_store_read (store, 0, size, buffer);
  ck_assert_mem_eq (buffer, model, size);
  free (allocated);
  free (buffer);
  free (model);
}

START_TEST (memory_agrees_with_a_plain_array)
{
  static const uint64_t blocks[] = {1, 2, 64, 65};

  for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
    struct tl_store *store = open_store (blocks[i] * TL_BLOCK, NULL, false);

    play (store, blocks[i] * TL_BLOCK, 3000);
    tl_store_close (store);
  }
}
END_TEST

START_TEST (file_agrees_with_a_plain_array)
{
  struct tl_store *store = open_store (64 * TL_BLOCK, unit_path ("m"), false);

  play (store, 64 * TL_BLOCK, 3000);
  tl_store_close (store);
}
END_TEST

START_TEST (locked_memory_agrees_with_a_plain_array)
{
  struct tl_store *store = open_store (16 * TL_BLOCK, NULL, true);

  play (store, 16 * TL_BLOCK, 3000);
  tl_store_close (store);
}
END_TEST

START_TEST (nothing_of_no_length)
{
  struct tl_store *store = open_store (4 * TL_BLOCK, NULL, false);

  tl_store_write (store, 4 * TL_BLOCK, 0, NULL);
  tl_store_read (store, 4 * TL_BLOCK, 0, NULL);
  tl_store_zero (store, 4 * TL_BLOCK, 0);
  tl_store_zero (store, 5, 0);
  ck_assert_int_eq (tl_store_reserve (store, 4 * TL_BLOCK, 0), 0);
  ck_assert_uint_eq (tl_store_allocated (store)->count, 0);
  tl_store_close (store);
}
END_TEST

START_TEST (zero_gives_memory_back)
{
  const uint64_t size = 8 * MIB;
  struct tl_store *store = open_store (size, NULL, true);
  unsigned char *bytes = malloc (size);

  ck_assert_uint_eq (tl_store_resident (store), size); /* prefaulted */
  memset (bytes, 1, size);
  tl_store_write (store, 0, size, bytes);
  ck_assert_uint_eq (tl_store_resident (store), size);
  /* All but the edges, which share their blocks with what stays. */
  tl_store_zero (store, 100, size / 2);
  ck_assert_uint_eq (tl_store_resident (store), size / 2 + TL_BLOCK);
  tl_store_zero (store, 0, size);
  ck_assert_uint_eq (tl_store_resident (store), 0);
  tl_store_read (store, 0, size, bytes);
  ck_assert (all_zero (bytes, size));
  ck_assert_uint_eq (tl_store_resident (store), 0); /* reading takes none */
  tl_store_write (store, TL_BLOCK, 1, "x");
  ck_assert_uint_eq (tl_store_resident (store), TL_BLOCK);
  tl_store_clear (store);
  ck_assert_uint_eq (tl_store_resident (store), 0);
  ck_assert_uint_eq (tl_store_allocated (store)->count, 0);
  free (bytes);
  tl_store_close (store);
}
END_TEST

START_TEST (small_store_takes_no_memory_before_it_is_used)
{
  struct tl_store *store = open_store (64 * TL_BLOCK, NULL, false);
  unsigned char bytes[TL_BLOCK];

  tl_store_read (store, 0, sizeof bytes, bytes);
  tl_store_zero (store, 0, 64 * TL_BLOCK);
  tl_store_clear (store);
  ck_assert_uint_eq (tl_store_resident (store), 0);
  tl_store_write (store, 0, sizeof bytes, bytes);
  ck_assert_uint_eq (tl_store_resident (store), TL_BLOCK);
  tl_store_close (store);
}
END_TEST

/* A part of a block that is written makes the rest of it zero. */
START_TEST (rest_of_a_block_is_zero)
{
  struct tl_store *store = open_store (4 * TL_BLOCK, NULL, false);
  unsigned char bytes[TL_BLOCK];

  memset (bytes, 0xff, sizeof bytes);
  tl_store_write (store, 0, TL_BLOCK, bytes);
  tl_store_zero (store, 0, TL_BLOCK);
  tl_store_write (store, 10, 1, "x");
  tl_store_read (store, 0, TL_BLOCK, bytes);
  ck_assert_int_eq (bytes[10], 'x');
  ck_assert (all_zero (bytes, 10));
  ck_assert (all_zero (bytes + 11, TL_BLOCK - 11));
  tl_store_close (store);
}
END_TEST

struct seen {
  uint64_t done, total;
  unsigned calls;
};

static void
on_progress (void *opaque, uint64_t done, uint64_t total)
{
  struct seen *seen = opaque;

  ck_assert_uint_gt (done, seen->done);
  seen->done = done;
  seen->total = total;
  seen->calls++;
}

START_TEST (prefault_shows_progress)
{
  struct seen seen = {0};
  struct tl_store_config config = {
      .size = 72 * MIB, .progress = on_progress, .opaque = &seen};
  struct tl_store *store;

  ck_assert_int_eq (tl_store_open (&store, &config, error, sizeof error), 0);
  ck_assert_uint_gt (seen.calls, 1);
  ck_assert_uint_eq (seen.done, config.size);
  ck_assert_uint_eq (seen.total, config.size);
  ck_assert_uint_eq (tl_store_resident (store), config.size);
  ck_assert_uint_eq (tl_store_allocated (store)->count, 0);
  tl_store_close (store);
}
END_TEST

/* Only a store that is filled at once asks for large pages. */
START_TEST (large_pages_are_asked_for)
{
  for (unsigned large = 0; large < 2; large++) {
    struct tl_store *store =
        open_store (large ? 32 * MIB : 8 * MIB, NULL, false);
    FILE *file = fopen ("/proc/self/smaps", "r");
    bool ours = false, asked = false;
    char line[512];

    ck_assert_ptr_nonnull (file);
    while (fgets (line, sizeof line, file)) {
      ours = ours || strstr (line, "/memfd:twinlog");
      if (ours && strncmp (line, "VmFlags:", 8) == 0) {
        asked = strstr (line, " hg") != NULL;
        break;
      }
    }
    fclose (file);
    ck_assert (ours);
    ck_assert (asked == large ||
               access ("/sys/kernel/mm/transparent_hugepage", F_OK) == -1);
    tl_store_close (store);
  }
}
END_TEST

START_TEST (lock_and_relock)
{
  const uint64_t size = 8 * MIB; /* the usual limit of the unprivileged */
  struct rlimit limit;
  struct tl_store *store;
  uint64_t before = locked ();
  pid_t child;
  int status;

  ck_assert_int_eq (getrlimit (RLIMIT_MEMLOCK, &limit), 0);
  if (!MLOCK_WORKS || (limit.rlim_max < size + before && geteuid () != 0))
    return; /* refused, which the_lock_limit_is_named checks */
  store = open_store (size, NULL, true);
  ck_assert_uint_eq (locked (), before + size);
  ck_assert_int_eq (tl_store_relock (store, error, sizeof error), 0);
  ck_assert_uint_eq (locked (), before + size);
  child = fork ();
  if (child == 0) {
    if (locked () != 0)
      _exit (1);
    if (tl_store_relock (store, error, sizeof error) != 0)
      _exit (2);
    if (locked () != size)
      _exit (3);
    if (tl_store_relock (store, error, sizeof error) != 0 || locked () != size)
      _exit (4);
    tl_store_write (store, 0, 5, "child");
    _exit (0);
  }
  ck_assert_int_gt (child, 0);
  ck_assert_int_eq (waitpid (child, &status, 0), child);
  ck_assert_int_eq (status, 0);
  tl_store_close (store);
  ck_assert_uint_eq (locked (), before);
}
END_TEST

START_TEST (relock_of_an_unlocked_store)
{
  struct tl_store *store = open_store (TL_BLOCK, NULL, false);
  uint64_t before = locked ();

  ck_assert_int_eq (tl_store_relock (store, error, sizeof error), 0);
  ck_assert_uint_eq (locked (), before);
  tl_store_close (store);
}
END_TEST

START_TEST (the_lock_limit_is_named)
{
  struct rlimit limit = {.rlim_cur = 64 << 10, .rlim_max = MIB};

  ck_assert_int_eq (setrlimit (RLIMIT_MEMLOCK, &limit), 0);
  if (geteuid () == 0)
    ck_assert_int_eq (setuid (NOBODY), 0); /* no capability any more */
  refuse (2 * MIB, NULL, true, "2048 KiB are needed");
  assert_says (error, "RLIMIT_MEMLOCK is 1024 KiB");
  assert_says (error, "lock=off");
  /* The soft limit alone is no reason. */
  tl_store_close (open_store (512 << 10, NULL, true));
  tl_store_close (open_store (2 * MIB, NULL, false));
}
END_TEST

START_TEST (sizes_that_are_none)
{
  refuse (0, NULL, false, "cannot be the size");
  refuse (1, NULL, false, "cannot be the size");
  refuse (TL_BLOCK - 1, NULL, false, "cannot be the size");
  refuse (TL_BLOCK + 512, NULL, false, "4608");
  refuse (UINT64_MAX - TL_BLOCK + 1, NULL, false, "cannot be the size");
}
END_TEST

START_TEST (larger_than_memory)
{
  refuse (UINT64_C (1) << 60, NULL, true, "not enough memory");
  refuse (UINT64_C (1) << 60, NULL, false, "MiB are available");
}
END_TEST

START_TEST (many_small_stores)
{
  for (int i = 0; i < 2000; i++) { /* none of them leaves anything open */
    struct tl_store *store = open_store (64 * TL_BLOCK, NULL, false);

    tl_store_write (store, 0, 5, "hello");
    tl_store_close (store);
  }
}
END_TEST

UNIT_MAIN ("store", memory_agrees_with_a_plain_array,
           file_agrees_with_a_plain_array,
           locked_memory_agrees_with_a_plain_array, nothing_of_no_length,
           zero_gives_memory_back,
           small_store_takes_no_memory_before_it_is_used,
           rest_of_a_block_is_zero, prefault_shows_progress,
           large_pages_are_asked_for, lock_and_relock,
           relock_of_an_unlocked_store, the_lock_limit_is_named,
           sizes_that_are_none, larger_than_memory, many_small_stores)
