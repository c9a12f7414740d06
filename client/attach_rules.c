#include "attach_rules.h"
#include "commands.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static enum rules_verdict __attribute__ ((format (printf, 4, 5)))
because (enum rules_verdict verdict, char *why, size_t size, const char *format,
         ...)
{
  va_list list;

  va_start (list, format);
  vsnprintf (why, size, format, list);
  va_end (list);
  return verdict;
}

static json_int_t
number (const json_t *object, const char *key)
{
  return json_integer_value (json_object_get (object, key));
}

static bool
copy (char *to, size_t size, const json_t *object, const char *key)
{
  const char *text = json_string_value (json_object_get (object, key));

  return text && snprintf (to, size, "%s", text) < (int)size;
}

bool
rules_learn (struct rules_known *known, const json_t *node)
{
  const json_t *view = json_object_get (node, "view");

  known->size = number (node, "size");
  known->view = number (view, "number");
  known->promotions = number (json_object_get (node, "counters"), "promotions");
  return copy (known->uuid, sizeof known->uuid, node, "uuid") &&
         copy (known->node, sizeof known->node, node, "node") &&
         copy (known->id, sizeof known->id, view, "id");
}

static bool
is (const json_t *node, const char *key, const char *text)
{
  return strcmp (command_word (node, key), text) == 0;
}

/* Is it another volume? */
static enum rules_verdict
same_volume (const struct rules_known *known, const json_t *node, char *why,
             size_t size)
{
  if (!is (node, "uuid", known->uuid))
    return because (RULES_LOST, why, size,
                    "the volume has another UUID now: it was created anew");
  if (number (node, "size") != known->size)
    return because (RULES_LOST, why, size, "the volume has another size now");
  if (!is (node, "node", known->node))
    return because (RULES_LOST, why, size, "the node is %s now, not %s",
                    command_word (node, "node"), known->node);
  return RULES_GO;
}

enum rules_verdict
rules_connected (const struct rules_known *known, const json_t *node, char *why,
                 size_t size)
{
  enum rules_verdict verdict = same_volume (known, node, why, size);

  if (verdict != RULES_GO)
    return verdict;
  if (!is (node, "role", "Primary") ||
      number (json_object_get (node, "counters"), "promotions") !=
          known->promotions)
    return because (RULES_LOST, why, size,
                    "node %s gave up the primary role, and with it this "
                    "device",
                    known->node);
  return RULES_GO;
}

/* Views have one order.  The known view and the next one under this primary
 * leave no room for another primary; anything further might have had one.
 */
static enum rules_verdict
same_history (const struct rules_known *known, const json_t *node, char *why,
              size_t size)
{
  const json_t *view = json_object_get (node, "view");
  json_int_t n = number (view, "number");

  if (!is (view, "primary", known->node))
    return because (RULES_LOST, why, size,
                    "node %s became primary (view %lld) meanwhile",
                    command_word (view, "primary"), (long long)n);
  if (n < known->view || n > known->view + 1 ||
      (n == known->view && !is (view, "id", known->id)))
    return because (RULES_LOST, why, size,
                    "the view went from %lld to %lld meanwhile: another node "
                    "may have been primary",
                    (long long)known->view, (long long)n);
  return RULES_GO;
}

enum rules_verdict
rules_alone (const json_t *node, unsigned own, char *why, size_t size)
{
  json_int_t clients = number (node, "clients");

  if (clients > own)
    return because (RULES_WAIT, why, size,
                    "another NBD client is attached to node %s, or an earlier "
                    "one has not ended yet",
                    command_word (node, "node"));
  if (clients < own)
    return because (RULES_WAIT, why, size,
                    "the NBD socket is not that of node %s",
                    command_word (node, "node"));
  return RULES_GO;
}

enum rules_verdict
rules_disconnected (const struct rules_known *known, const json_t *node,
                    unsigned own, char *why, size_t size)
{
  enum rules_verdict verdict = same_volume (known, node, why, size);

  if (verdict == RULES_GO)
    verdict = same_history (known, node, why, size);
  if (verdict != RULES_GO)
    return verdict;
  if (is (node, "disk-state", "Empty") ||
      is (node, "disk-state", "Inconsistent") ||
      is (node, "disk-state", "Outdated"))
    return because (RULES_LOST, why, size, "the data of node %s is %s",
                    known->node, command_word (node, "disk-state"));
  if (!is (node, "role", "Primary"))
    return because (RULES_WAIT, why, size, "node %s is not primary yet",
                    known->node);
  return rules_alone (node, own, why, size);
}
