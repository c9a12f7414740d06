/* Breadth first, so that the trace of a violation is a shortest one.  Of known
 * states only fingerprints are kept, of 128 bits: among 50 million states two
 * are taken for one with a probability below 1e-23.  How each was reached is
 * its parent and the move.  The states of one depth, packed, wait in a
 * temporary file.
 */
#include "explore.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MOST_MOVES 128u

static struct {
  struct fingerprint *slots; /* all 0: free */
  uint64_t size, count;
} known;
static struct {
  uint32_t parent;
  struct move move;
} * reached;
static uint64_t n_reached, room_reached;

static unsigned char here[SNAPSHOT_MAX], packed[SNAPSHOT_MAX];
static sigjmp_buf aborted;
static volatile sig_atomic_t armed;

/* ---- Known states ---- */

static void *
memory (void *old, size_t n, size_t size)
{
  void *new = reallocarray (old, n, size);

  if (new == NULL) {
    fprintf (stderr, "twinlog-explore: out of memory: take fewer --states\n");
    exit (3);
  }
  return new;
}

static bool
is_free (uint64_t slot)
{
  return known.slots[slot].low == 0 && known.slots[slot].high == 0;
}

static bool
insert (struct fingerprint f)
{
  uint64_t i = f.low & (known.size - 1);

  for (; !is_free (i); i = (i + 1) & (known.size - 1))
    if (known.slots[i].low == f.low && known.slots[i].high == f.high)
      return false;
  known.slots[i] = f;
  known.count++;
  return true;
}

static bool
add_known (struct fingerprint f)
{
  struct fingerprint *old = known.slots;
  uint64_t size = known.size;

  if (known.count * 4 >= known.size * 3) {
    known.size = size == 0 ? 1u << 16 : size * 2;
    known.slots = memory (NULL, known.size, sizeof known.slots[0]);
    memset (known.slots, 0, known.size * sizeof known.slots[0]);
    known.count = 0;
    for (uint64_t i = 0; i < size; i++)
      if (old[i].low != 0 || old[i].high != 0)
        insert (old[i]);
    free (old);
  }
  return insert (f);
}

static uint32_t
add_reached (uint32_t parent, struct move move)
{
  if (n_reached == room_reached) {
    room_reached = room_reached == 0 ? 1u << 16 : room_reached * 2;
    reached = memory (reached, room_reached, sizeof reached[0]);
  }
  reached[n_reached].parent = parent;
  reached[n_reached].move = move;
  return (uint32_t)n_reached++;
}

/* ---- The file of a depth ---- */

struct entry {
  uint32_t id, length;
};

static void
broken (const char *what)
{
  fprintf (stderr, "twinlog-explore: temporary file: %s: %m\n", what);
  exit (3);
}

static FILE *
open_depth (void)
{
  FILE *file = tmpfile ();

  if (file == NULL || setvbuf (file, NULL, _IOFBF, 1u << 20) != 0)
    broken ("cannot be made");
  return file;
}

static void
append (FILE *file, uint32_t id, const unsigned char *state, size_t length)
{
  struct entry entry = {
      .id = id, .length = (uint32_t)snapshot_pack (state, length, packed)};

  if (fwrite (&entry, sizeof entry, 1, file) != 1 ||
      fwrite (packed, entry.length, 1, file) != 1)
    broken ("write");
}

static bool
next_state (FILE *file, uint32_t *id, size_t *length)
{
  struct entry entry;

  if (fread (&entry, sizeof entry, 1, file) != 1)
    return false;
  if (fread (packed, entry.length, 1, file) != 1)
    broken ("read");
  *id = entry.id;
  *length = snapshot_unpack (packed, entry.length, here);
  return true;
}

/* ---- One move ---- */

static void
on_abort (int signal)
{
  if (armed)
    siglongjmp (aborted, 1);
  (void)signal; /* our own: it ends the process */
}

/* An assertion of the core that fails is a violation like any other. */
static bool
apply (struct move move)
{
  bool moved;

  if (sigsetjmp (aborted, 0) != 0) {
    armed = false;
    arena_end ();
    violate ("an assertion of the core fails");
    return true;
  }
  armed = true;
  moved = move_apply (move);
  if (moved && !overflow)
    check_state ();
  armed = false;
  return moved;
}

static bool
spent (void)
{
  return world.budget[CUTS] == 0 && world.budget[CRASHES] == 0 &&
         world.budget[UNKNOWNS] == 0 && world.budget[STORE_FAILURES] == 0;
}

/* How it may end, bit by bit. */
#define LOST 1u  /* questions on their way to the arbiter never get there */
#define LOSER 2u /* node b gives up its data in a split brain, else a */
#define ENDS 4u  /* of them in all; and none */

/* True: a split brain had to be ended. */
static bool
recovers (unsigned end)
{
  bool split = false;

  if (sigsetjmp (aborted, 0) != 0) {
    armed = false;
    arena_end ();
    violate ("an assertion of the core fails");
    return true;
  }
  armed = true;
  if (arbiter_end (end & LOST) || !(end & LOST))
    split = check_recovers (end & LOSER ? 1 : 0);
  armed = false;
  return split;
}

/* ---- The trace ---- */

static void
print_path (const struct scenario *s, uint32_t id, struct move last,
            unsigned end)
{
  struct move *path = NULL;
  unsigned n = 0, room = 0;
  char text[128];

  for (; id != 0; id = reached[id].parent) {
    if (n == room)
      path = memory (path, room = room * 2 + 64, sizeof path[0]);
    path[n++] = reached[id].move;
  }
  tracing = false;
  scenario_begin (s);
  tracing = true;
  for (unsigned i = n + 1; i-- > 0;) {
    struct move move = i == 0 ? last : path[i - 1];

    move_text (move, text, sizeof text);
    printf ("  %3u. %s\n", n + 1 - i, text);
    apply (move);
  }
  if (end != ENDS) {
    printf ("  then everything under way ends, and time passes:\n");
    recovers (end);
  }
  tracing = false;
  free (path);
}

/* ---- The search ---- */

static double
now (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
report (const struct scenario *s, uint32_t id, struct move move, unsigned end,
        struct totals *totals)
{
  char what[sizeof violation];

  totals->violated = true;
  memcpy (what, violation, sizeof what);
  printf ("violation: %s: %s\n", s->name, what);
  violation[0] = '\0';
  print_path (s, id, move, end);
}

/* Nothing may go wrong any more in the state BYTES.  False: a violation. */
static bool
all_ends (const struct scenario *s, uint32_t id, struct move move,
          const unsigned char *bytes, size_t length, struct totals *totals)
{
  bool split = false;

  for (unsigned end = 0; end < ENDS; end++) {
    if ((end & LOSER) && !split)
      break;
    split = recovers (end) || split;
    if (violation[0] != '\0') {
      report (s, id, move, end, totals);
      return false;
    }
    snapshot_restore (bytes, length, BOTH);
  }
  return true;
}

/* All that may follow HERE.  False: a violation. */
static bool
expand (const struct scenario *s, uint32_t id, size_t length, FILE *next,
        struct totals *totals)
{
  static unsigned char there[SNAPSHOT_MAX];
  struct move moves[MOST_MOVES];
  unsigned n;

  snapshot_restore (here, length, BOTH);
  touched = 0;
  n = move_list (moves, MOST_MOVES);
  for (unsigned i = 0; i < n; i++) {
    size_t size;

    if (i > 0)
      snapshot_restore (here, length, touched);
    touched = 0;
    overflow = false;
    if (!apply (moves[i]))
      continue;
    totals->transitions++;
    if (violation[0] != '\0') {
      report (s, id, moves[i], ENDS, totals);
      return false;
    }
    if (overflow) {
      totals->left++;
      continue;
    }
    if (!add_known (fingerprint ()))
      continue;
    size = snapshot_take (there);
    append (next, add_reached (id, moves[i]), there, size);
    if (!spent () || !at_rest ())
      continue;
    if (!all_ends (s, id, moves[i], there, size, totals))
      return false;
    touched = BOTH;
  }
  return true;
}

void
search (const struct scenario *s, uint64_t states, double seconds, bool trace,
        struct totals *totals)
{
  struct sigaction action = {.sa_handler = on_abort, .sa_flags = SA_NODEFER};
  double began = now ();
  FILE *file, *next;
  uint32_t id;
  size_t length;

  sigaction (SIGABRT, &action, NULL);
  memset (totals, 0, sizeof *totals);
  n_reached = known.count = 0;
  if (known.slots != NULL)
    memset (known.slots, 0, known.size * sizeof known.slots[0]);
  scenario_begin (s);
  length = snapshot_take (here);
  snapshot_root (here, length);
  add_known (fingerprint ());
  add_reached (0, (struct move){0, 0, 0});
  file = open_depth ();
  append (file, 0, here, length);

  for (bool more = true; more; totals->depth++) {
    uint64_t before = n_reached;

    rewind (file);
    next = open_depth ();
    while (next_state (file, &id, &length)) {
      if (n_reached >= states || now () - began >= seconds) {
        totals->bounded = true;
        break;
      }
      if (!expand (s, id, length, next, totals))
        break;
    }
    fclose (file);
    file = next;
    more = n_reached > before && !totals->bounded && !totals->violated;
    if (trace)
      printf ("%s: depth %u, states %llu, transitions %llu, %.1f s\n", s->name,
              totals->depth + 1, (unsigned long long)n_reached,
              (unsigned long long)totals->transitions, now () - began);
  }
  fclose (file);
  totals->states = n_reached;
  totals->seconds = now () - began;
}
