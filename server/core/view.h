/* Views: the numbered configurations of a volume, and the durable record that
 * a node keeps of them.  Pure data and comparisons; no function here has a
 * side effect.
 */
#ifndef TWINLOG_CORE_VIEW_H
#define TWINLOG_CORE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TL_NAME_SIZE 64 /* of a volume or a node, with the NUL */
#define TL_MEMBERS 2
#define TL_HISTORY 32

struct tl_uuid {
  uint8_t bytes[16];
};

/* One configuration.  Number 0 means: no view, the volume was not created.
 * Members are sorted by name.
 */
struct tl_view {
  uint64_t number;
  uint64_t id;     /* random, never 0 in a view */
  uint64_t parent; /* the id of the view before it, 0 for the first */
  char primary[TL_NAME_SIZE];
  unsigned n_members;
  char members[TL_MEMBERS][TL_NAME_SIZE];
};

/* What the state file holds: views and proposals, never data. */
struct tl_record {
  char volume[TL_NAME_SIZE];
  char node[TL_NAME_SIZE]; /* whose record this is */
  uint64_t size;           /* of the volume, in bytes */
  struct tl_uuid uuid;     /* all zero before the volume was created */
  struct tl_view view;     /* the newest that this node has stored */
  struct tl_view history[TL_HISTORY]; /* older ones, the newest first */
  unsigned n_history;
  struct tl_view proposal; /* asked of the arbiter, outcome not yet known;
                            * number 0: none */
  uint64_t incarnation;    /* of the RAM that is a member of `view`;
                            * 0: this node is no member */
  uint64_t peer_view;      /* id of the last view that the peer is known to
                            * have stored, 0: none */
  char peer[TL_NAME_SIZE]; /* the other node, empty: not met yet */
};

/* How view A stands to view B, as far as A's history shows. */
enum tl_order {
  TL_SAME,    /* one and the same */
  TL_BEHIND,  /* ours is an ancestor of theirs */
  TL_AHEAD,   /* theirs is an ancestor of ours */
  TL_DIVERGED /* neither */
};

/* A past view as hello tells it. */
struct tl_past {
  uint64_t number;
  uint64_t id;
};

bool tl_uuid_zero (const struct tl_uuid *uuid);
bool tl_uuid_equal (const struct tl_uuid *a, const struct tl_uuid *b);

/* Letters, digits, '.', '_' and '-', 1 to 63 of them, not beginning with a
 * '.' or '-'.
 */
bool tl_name_valid (const char *name);

bool tl_view_has (const struct tl_view *view, const char *node);
bool tl_view_equal (const struct tl_view *a, const struct tl_view *b);

/* Is the view well formed: a number, an id, valid names, members sorted and
 * not twice, the primary one of them?  The empty view is too.
 */
bool tl_view_valid (const struct tl_view *view);

/* Make the successor of FROM with PRIMARY and MEMBER (NULL: the primary
 * alone).  ID is random and not 0.
 */
void tl_view_next (struct tl_view *view, const struct tl_view *from,
                   uint64_t id, const char *primary, const char *member);

/* Make VIEW the newest of RECORD and the one before it history.  Where the
 * history is full the oldest goes, but never the one that the peer is known
 * to have stored.
 */
void tl_record_push (struct tl_record *record, const struct tl_view *view);

/* Compare our record's newest view with a peer's newest and its past. */
enum tl_order tl_view_compare (const struct tl_record *record,
                               const struct tl_view *theirs,
                               const struct tl_past *past, unsigned n_past);

/* Does the record belong to this volume, node and size?  If not, false and
 * one line in ERROR that says what differs.
 */
bool tl_record_check (const struct tl_record *record, const char *volume,
                      const char *node, uint64_t size, char *error,
                      size_t error_size);

#endif
