/* The payloads of hello, view and bitmap frames. */
#include "byte.h"
#include "core.h"

static void
put_view (unsigned char **at, const struct tl_view *view)
{
  tl_put (at, view->number, 8);
  tl_put (at, view->id, 8);
  tl_put (at, view->parent, 8);
  tl_put_name (at, view->primary);
  tl_put (at, view->n_members, 4);
  for (unsigned i = 0; i < view->n_members; i++)
    tl_put_name (at, view->members[i]);
}

static void
get_view (struct tl_reader *in, struct tl_view *view)
{
  memset (view, 0, sizeof *view);
  view->number = tl_get (in, 8);
  view->id = tl_get (in, 8);
  view->parent = tl_get (in, 8);
  tl_get_name (in, view->primary);
  view->n_members = (unsigned)tl_get (in, 4);
  if (view->n_members > TL_MEMBERS) {
    view->n_members = 0;
    in->failed = true;
  }
  for (unsigned i = 0; i < view->n_members; i++)
    tl_get_name (in, view->members[i]);
  if (!tl_view_valid (view))
    in->failed = true;
}

/* 0 where all was read, nothing is left and nothing failed. */
static int
finish (const struct tl_reader *in)
{
  return in->failed || in->left != 0 ? -1 : 0;
}

size_t
tl_hello_encode (const struct tl_hello *hello, void *buffer)
{
  unsigned char *at = buffer;

  tl_put (&at, hello->version_min, 4);
  tl_put (&at, hello->version_max, 4);
  tl_put (&at, hello->features, 8);
  tl_put_name (&at, hello->volume);
  tl_put_name (&at, hello->node);
  tl_put_bytes (&at, hello->uuid.bytes, sizeof hello->uuid.bytes);
  tl_put (&at, hello->size, 8);
  tl_put (&at, hello->incarnation, 8);
  tl_put (&at, hello->role, 1);
  tl_put (&at, hello->data, 1);
  tl_put (&at, hello->member, 1);
  tl_put (&at, hello->arbiter, 1);
  put_view (&at, &hello->view);
  tl_put (&at, hello->n_past, 4);
  for (unsigned i = 0; i < hello->n_past; i++) {
    tl_put (&at, hello->past[i].number, 8);
    tl_put (&at, hello->past[i].id, 8);
  }
  return (size_t)(at - (unsigned char *)buffer);
}

int
tl_hello_decode (struct tl_hello *hello, const void *buffer, size_t length)
{
  struct tl_reader in = {.at = buffer, .left = length};

  memset (hello, 0, sizeof *hello);
  hello->version_min = (uint32_t)tl_get (&in, 4);
  hello->version_max = (uint32_t)tl_get (&in, 4);
  /* A later version may lay out the rest in another way; the caller must be
   * able to say so.
   */
  if (!in.failed && (hello->version_min > TL_PROTOCOL_MAX ||
                     hello->version_max < TL_PROTOCOL_MIN))
    return 0;
  hello->features = tl_get (&in, 8);
  tl_get_name (&in, hello->volume);
  tl_get_name (&in, hello->node);
  tl_get_bytes (&in, hello->uuid.bytes, sizeof hello->uuid.bytes);
  hello->size = tl_get (&in, 8);
  hello->incarnation = tl_get (&in, 8);
  hello->role = (uint8_t)tl_get (&in, 1);
  hello->data = (uint8_t)tl_get (&in, 1);
  hello->member = (uint8_t)tl_get (&in, 1);
  hello->arbiter = (uint8_t)tl_get (&in, 1);
  get_view (&in, &hello->view);
  hello->n_past = (unsigned)tl_get (&in, 4);
  if (hello->n_past > TL_HISTORY) {
    hello->n_past = 0;
    in.failed = true;
  }
  for (unsigned i = 0; i < hello->n_past; i++) {
    hello->past[i].number = tl_get (&in, 8);
    hello->past[i].id = tl_get (&in, 8);
  }
  if (!tl_name_valid (hello->volume) || !tl_name_valid (hello->node) ||
      hello->incarnation == 0 || hello->role > TL_PRIMARY ||
      hello->data > TL_COMPLETE || hello->member > 1 || hello->arbiter > 1)
    in.failed = true;
  return finish (&in);
}

size_t
tl_view_encode (const struct tl_uuid *uuid, const struct tl_view *view,
                void *buffer)
{
  unsigned char *at = buffer;

  tl_put_bytes (&at, uuid->bytes, sizeof uuid->bytes);
  put_view (&at, view);
  return (size_t)(at - (unsigned char *)buffer);
}

int
tl_view_decode (struct tl_uuid *uuid, struct tl_view *view, const void *buffer,
                size_t length)
{
  struct tl_reader in = {.at = buffer, .left = length};

  tl_get_bytes (&in, uuid->bytes, sizeof uuid->bytes);
  get_view (&in, view);
  if (view->number == 0 || tl_uuid_zero (uuid))
    in.failed = true;
  return finish (&in);
}

size_t
tl_runs_encode (const struct tl_run *runs, unsigned n, void *buffer)
{
  unsigned char *at = buffer;

  for (unsigned i = 0; i < n; i++) {
    tl_put (&at, runs[i].first, 8);
    tl_put (&at, runs[i].count, 8);
  }
  return (size_t)(at - (unsigned char *)buffer);
}

int
tl_runs_decode (struct tl_run *runs, unsigned *n, uint64_t blocks,
                const void *buffer, size_t length)
{
  struct tl_reader in = {.at = buffer, .left = length};

  *n = 0;
  while (in.left > 0 && !in.failed && *n < TL_RUNS_MAX) {
    struct tl_run *run = &runs[*n];

    run->first = tl_get (&in, 8);
    run->count = tl_get (&in, 8);
    if (run->first >= blocks || run->count == 0 ||
        run->count > blocks - run->first)
      in.failed = true;
    else
      ++*n;
  }
  return finish (&in);
}
