#include "state/state.h"

#include "state/record.h"
#include "unit.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define NOBODY 65534

static char error[512];

static void
make_view (struct tl_view *view, uint64_t number)
{
  memset (view, 0, sizeof *view);
  view->number = number;
  view->id = UINT64_C (0xffff000000000000) + number;
  view->parent = number == 1 ? 0 : view->id - 1;
  view->n_members = number % 2 ? 2 : 1;
  strcpy (view->primary, "a");
  strcpy (view->members[0], "a");
  if (view->n_members == 2)
    strcpy (view->members[1], "b.example-2");
}

/* A record with N views of history and every field in use. */
static struct tl_record
make_record (unsigned n)
{
  struct tl_record record = {.volume = "slog0",
                             .node = "a",
                             .size = UINT64_C (8) << 30,
                             .uuid = {{1, 2, 3, 0xff}},
                             .incarnation = UINT64_MAX,
                             .peer_view = UINT64_C (0x8000000000000001),
                             .peer = "b.example-2",
                             .n_history = n};

  make_view (&record.view, 1000);
  make_view (&record.proposal, 1001);
  for (unsigned i = 0; i < n; i++)
    make_view (&record.history[i], 999 - i);
  return record;
}

static void
check_equal (const struct tl_record *a, const struct tl_record *b)
{
  ck_assert_str_eq (a->volume, b->volume);
  ck_assert_str_eq (a->node, b->node);
  ck_assert_uint_eq (a->size, b->size);
  ck_assert (tl_uuid_equal (&a->uuid, &b->uuid));
  ck_assert (tl_view_equal (&a->view, &b->view));
  ck_assert (tl_view_equal (&a->proposal, &b->proposal));
  ck_assert_uint_eq (a->n_history, b->n_history);
  for (unsigned i = 0; i < a->n_history; i++)
    ck_assert (tl_view_equal (&a->history[i], &b->history[i]));
  ck_assert_uint_eq (a->incarnation, b->incarnation);
  ck_assert_uint_eq (a->peer_view, b->peer_view);
  ck_assert_str_eq (a->peer, b->peer);
}

static void
save (const char *path, const struct tl_record *record)
{
  ck_assert_msg (tl_state_save (path, record, error, sizeof error) == 0, "%s",
                 error);
}

static void
load (const char *path, struct tl_record *record)
{
  ck_assert_msg (tl_state_load (path, record, error, sizeof error) == 0, "%s",
                 error);
}

/* Loading fails, says WORDS and the path, and leaves the record alone. */
static void
refuse (const char *path, const char *words)
{
  struct tl_record record, before;

  memset (&record, 0x55, sizeof record);
  before = record;
  ck_assert_int_eq (tl_state_load (path, &record, error, sizeof error), -1);
  assert_says (error, path);
  assert_says (error, words);
  ck_assert_mem_eq (&record, &before, sizeof record);
}

static unsigned
count_entries (const char *dir)
{
  DIR *stream = opendir (dir);
  unsigned n = 0;

  ck_assert_ptr_nonnull (stream);
  while (readdir (stream) != NULL)
    n++;
  closedir (stream);
  return n - 2; /* "." and ".." */
}

START_TEST (round_trip)
{
  const char *path = unit_path ("round");
  struct stat st;

  for (unsigned n = 0; n <= TL_HISTORY; n += 8) {
    struct tl_record in = make_record (n), out;

    save (path, &in);
    load (path, &out);
    check_equal (&in, &out);
  }
  ck_assert_int_eq (stat (path, &st), 0);
  ck_assert_int_eq (st.st_mode & 07777, 0600);
}
END_TEST

START_TEST (never_created)
{
  const char *path = unit_path ("fresh");
  struct tl_record in = {.volume = "v", .node = "a", .size = 4096}, out;

  save (path, &in);
  load (path, &out);
  check_equal (&in, &out);
  ck_assert_uint_eq (out.view.number, 0);
}
END_TEST

START_TEST (no_file)
{
  struct tl_record record;

  ck_assert_int_eq (
      tl_state_load (unit_path ("none"), &record, error, sizeof error), 1);
  ck_assert_int_eq (
      tl_state_load (unit_path ("none/none"), &record, error, sizeof error), 1);
}
END_TEST

START_TEST (not_a_file)
{
  unit_file ("plain", "x");
  ck_assert_int_eq (mkdir (unit_path ("directory"), 0700), 0);
  ck_assert_int_eq (mkfifo (unit_path ("fifo"), 0600), 0);
  refuse (unit_path ("directory"), "not a regular file");
  refuse (unit_path ("fifo"), "not a regular file");
  refuse (unit_path ("plain/x"), "Not a directory");
  refuse ("/dev/zero", "not a regular file");
}
END_TEST

START_TEST (not_a_state_file)
{
  static const struct {
    const char *text, *words;
  } cases[] = {
      {"", "empty"},
      {"\n", "not JSON"},
      {"hello", "not JSON"},
      {"{}", "not a state file"},
      {"[]", "not a state file"},
      {"{\"format\": \"other\"}", "not a state file"},
      {"{\"format\": \"twinlog-state\"}", "version"},
      {"{\"format\": \"twinlog-state\", \"version\": 2}", "version"},
      {"{\"format\": \"twinlog-state\", \"version\": 1}", "incomplete"},
      {"{\"format\": \"twinlog-state\", \"version\": 1, \"record\": {}, "
       "\"checksum\": \"0000000000000000\"}",
       "checksum"},
  };

  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    unit_file ("other", cases[i].text);
    refuse (unit_path ("other"), cases[i].words);
  }
}
END_TEST

START_TEST (too_long)
{
  const char *path = unit_path ("long");
  struct tl_record record = make_record (0);

  save (path, &record);
  ck_assert_int_eq (truncate (path, 1 << 20), 0);
  refuse (path, "too long");
}
END_TEST

START_TEST (truncated_anywhere)
{
  const char *path = unit_path ("short"), *why;
  struct tl_record record = make_record (2), before, out;
  char *text = tl_record_print (&record, &why);
  size_t length;

  ck_assert_ptr_nonnull (text);
  length = strlen (text);
  memset (&out, 0x55, sizeof out);
  before = out;
  for (size_t l = 0; l < length; l++) {
    why = NULL;
    ck_assert_int_eq (tl_record_parse (text, l, &out, &why), -1);
    ck_assert_ptr_nonnull (why);
  }
  ck_assert_mem_eq (&out, &before, sizeof out);
  ck_assert_int_eq (tl_record_parse (text, length, &out, &why), 0);
  /* The same by way of the file, in a few places. */
  for (size_t l = 0; l < length; l += 97) {
    save (path, &record);
    ck_assert_int_eq (truncate (path, (off_t)l), 0);
    refuse (path, l == 0 ? "empty" : "truncated");
  }
  free (text);
}
END_TEST

START_TEST (every_flipped_bit_is_refused)
{
  struct tl_record record = make_record (1), out;
  const char *why;
  char *text = tl_record_print (&record, &why);
  size_t length;

  ck_assert_ptr_nonnull (text);
  length = strlen (text);
  for (size_t bit = 0; bit < length * 8; bit++) {
    text[bit / 8] ^= (char)(1 << bit % 8);
    ck_assert_msg (tl_record_parse (text, length, &out, &why) == -1,
                   "bit %zu of «%.*s»", bit % 8, 40, text + bit / 8);
    text[bit / 8] ^= (char)(1 << bit % 8);
  }
  free (text);
}
END_TEST

START_TEST (edited_by_hand)
{
  struct tl_record record = make_record (1), out;
  const char *why;
  char *text = tl_record_print (&record, &why), *at;

  at = strstr (text, "\"number\": 1000");
  ck_assert_ptr_nonnull (at);
  memcpy (at, "\"number\": 2000", 14);
  unit_file ("edited", text);
  refuse (unit_path ("edited"), "checksum");
  /* White space may change: the content is what counts. */
  memcpy (at, "\"number\":\n1000", 14);
  unit_file ("edited", text);
  load (unit_path ("edited"), &out);
  check_equal (&record, &out);
  free (text);
}
END_TEST

/* What could not be read back is not written over what can. */
START_TEST (invalid_record_is_not_saved)
{
  const char *path = unit_path ("invalid");
  struct tl_record good = make_record (3), bad, out;

  save (path, &good);
  for (int i = 0; i < 11; i++) {
    bad = good;
    switch (i) {
    case 0:
      strcpy (bad.volume, "");
      break;
    case 1:
      strcpy (bad.node, "a b");
      break;
    case 2:
      strcpy (bad.peer, "/");
      break;
    case 3:
      bad.size = 0;
      break;
    case 4:
      bad.size = 4097;
      break;
    case 5:
      bad.view.id = 0;
      break;
    case 6:
      bad.proposal.n_members = 3;
      break;
    case 7:
      bad.n_history = TL_HISTORY + 1;
      break;
    case 8:
      memset (&bad.history[1], 0, sizeof bad.history[1]);
      break;
    case 9:
      memset (&bad.uuid, 0, sizeof bad.uuid);
      break;
    default:
      bad.view.number = UINT64_MAX;
    }
    ck_assert_msg (tl_state_save (path, &bad, error, sizeof error) == -1,
                   "case %d", i);
    assert_says (error, path);
  }
  load (path, &out);
  check_equal (&good, &out);
}
END_TEST

START_TEST (missing_directory)
{
  struct tl_record record = make_record (0);
  const char *path = unit_path ("no/such/file");

  ck_assert_int_eq (tl_state_save (path, &record, error, sizeof error), -1);
  assert_says (error, path);
  assert_says (error, "create its directory");
  ck_assert_int_eq (tl_state_lock (path, error, sizeof error), -1);
  assert_says (error, "create its directory");
}
END_TEST

START_TEST (left_over_from_a_crash)
{
  struct tl_record record = make_record (0), out;

  unit_file ("crash.new", "half a fi");
  save (unit_path ("crash"), &record);
  load (unit_path ("crash"), &out);
  check_equal (&record, &out);
  ck_assert_int_eq (access (unit_path ("crash.new"), F_OK), -1);
}
END_TEST

START_TEST (failed_save_leaves_nothing)
{
  struct tl_record record = make_record (0);
  const char *dir = unit_path ("failed"), *path = unit_path ("failed/s");

  ck_assert_int_eq (mkdir (dir, 0700), 0);
  ck_assert_int_eq (mkdir (path, 0700), 0); /* rename onto it fails */
  ck_assert_int_eq (tl_state_save (path, &record, error, sizeof error), -1);
  assert_says (error, path);
  ck_assert_uint_eq (count_entries (dir), 1);
}
END_TEST

START_TEST (not_writable)
{
  struct tl_record good = make_record (1), other = make_record (2), out;
  const char *dir = unit_path ("locked"), *path = unit_path ("locked/s");

  ck_assert_int_eq (chmod (unit_scratch, 0711), 0);
  ck_assert_int_eq (mkdir (dir, 0755), 0);
  save (path, &good);
  ck_assert_int_eq (chmod (path, 0644), 0);
  if (geteuid () == 0)
    ck_assert_int_eq (seteuid (NOBODY), 0);
  else
    ck_assert_int_eq (chmod (dir, 0555), 0);
  ck_assert_int_eq (tl_state_save (path, &other, error, sizeof error), -1);
  assert_says (error, path);
  assert_says (error, "must be able to write");
  load (path, &out);
  check_equal (&good, &out);
  ck_assert_uint_eq (count_entries (dir), 1);
  ck_assert_int_eq (tl_state_lock (path, error, sizeof error), -1);
  assert_says (error, "must be able to write");
  if (getuid () == 0)
    ck_assert_int_eq (seteuid (0), 0);
  else
    ck_assert_int_eq (chmod (dir, 0755), 0);
}
END_TEST

START_TEST (not_readable)
{
  struct tl_record record = make_record (1);
  const char *path = unit_path ("secret");

  save (path, &record);
  ck_assert_int_eq (chmod (unit_scratch, 0711), 0);
  ck_assert_int_eq (chmod (path, 0), 0);
  if (geteuid () == 0)
    ck_assert_int_eq (seteuid (NOBODY), 0);
  refuse (path, "Permission denied");
  if (getuid () == 0)
    ck_assert_int_eq (seteuid (0), 0);
}
END_TEST

START_TEST (one_lock)
{
  const char *path = unit_path ("lock");
  int first, second;
  pid_t child;

  first = tl_state_lock (path, error, sizeof error);
  ck_assert_int_ge (first, 0);
  ck_assert_int_eq (tl_state_lock (path, error, sizeof error), -1);
  assert_says (error, path);
  assert_says (error, "in use by another node");
  /* A fork inherits it: it stays when the parent's goes. */
  child = fork ();
  if (child == 0) {
    pause ();
    _exit (0);
  }
  ck_assert_int_gt (child, 0);
  close (first);
  ck_assert_int_eq (tl_state_lock (path, error, sizeof error), -1);
  ck_assert_int_eq (kill (child, SIGKILL), 0);
  ck_assert_int_eq (waitpid (child, NULL, 0), child);
  second = tl_state_lock (path, error, sizeof error);
  ck_assert_int_ge (second, 0);
  close (second);
}
END_TEST

/* A reader never sees anything but a whole record while they are replaced. */
START_TEST (readers_see_whole_records)
{
  const char *path = unit_path ("replaced");
  struct tl_record one = make_record (1), two = make_record (30), out;
  unsigned seen = 0;
  pid_t child;
  int status;

  save (path, &one);
  child = fork ();
  if (child == 0) {
    for (int i = 0; i < 50; i++)
      if (tl_state_save (path, i % 2 ? &one : &two, error, sizeof error) != 0)
        _exit (1);
    _exit (0);
  }
  ck_assert_int_gt (child, 0);
  while (waitpid (child, &status, WNOHANG) == 0) {
    load (path, &out);
    check_equal (out.n_history == 1 ? &one : &two, &out);
    seen++;
  }
  ck_assert_int_eq (status, 0);
  ck_assert_uint_gt (seen, 0);
}
END_TEST

UNIT_MAIN ("state", round_trip, never_created, no_file, not_a_file,
           not_a_state_file, too_long, truncated_anywhere,
           every_flipped_bit_is_refused, edited_by_hand,
           invalid_record_is_not_saved, missing_directory,
           left_over_from_a_crash, failed_save_leaves_nothing, not_writable,
           not_readable, one_lock, readers_see_whole_records)
