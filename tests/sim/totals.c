/* What happened in all seeds together. */
#include "sim.h"

#include <stdio.h>

static const struct {
  enum total total;
  const char *name;
  bool section; /* a blank line before it */
} lines[] = {
    {T_EVENTS, "events", false},
    {T_TIME, "seconds of simulated time", false},
    {T_STEPS, "steps of a core", false},
    {T_CUTS, "connections cut", true},
    {T_HALF_OPEN, "connections cut, noticed on one side", false},
    {T_LINK_DOWN, "link down for a while", false},
    {T_ONE_WAY, "link down in one direction", false},
    {T_ONE_WAY_LOSS, "of these with loss", false},
    {T_SWIZZLES, "swizzles", false},
    {T_CORRUPTED, "frames with a changed byte", false},
    {T_STRANGE, "frames of a peer that is not what it should be", false},
    {T_DIALS_FAILED, "dials that failed", false},
    {T_CRASHES, "crashes, RAM lost", false},
    {T_FENCED, "of these by fencing", false},
    {T_KILLS, "crashes, RAM kept", false},
    {T_STOPS, "orderly stops", false},
    {T_RESTARTS, "restarts", false},
    {T_FREEZES, "nodes frozen", false},
    {T_HALTS, "nodes frozen in the middle of a step", false},
    {T_APPLY_FROZEN, "apply paths frozen, heartbeats sent", false},
    {T_SLOW, "links slow for a while", false},
    {T_CLOCK_JUMPS, "clocks that jumped", false},
    {T_AIMED, "faults aimed at a telling moment", false},
    {T_RECORDS_FAILED, "records that could not be stored", false},
    {T_DISKS_STUCK, "disks that hang", false},
    {T_RECORDS_SLOW, "records stored late", false},
    {T_RECORDS_LANDED, "crashes with a record under way that landed", false},
    {T_RECORDS_CUT_OFF, "crashes with a record under way that did not", false},
    {T_RECORDS_REVERTED, "power cuts that brought an old record back", false},
    {T_RECORDS_GONE, "crashes with the record lost too", false},
    {T_RECORDS_MISPLACED, "starts refused, the record is another node's",
     false},
    {T_ARBITER_DOWN, "arbiter down for a while", false},
    {T_ARBITER_SLOW, "arbiter slow for a while", false},
    {T_ARBITER_ASTRAY, "answers of an arbiter that looked astray", false},
    {T_ARBITER_CUT, "arbiter out of reach of one node", false},
    {T_UNKNOWN_SWAPPED, "answers unknown, swapped", false},
    {T_UNKNOWN_NOT_SWAPPED, "answers unknown, not swapped", false},
    {T_SWAPS_LATE, "swaps that landed after their asker gave up", false},
    {T_RECORDS, "records stored", true},
    {T_SWAPS, "swaps at the arbiter", false},
    {T_SWAPS_LOST, "swaps that lost", false},
    {T_COMMANDS, "commands", false},
    {T_REFUSED, "of these refused", false},
    {T_TAKEOVERS, "takeovers tried from a primary that lives", false},
    {T_PROMOTIONS, "promotions", false},
    {T_FORCED, "of these by force", false},
    {T_FORCED_LOST, "of these with acknowledged writes missing", false},
    {T_FORKS, "histories that began beside another", false},
    {T_SPLIT_BRAINS, "split brains held for an operator", false},
    {T_DISCARDS, "nodes discarded by an operator", false},
    {T_RESYNCS_FULL, "resyncs, full", false},
    {T_RESYNCS_PARTIAL, "resyncs, partial", false},
    {T_WRITES, "acknowledged writes", true},
    {T_ZEROES, "acknowledged zeroes", false},
    {T_FLUSHES, "acknowledged flushes", false},
    {T_PARTS, "later parts of requests", false},
    {T_READS, "reads checked", false},
    {T_SECTORS, "sectors of these", false},
    {T_STALE_READS, "reads by reads=local from an overtaken primary", false},
    {T_FAILED, "requests failed", false},
    {T_COPIES_CHECKED, "second copies checked", false},
    {T_STORES_SCANNED, "stores scanned at a promotion", false},
    {T_EQUAL, "seeds healed, stores equal", true},
    {T_ROTTEN, "bytes changed, found by verify", false},
    {T_LOST, "seeds with all content lost", false},
    {T_NOT_CREATED, "seeds without a volume", false},
    {T_WITH_ARBITER, "seeds with an arbiter", false},
    {T_WITH_AUTO_PROMOTE, "seeds with auto-promote", false},
    {T_WITH_RATE, "seeds with a resync-rate", false},
    {T_WITH_LOCAL_READS, "seeds with reads=local", false},
    {T_WITH_FREEZE, "seeds with the policy freeze", false},
    {T_WITH_CONTINUE, "seeds with the policy continue", false},
    {T_WITH_FORCE, "seeds whose operators use --force", false},
    {T_WITH_PROMOTION, "seeds with a promotion", false},
    {T_WITH_RESYNC, "seeds with a resync", false},
    {T_WITH_BOTH, "seeds with both", false},
};

void
totals_print (const uint64_t totals[TOTALS])
{
  for (unsigned i = 0; i < sizeof lines / sizeof *lines; i++) {
    uint64_t n = totals[lines[i].total];

    if (lines[i].total == T_TIME)
      n /= 1000 * MS;
    printf ("%s%12llu  %s\n", lines[i].section ? "\n" : "",
            (unsigned long long)n, lines[i].name);
  }
  putchar ('\n');
}
