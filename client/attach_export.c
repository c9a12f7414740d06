#include "attach_export.h"
#include "control.h"

#include "core/core.h"

#include <fcntl.h>
#include <libnbd.h>
#include <linux/nbd.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

/* Sectors of the kernel's block layer, and its pages. */
#define BLOCK_LEAST 512
#define BLOCK_MOST 4096

static int
fail (const char *path, char *error, size_t error_size)
{
  const char *text = nbd_get_error ();

  snprintf (error, error_size,
            "cannot connect to the export at %s: %s; is this the socket of "
            "nbdkit's --unix?",
            path, text ? text : "?");
  return TL_FAILED;
}

/* The kernel knows neither structured replies nor any other extension. */
static int
shake_hands (struct nbd_handle *nbd, const char *path, const char *name,
             unsigned timeout, char *error, size_t error_size)
{
  int64_t until = control_now () + timeout, left;

  if (nbd_set_export_name (nbd, name) == -1 ||
      nbd_set_request_structured_replies (nbd, false) == -1 ||
      nbd_aio_connect_unix (nbd, path) == -1)
    return fail (path, error, error_size);
  while (!nbd_aio_is_ready (nbd)) {
    left = until - control_now ();
    if (left <= 0) {
      snprintf (error, error_size, "the export at %s lets nobody in", path);
      return TL_TIMED_OUT;
    }
    if (nbd_aio_is_dead (nbd) || nbd_aio_is_closed (nbd) ||
        nbd_poll (nbd, left < 1000 ? (int)left : 1000) == -1)
      return fail (path, error, error_size);
  }
  return TL_DONE;
}

static uint64_t
flags_of (struct nbd_handle *nbd)
{
  const struct {
    int (*is) (struct nbd_handle *nbd);
    uint64_t flag;
  } asked[] = {
      {nbd_is_read_only, NBD_FLAG_READ_ONLY},
      {nbd_can_flush, NBD_FLAG_SEND_FLUSH},
      {nbd_can_fua, NBD_FLAG_SEND_FUA},
      {nbd_can_trim, NBD_FLAG_SEND_TRIM},
      {nbd_can_zero, 1 << 6}, /* NBD_FLAG_SEND_WRITE_ZEROES of newer kernels */
      {nbd_can_multi_conn, NBD_FLAG_CAN_MULTI_CONN},
  };
  uint64_t flags = NBD_FLAG_HAS_FLAGS;

  for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++)
    if (asked[i].is (nbd) == 1)
      flags |= asked[i].flag;
  return flags;
}

/* The preferred size of a block, within what the kernel takes. */
static uint64_t
block_size_of (struct nbd_handle *nbd)
{
  int64_t size = nbd_get_block_size (nbd, LIBNBD_SIZE_PREFERRED);

  if (size < BLOCK_LEAST)
    return BLOCK_LEAST;
  return size < BLOCK_MOST ? (uint64_t)size : BLOCK_MOST;
}

int
export_open (struct export *export, const char *path, const char *name,
             unsigned timeout, char *error, size_t error_size)
{
  struct nbd_handle *nbd = nbd_create ();
  int64_t size;
  int status;

  if (!nbd)
    return fail (path, error, error_size);
  status = shake_hands (nbd, path, name, timeout, error, error_size);
  if (status == TL_DONE) {
    size = nbd_get_size (nbd);
    export->size = size > 0 ? (uint64_t)size : 0;
    export->block_size = block_size_of (nbd);
    export->flags = flags_of (nbd);
    export->fd = fcntl (nbd_aio_get_fd (nbd), F_DUPFD_CLOEXEC, 3);
    if (export->fd == -1) {
      snprintf (error, error_size, "cannot keep the connection to %s: %m",
                path);
      status = TL_FAILED;
    } else if (!export->size) {
      snprintf (error, error_size, "the export at %s has no size", path);
      close (export->fd);
      status = TL_REFUSED;
    }
  }
  nbd_close (nbd);
  return status;
}
