/* When an attached device may have a new connection: what a node's status says
 * against what was known.
 */
#include "attach_rules.h"

#include "unit.h"

#include <jansson.h>

#define UUID "0123abcd-0000-4000-8000-000000000001"

/* A node that serves as it did, with the connections CLIENTS. */
static json_t *
serving (int clients)
{
  return json_pack (
      "{s:s, s:s, s:s, s:i, s:s, s:s, s:i, s:{s:i, s:s, s:s}, s:{s:i}}", "name",
      "slog0", "node", "alpha", "uuid", UUID, "size", 1 << 20, "role",
      "Primary", "disk-state", "UpToDate", "clients", clients, "view", "number",
      7, "id", "00000000000000a7", "primary", "alpha", "counters", "promotions",
      2);
}

static struct rules_known
known_of (json_t *node)
{
  struct rules_known known;

  ck_assert (rules_learn (&known, node));
  json_decref (node);
  return known;
}

/* Both judgements of the node at hand; it is dropped. */
static void
judge (json_t *node, enum rules_verdict connected,
       enum rules_verdict disconnected)
{
  struct rules_known known = known_of (serving (1));
  char why[256] = "";

  ck_assert_int_eq (rules_connected (&known, node, why, sizeof why), connected);
  ck_assert_int_eq (why[0] != 0, connected != RULES_GO);
  why[0] = 0;
  ck_assert_int_eq (rules_disconnected (&known, node, 0, why, sizeof why),
                    disconnected);
  ck_assert_int_eq (why[0] != 0, disconnected != RULES_GO);
  json_decref (node);
}

static json_t *
with (const char *key, json_t *value)
{
  json_t *node = serving (0);

  json_object_set_new (node, key, value);
  return node;
}

static json_t *
with_view (int number, const char *id, const char *primary)
{
  return with ("view", json_pack ("{s:i, s:s, s:s}", "number", number, "id", id,
                                  "primary", primary));
}

START_TEST (goes_on)
{
  judge (serving (0), RULES_GO, RULES_GO);
  /* Its partner went, or came. */
  judge (with_view (8, "00000000000000b8", "alpha"), RULES_GO, RULES_GO);
  judge (with ("disk-state", json_string ("Consistent")), RULES_GO, RULES_GO);
}
END_TEST

START_TEST (another_volume)
{
  judge (with ("uuid", json_string ("0123abcd-0000-4000-8000-000000000002")),
         RULES_LOST, RULES_LOST);
  judge (with ("size", json_integer (2 << 20)), RULES_LOST, RULES_LOST);
  judge (with ("node", json_string ("beta")), RULES_LOST, RULES_LOST);
}
END_TEST

/* A connected device sees every view itself; one that was away does not. */
START_TEST (another_primary)
{
  judge (with_view (8, "00000000000000b8", "beta"), RULES_GO, RULES_LOST);
  judge (with_view (9, "00000000000000a9", "alpha"), RULES_GO, RULES_LOST);
  judge (with_view (7, "00000000000000b7", "alpha"), RULES_GO, RULES_LOST);
  judge (with_view (6, "00000000000000a6", "alpha"), RULES_GO, RULES_LOST);
  judge (with_view (0, "0000000000000000", ""), RULES_GO, RULES_LOST);
}
END_TEST

START_TEST (primary_role)
{
  judge (with ("role", json_string ("Secondary")), RULES_LOST, RULES_WAIT);
  /* It was given up and taken again; a process that was started anew counts
   * from 0.
   */
  judge (with ("counters", json_pack ("{s:i}", "promotions", 3)), RULES_LOST,
         RULES_GO);
  judge (with ("counters", json_pack ("{s:i}", "promotions", 0)), RULES_LOST,
         RULES_GO);
}
END_TEST

START_TEST (lost_ram)
{
  judge (with ("disk-state", json_string ("Empty")), RULES_GO, RULES_LOST);
  judge (with ("disk-state", json_string ("Inconsistent")), RULES_GO,
         RULES_LOST);
  judge (with ("disk-state", json_string ("Outdated")), RULES_GO, RULES_LOST);
}
END_TEST

START_TEST (clients)
{
  struct rules_known known = known_of (serving (1));
  char why[256];

  for (int n = 0; n < 4; n++)
    for (unsigned own = 0; own < 3; own++) {
      json_t *node = serving (n);
      enum rules_verdict expected = n == (int)own ? RULES_GO : RULES_WAIT;

      ck_assert_int_eq (rules_alone (node, own, why, sizeof why), expected);
      ck_assert_int_eq (rules_disconnected (&known, node, own, why, sizeof why),
                        expected);
      json_decref (node);
    }
}
END_TEST

/* Whatever is missing from an answer, nothing is connected. */
START_TEST (incomplete)
{
  static const char *const keys[] = {"node", "uuid", "size", "role", "view"};
  struct rules_known known = known_of (serving (1)), other;
  char why[256];

  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
    json_t *node = serving (0);

    json_object_del (node, keys[i]);
    ck_assert_int_ne (rules_disconnected (&known, node, 0, why, sizeof why),
                      RULES_GO);
    json_decref (node);
  }
  ck_assert (!rules_learn (&other, NULL));
  ck_assert_int_eq (rules_disconnected (&known, NULL, 0, why, sizeof why),
                    RULES_LOST);
}
END_TEST

UNIT_MAIN ("attach_rules", goes_on, another_volume, another_primary,
           primary_role, lost_ram, clients, incomplete)
