#include "wait.h"
#include "arguments.h"
#include "commands.h"
#include "control.h"

#include "core/core.h"

#include <poll.h>
#include <string.h>

#define INTERVAL 100     /* milliseconds between questions */
#define ONE_ANSWER 10000 /* milliseconds for one answer */

static const struct {
  const char *word;
  const char *key;      /* of the node's object that holds it */
  const char *peer_key; /* NULL: the peer has none */
} states[] = {
    {"Primary", "role", "peer-role"},
    {"Secondary", "role", "peer-role"},
    {"Unknown", NULL, "peer-role"},
    {"UpToDate", "disk-state", "peer-disk-state"},
    {"Consistent", "disk-state", "peer-disk-state"},
    {"Outdated", "disk-state", "peer-disk-state"},
    {"Inconsistent", "disk-state", "peer-disk-state"},
    {"Empty", "disk-state", "peer-disk-state"},
    {"DUnknown", NULL, "peer-disk-state"},
    {"StandAlone", "connection-state", NULL},
    {"Connecting", "connection-state", NULL},
    {"Connected", "connection-state", NULL},
    {"SyncSource", "connection-state", NULL},
    {"SyncTarget", "connection-state", NULL},
};

#define N_STATES (sizeof states / sizeof states[0])

/* The key whose value is to be the word in STATE, NULL: there is none. */
static const char *
find (const char *state, const char **word)
{
  bool peer = strncmp (state, "peer:", 5) == 0;

  *word = peer ? state + 5 : state;
  for (unsigned i = 0; i < N_STATES; i++)
    if (strcmp (states[i].word, *word) == 0)
      return peer ? states[i].peer_key : states[i].key;
  return NULL;
}

int
wait_check_state (const char *state, char *error, size_t error_size)
{
  const char *word;
  size_t used;

  if (find (state, &word))
    return 0;
  used = (size_t)snprintf (error, error_size, "--for %.40s: expected", state);
  for (unsigned i = 0; i < N_STATES; i++)
    if (states[i].key && used < error_size)
      used += (size_t)snprintf (error + used, error_size - used, " %s",
                                states[i].word);
  if (used < error_size)
    snprintf (error + used, error_size - used,
              ", or peer: with a role or disk-state");
  return -1;
}

bool
wait_matches (const json_t *node, const char *state)
{
  const char *word, *key = find (state, &word), *value;

  value = key ? json_string_value (json_object_get (node, key)) : NULL;
  return value && strcmp (value, word) == 0;
}

/* Ask until the state is there; a node that cannot be reached is not there
 * yet.  With a timeout of 0 the question is asked once.
 */
int
command_wait (const struct arguments *arguments)
{
  const char *state = arguments->value[OPTION_FOR];
  int64_t end = control_now () + arguments->timeout, left;
  char last[512] = "it has not answered";
  json_t *node;
  int status;

  for (;;) {
    /* One question alone has all the time of an answer: a node that is slow to
     * answer must not pass for one that is not in that state.
     */
    left = arguments->timeout == 0 ? ONE_ANSWER : end - control_now ();
    status = command_ask_status (arguments,
                                 left > ONE_ANSWER ? ONE_ANSWER
                                 : left < 100      ? 100
                                                   : (unsigned)left,
                                 &node, last, sizeof last);
    if (status == TL_DONE) {
      bool there = wait_matches (node, state);

      snprintf (last, sizeof last, "it is %s, %s, %s; the other node is %s, %s",
                command_word (node, "role"), command_word (node, "disk-state"),
                command_word (node, "connection-state"),
                command_word (node, "peer-role"),
                command_word (node, "peer-disk-state"));
      json_decref (node);
      if (there)
        return TL_DONE;
    } else if (status != TL_UNREACHABLE && status != TL_TIMED_OUT) {
      fprintf (stderr, "twinlog: %s\n", last);
      return status;
    }
    left = end - control_now ();
    if (left <= 0)
      break;
    poll (NULL, 0, left < INTERVAL ? (int)left : INTERVAL);
  }
  fprintf (stderr, "twinlog: not %s after %s s: %s\n", state,
           arguments->value[OPTION_TIMEOUT], last);
  return TL_TIMED_OUT;
}
