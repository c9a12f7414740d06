/* What happens to the nodes while clients are at work.  One thread does it, so
 * that it alone decides who is promoted and whose RAM is lost: never that of
 * the only node that has all acknowledged writes.
 */
#include "threads.h"

#include <stdio.h>
#include <string.h>

struct look {
  bool open[2];
  struct tl_status status[2];
  int primary; /* -1: none, or two */
};

static void
look_at (struct test *test, struct look *look)
{
  unsigned primaries = 0;

  memset (look, 0, sizeof *look);
  look->primary = -1;
  for (unsigned i = 0; i < 2; i++) {
    look->open[i] = slot_status (&test->slots[i], &look->status[i]);
    if (look->open[i] && look->status[i].role == TL_PRIMARY) {
      look->primary = (int)i;
      primaries++;
    }
  }
  if (primaries != 1)
    look->primary = -1;
}

/* Both nodes have everything, and know it. */
static bool
is_whole (const struct look *look)
{
  const struct tl_status *primary, *secondary;

  if (look->primary == -1 || !look->open[0] || !look->open[1])
    return false;
  primary = &look->status[look->primary];
  secondary = &look->status[!look->primary];
  return primary->link == TL_LINK_CONNECTED &&
         secondary->link == TL_LINK_CONNECTED && primary->copies == 2 &&
         primary->peer_disk == TL_DISK_UPTODATE &&
         secondary->disk == TL_DISK_UPTODATE && primary->out_of_sync == 0 &&
         primary->view.id == secondary->view.id;
}

/* Without an arbiter `--fenced` is said only where it is true. */
static bool
promote (struct test *test, unsigned i, const struct look *look)
{
  bool fenced = !test->arbiter && !look->open[!i];

  return slot_command (&test->slots[i],
                       fenced ? "{\"command\":\"promote\",\"fenced\":true}\n"
                              : "{\"command\":\"promote\"}\n",
                       NULL, 0) == TL_DONE;
}

bool
faults_settle (struct test *test, bool both, uint64_t bound)
{
  uint64_t until = now_us () + bound;
  unsigned turn = (unsigned)(until & 1);
  struct look look;

  for (;;) {
    look_at (test, &look);
    if (both ? is_whole (&look) : look.primary != -1)
      return true;
    if (now_us () >= until)
      return false;
    if ((!look.open[0] || look.status[0].role == TL_SECONDARY) &&
        (!look.open[1] || look.status[1].role == TL_SECONDARY)) {
      turn = !turn;
      if (look.open[turn])
        promote (test, turn, &look);
    }
    pause_ms (5);
  }
}

/* ---- Single faults ---- */

static void
cut_wire (struct test *test, struct rng *rng, enum wire wire)
{
  proxy_set (test->proxy, wire);
  pause_ms ((unsigned)rng_between (rng, 5, rng_percent (rng, 15) ? 1500 : 200));
  proxy_set (test->proxy, WIRE_OPEN);
}

/* Close node I, wait, and open it again; promote the other meanwhile where it
 * was the primary.  What it has on the wire is lost at times.
 */
static void
restart (struct test *test, struct rng *rng, unsigned i, bool was_primary)
{
  struct slot *slot = &test->slots[i];
  bool cut = rng_percent (rng, 50), lose = rng_percent (rng, 50);
  struct look look;
  bool kept;

  if (cut)
    proxy_set (test->proxy, WIRE_CUT);
  slot_close (slot, lose);
  if (cut)
    proxy_set (test->proxy, WIRE_OPEN);
  if (was_primary && rng_percent (rng, 80)) {
    look_at (test, &look);
    if (look.open[!i])
      promote (test, !i, &look);
  }
  pause_ms ((unsigned)rng_between (rng, 0, 100));
  /* Without a file its RAM goes with it, which only a secondary may afford. */
  look_at (test, &look);
  kept = look.primary != (int)!i || rng_percent (rng, 70);
  slot_open (slot, kept);
}

/* The other takes over while this one lives, and does not know. */
static void
overtake (struct test *test, struct rng *rng, unsigned i)
{
  struct look look;

  proxy_set (test->proxy, rng_percent (rng, 50) ? WIRE_CUT : WIRE_STALLED);
  pause_ms ((unsigned)rng_between (rng, 0, 30));
  look_at (test, &look);
  promote (test, !i, &look);
  pause_ms ((unsigned)rng_between (rng, 0, 100));
  proxy_set (test->proxy, WIRE_OPEN);
}

static void
disturb (struct test *test, struct rng *rng)
{
  unsigned what = (unsigned)rng_below (rng, 7);
  struct look look;
  unsigned p, s;

  look_at (test, &look);
  if (look.primary == -1 && what > 1)
    return;
  p = (unsigned)look.primary;
  s = !p;
  switch (what) {
  case 0:
    cut_wire (test, rng, WIRE_CUT);
    break;
  case 1:
    cut_wire (test, rng, WIRE_STALLED);
    break;
  case 2:
    restart (test, rng, s, false);
    break;
  case 3:
    if (!test->slots[p].kept)
      return;
    restart (test, rng, p, true);
    break;
  case 4:
    slot_command (&test->slots[p],
                  "{\"command\":\"switchover\",\"disconnect\":true}\n", NULL,
                  0);
    break;
  case 5:
    if (!test->arbiter)
      return;
    overtake (test, rng, p);
    break;
  case 6:
    slot_command (&test->slots[p],
                  "{\"command\":\"demote\",\"disconnect\":true}\n", NULL, 0);
    break;
  }
  test->counts[what]++;
}

static void
explain (struct test *test, const char *what)
{
  struct look look;

  look_at (test, &look);
  for (unsigned i = 0; i < 2; i++) {
    const struct tl_status *s = &look.status[i];

    if (look.open[i])
      fprintf (stderr, "  %s: %s %s %s, view %llu, copies %u, %s; %s; %s; %s\n",
               test->slots[i].name, tl_role_name (s->role),
               tl_disk_name (s->disk), tl_link_name (s->link),
               (unsigned long long)s->view.number, s->copies,
               s->suspended_reason, s->may_promote_reason, s->disconnect_reason,
               s->trouble);
    else
      fprintf (stderr, "  %s: closed\n", test->slots[i].name);
  }
  violation (test, "%s", what);
}

bool
faults_run (struct test *test)
{
  uint64_t until = now_us () + (uint64_t)(test->seconds * 1e6);
  struct rng rng;

  rng_seed (&rng, test->seed);
  while (now_us () < test->calm_end)
    pause_ms (10);
  while (now_us () < until) {
    bool both = rng_percent (&rng, 60);

    disturb (test, &rng);
    if (!faults_settle (test, both, CONVERGE)) {
      explain (test, both ? "the nodes do not become whole"
                          : "no node becomes primary");
      return false;
    }
    pause_ms ((unsigned)rng_between (&rng, 0, 150));
  }
  return true;
}
