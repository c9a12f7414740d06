#include "net/status_json.h"

#include "unit.h"

#include <jansson.h>

static struct tl_latency latency;
static struct tl_status status;
static struct tl_status_more more;

static void
fill (void)
{
  memset (&status, 0, sizeof status);
  status.role = TL_PRIMARY;
  status.disk = TL_DISK_UPTODATE;
  status.link = TL_LINK_SYNCSOURCE;
  strcpy (status.peer, "b");
  status.peer_known = true;
  status.peer_role = TL_SECONDARY;
  status.peer_disk = TL_DISK_INCONSISTENT;
  status.uuid.bytes[0] = 0xab;
  status.view.number = 7;
  status.view.id = UINT64_C (0xfedcba9876543210);
  strcpy (status.view.primary, "a");
  status.view.n_members = 2;
  strcpy (status.view.members[0], "a");
  strcpy (status.view.members[1], "b");
  status.copies = 1;
  status.out_of_sync = 25600;
  status.resync_done = 30;
  status.resync_total = 90;
  status.resync_started = 1000000;
  status.changed = 2500000;
  status.heard = 3900000;
  status.writes = 11;

  tl_latency_add (&latency, 12);
  more.volume = "slog0";
  more.node = "a";
  more.size = 102400;
  more.policy = TL_POLICY_ARBITER;
  more.arbiter = true;
  more.deadline = 500000;
  more.clients = 3;
  more.resident = 8192;
  more.paths = 2;
  more.compress = true;
  more.compressed_from = UINT64_C (5) << 33;
  more.compressed_to = 12345;
  more.now = 4000000;
  more.write = more.read = &latency;
}

/* The node of the answer; the answer is a line of JSON. */
static json_t *
answer (void)
{
  char *line = tl_status_json (&status, &more);
  json_t *root, *node;

  ck_assert_ptr_nonnull (line);
  ck_assert_ptr_null (strchr (line, '\n'));
  root = json_loads (line, JSON_REJECT_DUPLICATES, NULL);
  free (line);
  ck_assert_ptr_nonnull (root);
  ck_assert_int_eq (json_object_size (root), 2);
  ck_assert_int_eq (json_integer_value (json_object_get (root, "status")), 0);
  node = json_incref (json_object_get (root, "node"));
  json_decref (root);
  ck_assert (json_is_object (node));
  return node;
}

static const char *
text_of (json_t *object, const char *key)
{
  const char *text = json_string_value (json_object_get (object, key));

  ck_assert_msg (text != NULL, "no text \"%s\"", key);
  return text;
}

static double
number_of (json_t *object, const char *key)
{
  json_t *value = json_object_get (object, key);

  ck_assert_msg (json_is_number (value), "no number \"%s\"", key);
  return json_number_value (value);
}

START_TEST (all_keys_with_their_values)
{
  json_t *node, *view, *members, *compress;

  fill ();
  node = answer ();
  ck_assert_str_eq (text_of (node, "name"), "slog0");
  ck_assert_str_eq (text_of (node, "node"), "a");
  ck_assert_str_eq (text_of (node, "uuid"),
                    "ab000000-0000-0000-0000-000000000000");
  ck_assert_str_eq (text_of (node, "role"), "Primary");
  ck_assert_str_eq (text_of (node, "disk-state"), "UpToDate");
  ck_assert_str_eq (text_of (node, "connection-state"), "SyncSource");
  ck_assert_str_eq (text_of (node, "peer-node"), "b");
  ck_assert_str_eq (text_of (node, "peer-role"), "Secondary");
  ck_assert_str_eq (text_of (node, "peer-disk-state"), "Inconsistent");
  ck_assert_str_eq (text_of (node, "policy"), "arbiter");
  ck_assert (json_is_true (json_object_get (node, "arbiter")));
  ck_assert (json_is_false (json_object_get (node, "suspended")));
  ck_assert (json_is_false (json_object_get (node, "may-promote")));
  ck_assert_double_eq (number_of (node, "size"), 102400);
  ck_assert_double_eq (number_of (node, "copies"), 1);
  ck_assert_double_eq (number_of (node, "out-of-sync"), 25600);
  ck_assert_double_eq_tol (number_of (node, "percent-in-sync"), 75, 1e-6);
  ck_assert_double_eq_tol (number_of (node, "estimated-seconds-to-finish"), 6,
                           1e-6);
  ck_assert_double_eq_tol (number_of (node, "seconds-since-change"), 1.5, 1e-6);
  ck_assert_double_eq_tol (number_of (node, "seconds-since-peer"), 0.1, 1e-6);
  ck_assert_double_eq_tol (number_of (node, "deadline-seconds"), 0.5, 1e-6);
  ck_assert_double_eq (number_of (node, "clients"), 3);
  ck_assert_double_eq (number_of (node, "resident-bytes"), 8192);
  ck_assert_double_eq (number_of (node, "ap-in-flight"), 0);
  ck_assert_str_eq (text_of (node, "suspended-reason"), "");
  ck_assert_str_eq (text_of (node, "may-promote-reason"), "");
  ck_assert_str_eq (text_of (node, "disconnect-reason"), "");
  ck_assert_str_eq (text_of (node, "trouble"), "");

  view = json_object_get (node, "view");
  ck_assert_double_eq (number_of (view, "number"), 7);
  ck_assert_str_eq (text_of (view, "id"), "fedcba9876543210");
  ck_assert_str_eq (text_of (view, "primary"), "a");
  members = json_object_get (view, "members");
  ck_assert_uint_eq (json_array_size (members), 2);
  ck_assert_str_eq (json_string_value (json_array_get (members, 1)), "b");

  ck_assert_double_eq (number_of (json_object_get (node, "counters"), "writes"),
                       11);
  ck_assert_uint_eq (json_object_size (json_object_get (node, "counters")), 10);
  ck_assert_double_eq (number_of (node, "paths"), 2);
  compress = json_object_get (node, "compress");
  ck_assert (json_is_true (json_object_get (compress, "active")));
  ck_assert_double_eq (number_of (compress, "bytes-before"),
                       (double)(UINT64_C (5) << 33));
  ck_assert_double_eq (number_of (compress, "bytes-after"), 12345);
  ck_assert_double_eq (
      number_of (
          json_object_get (json_object_get (node, "latency-us"), "write"),
          "p999"),
      12);
  json_decref (node);
}
END_TEST

START_TEST (unknown_things_are_null_or_unknown)
{
  json_t *node;

  fill ();
  status.peer_known = false;
  status.peer[0] = '\0';
  status.heard = 0;
  status.resync_started = status.resync_done = status.resync_total = 0;
  status.out_of_sync = 0;
  memset (&status.view, 0, sizeof status.view);
  node = answer ();
  ck_assert_str_eq (text_of (node, "peer-node"), "");
  ck_assert_str_eq (text_of (node, "peer-role"), "Unknown");
  ck_assert_str_eq (text_of (node, "peer-disk-state"), "DUnknown");
  ck_assert (json_is_null (json_object_get (node, "seconds-since-peer")));
  ck_assert (
      json_is_null (json_object_get (node, "estimated-seconds-to-finish")));
  ck_assert_double_eq (number_of (node, "percent-in-sync"), 100);
  ck_assert_uint_eq (json_array_size (json_object_get (
                         json_object_get (node, "view"), "members")),
                     0);
  json_decref (node);
}
END_TEST

/* A reason may hold what a peer or a command said. */
START_TEST (any_bytes_make_valid_json)
{
  json_t *node;
  char *line;

  fill ();
  strcpy (status.trouble, "broken \xff\xc3 text \"quoted\"\n");
  node = answer ();
  ck_assert_str_eq (text_of (node, "trouble"), "broken ?? text \"quoted\"?");
  json_decref (node);

  line = tl_answer_json (3, "no \xff");
  ck_assert_str_eq (line, "{\"status\":3,\"text\":\"no ?\"}");
  free (line);
}
END_TEST

UNIT_MAIN ("status_json", all_keys_with_their_values,
           unknown_things_are_null_or_unknown, any_bytes_make_valid_json)
