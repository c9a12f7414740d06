/* What is asked of the inside of a node. */
#include "threads.h"
#include "net/net.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

void
inside_squeeze (struct slot *slot)
{
  struct tl_node *node = slot_enter (slot);
  int bytes = 4096; /* the kernel takes what it needs at least */
  unsigned rate = 10u << 20;

  if (!node)
    return;
  tl_lock (node);
  for (struct tl_conn *conn = node->conns; conn; conn = conn->next)
    if (setsockopt (conn->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes) ||
        setsockopt (conn->fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate,
                    sizeof rate))
      violation (slot->test, "a connection cannot be made small");
  tl_unlock (node);
  slot_leave (slot);
}

/* Somebody reads what comes from the peer, or the loop watches for it. */
void
inside_watched (struct test *test, struct slot *slot)
{
  struct tl_node *node = slot_enter (slot);

  if (!node)
    return;
  tl_lock (node);
  for (struct tl_conn *conn = node->conns; conn; conn = conn->next)
    if (conn->id && !conn->told && !conn->reading &&
        (conn->lent || !(conn->watching & EPOLLIN)))
      violation (test, "nobody would see what comes from the peer");
  tl_unlock (node);
  slot_leave (slot);
}

static unsigned char *
copy_store (struct slot *slot)
{
  unsigned char *bytes = malloc (SIZE);
  struct tl_node *node = slot_enter (slot);

  if (!node || !bytes) {
    free (bytes);
    if (node)
      slot_leave (slot);
    return NULL;
  }
  tl_lock (node);
  tl_store_read (node->store, 0, SIZE, bytes);
  tl_unlock (node);
  slot_leave (slot);
  return bytes;
}

void
judge_stores (struct test *test)
{
  unsigned char *a = copy_store (&test->slots[0]);
  unsigned char *b = copy_store (&test->slots[1]);
  unsigned differ = 0, first = 0;

  if (!a || !b)
    violation (test, "a store cannot be read");
  for (unsigned i = 0; a && b && i < SECTORS; i++)
    if (memcmp (a + i * SECTOR, b + i * SECTOR, SECTOR) != 0 && !differ++)
      first = i;
  if (differ)
    violation (test, "the stores differ in %u sectors, the first is %u", differ,
               first);
  free (a);
  free (b);
}
