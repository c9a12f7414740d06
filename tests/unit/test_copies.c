/* Copies that are made without the lock: whoever uses the store finds the
 * bytes that were written, in the order of the writes, and waits for no other.
 */
#include "stores.h"

#include "store/internal.h"

#include <pthread.h>
#include <sched.h>

#define PART (64u << 10) /* of a write that is copied later */
#define PARTS 40u
#define SIZE ((uint64_t)PARTS * PART)

static unsigned char written[PART], other[PART], bytes[SIZE];

static struct tl_store *
open_memory (void)
{
  memset (written, 'w', sizeof written);
  memset (other, 'o', sizeof other);
  return open_store (SIZE, NULL, false);
}

static bool
all_are (const unsigned char *at, unsigned char value, uint64_t length)
{
  while (length > 0 && *at == value) {
    at++;
    length--;
  }
  return length == 0;
}

/* Begin a write to PART number PLACE, whose copy is then COPY's. */
static void
begin (struct tl_store *store, unsigned place, struct tl_copy *copy)
{
  tl_store_write_later (store, (uint64_t)place * PART, PART, written);
  tl_store_take (store, copy);
}

START_TEST (small_ones_are_made_at_once)
{
  struct tl_store *store = open_memory ();
  struct tl_copy copy;

  tl_store_take (store, &copy);
  ck_assert_uint_eq (copy.length, 0);
  tl_store_write_later (store, 5, TL_BLOCK, written);
  tl_store_take (store, &copy);
  ck_assert_uint_eq (copy.length, 0);
  tl_store_copy (store, &copy);
  tl_store_read (store, 0, TL_BLOCK, bytes);
  ck_assert (all_zero (bytes, 5));
  ck_assert (all_are (bytes + 5, 'w', TL_BLOCK - 5));
  tl_store_close (store);
}
END_TEST

/* What has a journal has the write in it until it is made. */
START_TEST (in_a_file_all_are_made_at_once)
{
  struct tl_store *store = open_store (SIZE, unit_path ("file"), false);
  struct tl_copy copy;

  memset (written, 'w', sizeof written);
  ck_assert_int_eq (tl_store_reserve (store, 0, PART), 0);
  begin (store, 0, &copy);
  ck_assert_uint_eq (copy.length, 0);
  tl_store_read (store, 0, PART, bytes);
  ck_assert (all_are (bytes, 'w', PART));
  tl_store_close (store);
}
END_TEST

START_TEST (who_began_it_does_not_wait)
{
  struct tl_store *store = open_memory ();
  struct tl_copy copy;

  tl_store_write_later (store, 0, PART, written);
  tl_store_read (store, 0, PART, bytes);
  ck_assert (all_are (bytes, 'w', PART));

  tl_store_write_later (store, 0, PART, written);
  tl_store_write_later (store, PART / 2, PART, other);
  tl_store_zero (store, PART, 10);
  tl_store_take (store, &copy);
  ck_assert_uint_eq (copy.length, 0);
  tl_store_read (store, 0, 2 * PART, bytes);
  ck_assert (all_are (bytes, 'w', PART / 2));
  ck_assert (all_are (bytes + PART / 2, 'o', PART / 2));
  ck_assert (all_zero (bytes + PART, 10));
  ck_assert (all_are (bytes + PART + 10, 'o', PART / 2 - 10));
  tl_store_close (store);
}
END_TEST

START_TEST (what_is_apart_does_not_wait)
{
  struct tl_store *store = open_memory ();
  struct tl_copy first, second;

  begin (store, 1, &first);
  ck_assert_uint_eq (first.length, PART);
  begin (store, 2, &second);
  ck_assert_uint_eq (second.length, PART);
  tl_store_read (store, 0, PART, bytes);
  ck_assert (all_zero (bytes, PART));
  tl_store_write (store, PART - 1, 1, "x");
  tl_store_zero (store, 3 * (uint64_t)PART, PART);

  /* Its blocks have content from the beginning on. */
  ck_assert (tl_map_test (tl_store_allocated (store), PART / TL_BLOCK));
  tl_store_copy (store, &second);
  tl_store_copy (store, &first);
  tl_store_copy (store, &first); /* there is nothing left of it */
  tl_store_read (store, PART - 1, 2 * PART + 1, bytes);
  ck_assert_int_eq (bytes[0], 'x');
  ck_assert (all_are (bytes + 1, 'w', 2 * PART));
  tl_store_close (store);
}
END_TEST

START_TEST (too_many_are_made_at_once)
{
  struct tl_store *store = open_memory ();
  struct tl_copy copies[TL_COPIES], copy;

  for (unsigned i = 0; i < TL_COPIES; i++) {
    begin (store, i, &copies[i]);
    ck_assert_uint_eq (copies[i].length, PART);
  }
  begin (store, TL_COPIES, &copy);
  ck_assert_uint_eq (copy.length, 0);
  tl_store_read (store, (uint64_t)TL_COPIES * PART, PART, bytes);
  ck_assert (all_are (bytes, 'w', PART));
  tl_store_copy (store, &copies[7]);
  begin (store, TL_COPIES, &copy);
  ck_assert_uint_eq (copy.length, PART);
  tl_store_copy (store, &copy);
  for (unsigned i = 0; i < TL_COPIES; i++)
    tl_store_copy (store, &copies[i]);
  tl_store_read (store, 0, SIZE, bytes);
  ck_assert (all_are (bytes, 'w', (TL_COPIES + 1) * PART));
  tl_store_close (store);
}
END_TEST

/* ---- Who waits ---- */

enum use { READ, WRITE, WRITE_LATER, ZERO, CLEAR, USES };

struct waiter {
  struct tl_store *store;
  enum use use;
  _Atomic bool done;
};

/* As one that holds the lock: use the second half of PART 0 and the first of
 * PART 1.
 */
static void *
waiter_main (void *opaque)
{
  struct waiter *waiter = opaque;
  struct tl_store *store = waiter->store;
  struct tl_copy copy;

  switch (waiter->use) {
  case READ:
    tl_store_read (store, PART / 2, PART, bytes + PART / 2);
    break;
  case WRITE:
    tl_store_write (store, PART / 2, PART, other);
    break;
  case WRITE_LATER:
    tl_store_write_later (store, PART / 2, PART, other);
    tl_store_take (store, &copy);
    tl_store_copy (store, &copy);
    break;
  case ZERO:
    tl_store_zero (store, PART / 2, PART);
    break;
  case CLEAR:
  case USES:
    tl_store_clear (store);
    break;
  }
  atomic_store (&waiter->done, true);
  return NULL;
}

/* The first half of PART 0 and the second of PART 1 are 'w'; MIDDLE is what is
 * between.
 */
static void
check_use (struct tl_store *store, enum use use)
{
  static const unsigned char middle[USES] = {'w', 'o', 'o', 0, 0};
  unsigned char edge = use == CLEAR ? 0 : 'w';

  if (use == READ)
    ck_assert (all_are (bytes + PART / 2, 'w', PART));
  tl_store_read (store, 0, 2 * PART, bytes);
  ck_assert (all_are (bytes, edge, PART / 2));
  ck_assert (all_are (bytes + PART / 2, middle[use], PART));
  ck_assert (all_are (bytes + PART / 2 + PART, edge, PART / 2));
}

static bool
somebody_waits (struct tl_store *store)
{
  return atomic_load (&store->copies.busy) >> TL_COPIES;
}

/* Two copies are under way, both of which the other thread has to wait for. */
START_TEST (who_touches_the_bytes_waits)
{
  for (enum use use = READ; use < USES; use++) {
    struct tl_store *store = open_memory ();
    struct waiter waiter = {.store = store, .use = use};
    struct tl_copy copies[2];
    pthread_t thread;

    for (unsigned i = 0; i < 2; i++)
      begin (store, i, &copies[i]);
    ck_assert_int_eq (pthread_create (&thread, NULL, waiter_main, &waiter), 0);
    for (unsigned i = 0; i < 2; i++) {
      while (!somebody_waits (store))
        sched_yield ();
      ck_assert (!atomic_load (&waiter.done));
      tl_store_copy (store, &copies[(use + i) % 2]);
    }
    pthread_join (thread, NULL);
    ck_assert (!somebody_waits (store));
    check_use (store, use);
    tl_store_close (store);
  }
}
END_TEST

/* ---- Many at once ---- */

#define THREADS 6u
#define ROUNDS 2000u
#define FEW (8u * PART) /* so that they meet */

struct field {
  struct tl_store *store;
  pthread_mutex_t lock;
  unsigned char model[FEW]; /* what is in the store, to who holds the lock */
  _Atomic unsigned seed, wrong, later;
};

/* One request, as a worker would make it. */
static void
one_request (struct field *field, uint64_t *state, unsigned char *buffer)
{
  uint64_t length = unit_random (state) % (2 * PART) + 1;
  uint64_t offset = unit_random (state) % (FEW - length + 1);
  uint64_t what = unit_random (state) % 10;
  struct tl_copy copy;

  if (what < 6)
    memset (buffer, (int)(unit_random (state) % 255 + 1), length);
  pthread_mutex_lock (&field->lock);
  if (what < 6) {
    tl_store_write_later (field->store, offset, length, buffer);
    memcpy (field->model + offset, buffer, length);
  } else if (what < 9) {
    tl_store_read (field->store, offset, length, buffer);
    if (memcmp (buffer, field->model + offset, length) != 0)
      atomic_fetch_add (&field->wrong, 1);
  } else {
    tl_store_zero (field->store, offset, length);
    memset (field->model + offset, 0, length);
  }
  tl_store_take (field->store, &copy);
  pthread_mutex_unlock (&field->lock);
  if (copy.length > 0) {
    atomic_fetch_add (&field->later, 1);
    if (what < 3)
      sched_yield ();
  }
  tl_store_copy (field->store, &copy);
  memset (buffer, 0xa5, length);
}

static void *
field_main (void *opaque)
{
  struct field *field = opaque;
  uint64_t state = atomic_fetch_add (&field->seed, 1) + 1;
  unsigned char *buffer = malloc (2 * PART);

  for (unsigned i = 0; buffer && i < ROUNDS; i++)
    one_request (field, &state, buffer);
  free (buffer);
  return NULL;
}

START_TEST (many_at_once)
{
  static struct field field = {.lock = PTHREAD_MUTEX_INITIALIZER};
  pthread_t threads[THREADS];

  field.store = open_memory ();
  for (unsigned i = 0; i < THREADS; i++)
    ck_assert_int_eq (pthread_create (&threads[i], NULL, field_main, &field),
                      0);
  for (unsigned i = 0; i < THREADS; i++)
    pthread_join (threads[i], NULL);
  ck_assert_uint_eq (field.wrong, 0);
  ck_assert_uint_gt (field.later, ROUNDS);
  ck_assert_uint_eq (atomic_load (&field.store->copies.busy), 0);
  tl_store_read (field.store, 0, FEW, bytes);
  ck_assert_mem_eq (bytes, field.model, FEW);
  tl_store_close (field.store);
}
END_TEST

UNIT_MAIN ("copies", small_ones_are_made_at_once,
           in_a_file_all_are_made_at_once, who_began_it_does_not_wait,
           what_is_apart_does_not_wait, too_many_are_made_at_once,
           who_touches_the_bytes_waits, many_at_once)
