/* Stores that a test opens, and why one was refused. */
#ifndef TWINLOG_UNIT_STORES_H
#define TWINLOG_UNIT_STORES_H

#include "store/store.h"

#include "unit.h"

#define MIB (UINT64_C (1) << 20)

static char error[512];

static inline struct tl_store *
open_store (uint64_t size, const char *path, bool lock)
{
  struct tl_store_config config = {.size = size, .path = path, .lock = lock};
  struct tl_store *store = NULL;

  ck_assert_msg (tl_store_open (&store, &config, error, sizeof error) == 0,
                 "%s", error);
  return store;
}

/* Opening fails and says WORDS. */
static inline void
refuse (uint64_t size, const char *path, bool lock, const char *words)
{
  struct tl_store_config config = {.size = size, .path = path, .lock = lock};
  struct tl_store *store = NULL;

  ck_assert_int_eq (tl_store_open (&store, &config, error, sizeof error), -1);
  ck_assert_ptr_null (store);
  assert_says (error, words);
  if (path)
    assert_says (error, path);
}

static inline bool
all_zero (const unsigned char *bytes, uint64_t length)
{
  while (length > 0 && *bytes == 0) {
    bytes++;
    length--;
  }
  return length == 0;
}

#endif
