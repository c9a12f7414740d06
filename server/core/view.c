#include "view.h"

#include <stdio.h>
#include <string.h>

bool
tl_uuid_zero (const struct tl_uuid *uuid)
{
  static const struct tl_uuid zero;

  return tl_uuid_equal (uuid, &zero);
}

bool
tl_uuid_equal (const struct tl_uuid *a, const struct tl_uuid *b)
{
  return memcmp (a->bytes, b->bytes, sizeof a->bytes) == 0;
}

bool
tl_name_valid (const char *name)
{
  static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789._-";
  size_t length = strnlen (name, TL_NAME_SIZE);

  return length > 0 && length < TL_NAME_SIZE && name[0] != '.' &&
         name[0] != '-' && strspn (name, allowed) == length;
}

bool
tl_view_has (const struct tl_view *view, const char *node)
{
  for (unsigned i = 0; i < view->n_members; i++)
    if (strcmp (view->members[i], node) == 0)
      return true;
  return false;
}

bool
tl_view_equal (const struct tl_view *a, const struct tl_view *b)
{
  if (a->number != b->number || a->id != b->id || a->parent != b->parent ||
      strcmp (a->primary, b->primary) != 0 || a->n_members != b->n_members)
    return false;
  for (unsigned i = 0; i < a->n_members; i++)
    if (strcmp (a->members[i], b->members[i]) != 0)
      return false;
  return true;
}

bool
tl_view_valid (const struct tl_view *view)
{
  if (view->number == 0)
    return view->id == 0 && view->parent == 0 && view->primary[0] == '\0' &&
           view->n_members == 0;
  if (view->id == 0 || (view->number == 1) != (view->parent == 0) ||
      view->n_members < 1 || view->n_members > TL_MEMBERS)
    return false;
  for (unsigned i = 0; i < view->n_members; i++)
    if (!tl_name_valid (view->members[i]) ||
        (i > 0 && strcmp (view->members[i - 1], view->members[i]) >= 0))
      return false;
  return tl_name_valid (view->primary) && tl_view_has (view, view->primary);
}

void
tl_view_next (struct tl_view *view, const struct tl_view *from, uint64_t id,
              const char *primary, const char *member)
{
  struct tl_view next = {
      .number = from->number + 1, .id = id, .parent = from->id, .n_members = 1};
  bool swap;

  snprintf (next.primary, sizeof next.primary, "%s", primary);
  if (member == NULL) {
    memcpy (next.members[0], next.primary, TL_NAME_SIZE);
  } else {
    swap = strcmp (member, primary) < 0;
    next.n_members = 2;
    snprintf (next.members[swap], TL_NAME_SIZE, "%s", primary);
    snprintf (next.members[!swap], TL_NAME_SIZE, "%s", member);
  }
  *view = next;
}

void
tl_record_push (struct tl_record *record, const struct tl_view *view)
{
  unsigned n = record->n_history;

  if (record->view.number != 0) {
    if (n == TL_HISTORY) {
      /* The oldest goes, or the one before it, if the oldest is what the
       * peer has: a comparison with that peer must find it.
       */
      n--;
      if (record->history[n].id == record->peer_view)
        record->history[n - 1] = record->history[n];
    }
    memmove (&record->history[1], &record->history[0],
             n * sizeof record->history[0]);
    record->history[0] = record->view;
    record->n_history = n + 1;
  }
  record->view = *view;
}

static bool
in_past (const struct tl_past *past, unsigned n, const struct tl_view *view)
{
  for (unsigned i = 0; i < n; i++)
    if (past[i].id == view->id && past[i].number == view->number)
      return true;
  return false;
}

enum tl_order
tl_view_compare (const struct tl_record *record, const struct tl_view *theirs,
                 const struct tl_past *past, unsigned n_past)
{
  const struct tl_view *ours = &record->view;

  if (ours->number == theirs->number && ours->id == theirs->id)
    return TL_SAME;
  if (ours->number == 0 ||
      (theirs->number > ours->number &&
       (theirs->parent == ours->id || in_past (past, n_past, ours))))
    return TL_BEHIND;
  if (theirs->number == 0)
    return TL_AHEAD;
  if (theirs->number < ours->number) {
    if (ours->parent == theirs->id)
      return TL_AHEAD;
    for (unsigned i = 0; i < record->n_history; i++)
      if (record->history[i].id == theirs->id &&
          record->history[i].number == theirs->number)
        return TL_AHEAD;
  }
  return TL_DIVERGED;
}

bool
tl_record_check (const struct tl_record *record, const char *volume,
                 const char *node, uint64_t size, char *error,
                 size_t error_size)
{
  if (strcmp (record->volume, volume) != 0) {
    snprintf (error, error_size, "it belongs to volume %s, not to %s",
              record->volume, volume);
    return false;
  }
  if (strcmp (record->node, node) != 0) {
    snprintf (error, error_size,
              "it belongs to node %s, not to %s: a state file is never copied "
              "between nodes",
              record->node, node);
    return false;
  }
  if (record->size != size) {
    snprintf (error, error_size,
              "the volume was created with size %llu, not %llu",
              (unsigned long long)record->size, (unsigned long long)size);
    return false;
  }
  return true;
}
