#include "core/map.h"

#include "unit.h"

/* Compare a map with an array of bool, in every way it can be asked. */
static void
compare (const struct tl_map *map, const bool *model, uint64_t blocks)
{
  uint64_t i, count = 0, next_set = blocks, next_clear = blocks;

  for (i = blocks; i-- > 0;) {
    ck_assert_int_eq (tl_map_test (map, i), model[i]);
    count += model[i];
    if (model[i])
      next_set = i;
    else
      next_clear = i;
    ck_assert_uint_eq (tl_map_next (map, i, true), next_set);
    ck_assert_uint_eq (tl_map_next (map, i, false), next_clear);
    ck_assert_uint_eq (tl_map_run (map, i, blocks),
                       (model[i] ? next_clear : next_set) - i);
    ck_assert_uint_eq (tl_map_run (map, i, 1), 1);
    ck_assert_int_eq (tl_map_any (map, i, blocks - i), next_set < blocks);
  }
  ck_assert_uint_eq (map->count, count);
  ck_assert_uint_eq (tl_map_next (map, blocks, true), blocks);
  ck_assert_uint_eq (tl_map_next (map, blocks, false), blocks);
}

START_TEST (new_map_is_empty)
{
  struct tl_map map;

  ck_assert_int_eq (tl_map_init (&map, 130), 0);
  ck_assert_uint_eq (map.blocks, 130);
  ck_assert_uint_eq (map.count, 0);
  ck_assert (!tl_map_any (&map, 0, 130));
  ck_assert_uint_eq (tl_map_next (&map, 0, true), 130);
  ck_assert_uint_eq (tl_map_next (&map, 0, false), 0);
  ck_assert_uint_eq (tl_map_run (&map, 5, 1000), 125);
  ck_assert_uint_eq (tl_map_run (&map, 5, 10), 10);
  tl_map_free (&map);
}
END_TEST

START_TEST (empty_range_changes_nothing)
{
  struct tl_map map;

  ck_assert_int_eq (tl_map_init (&map, 64), 0);
  tl_map_set (&map, 0, 0);
  tl_map_set (&map, 64, 0);
  ck_assert_uint_eq (map.count, 0);
  tl_map_set (&map, 0, 64);
  tl_map_clear (&map, 10, 0);
  tl_map_clear (&map, 64, 0);
  ck_assert_uint_eq (map.count, 64);
  ck_assert (!tl_map_any (&map, 10, 0));
  tl_map_free (&map);
}
END_TEST

START_TEST (setting_twice_counts_once)
{
  struct tl_map map;

  ck_assert_int_eq (tl_map_init (&map, 200), 0);
  tl_map_set (&map, 10, 100);
  tl_map_set (&map, 50, 100);
  ck_assert_uint_eq (map.count, 140);
  tl_map_clear (&map, 0, 60);
  tl_map_clear (&map, 0, 60);
  ck_assert_uint_eq (map.count, 90);
  tl_map_free (&map);
}
END_TEST

START_TEST (agrees_with_a_plain_array)
{
  static const uint64_t sizes[] = {1, 2, 63, 64, 65, 127, 128, 129, 300};
  bool model[300];
  uint64_t state = 1;

  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
    uint64_t blocks = sizes[s];
    struct tl_map map;

    memset (model, 0, sizeof model);
    ck_assert_int_eq (tl_map_init (&map, blocks), 0);
    compare (&map, model, blocks);
    for (int round = 0; round < 200; round++) {
      uint64_t first = unit_random (&state) % blocks;
      uint64_t count = 1 + unit_random (&state) % (blocks - first);
      bool set = unit_random (&state) & 1;

      if (set)
        tl_map_set (&map, first, count);
      else
        tl_map_clear (&map, first, count);
      for (uint64_t i = first; i < first + count; i++)
        model[i] = set;
      compare (&map, model, blocks);
    }
    tl_map_free (&map);
  }
}
END_TEST

START_TEST (free_takes_a_zeroed_map_and_twice)
{
  struct tl_map map = {0};

  tl_map_free (&map);
  ck_assert_int_eq (tl_map_init (&map, 1), 0);
  tl_map_free (&map);
  tl_map_free (&map);
  ck_assert_ptr_null (map.words);
}
END_TEST

START_TEST (blocks_of_byte_ranges)
{
  ck_assert_uint_eq (tl_block_first (0), 0);
  ck_assert_uint_eq (tl_block_first (TL_BLOCK - 1), 0);
  ck_assert_uint_eq (tl_block_first (TL_BLOCK), 1);
  ck_assert_uint_eq (tl_block_count (0, 1), 1);
  ck_assert_uint_eq (tl_block_count (0, TL_BLOCK), 1);
  ck_assert_uint_eq (tl_block_count (0, TL_BLOCK + 1), 2);
  ck_assert_uint_eq (tl_block_count (TL_BLOCK - 1, 2), 2);
  ck_assert_uint_eq (tl_block_count (TL_BLOCK - 1, 1), 1);
  ck_assert_uint_eq (tl_block_count (1, 3 * TL_BLOCK), 4);
}
END_TEST

UNIT_MAIN ("map", new_map_is_empty, empty_range_changes_nothing,
           setting_twice_counts_once, agrees_with_a_plain_array,
           free_takes_a_zeroed_map_and_twice, blocks_of_byte_ranges)
