/* How many paths the connection to the peer has, where mptcp= is on. */
#include "net/net.h"
#include "net/tcp.h"

static struct tl_conn *
connection (const struct tl_node *node)
{
  for (struct tl_conn *conn = node->conns; conn; conn = conn->next)
    if (conn->id && !conn->told)
      return conn;
  return NULL;
}

unsigned
tl_mptcp_paths (const struct tl_node *node)
{
  struct tl_conn *conn = connection (node);
  struct tl_tcp tcp;

  return conn && tl_tcp_look (conn->fd, &tcp) ? tcp.paths : 0;
}

static void
say (struct tl_node *node, unsigned paths)
{
  if (paths < node->paths.now)
    tl_log_add (node, true, "paths of the mirror: %u of %u: look at the cables",
                paths, node->paths.most);
  else
    tl_log_add (node, false, "paths of the mirror: %u", paths);
}

/* The other paths join right after the first one, so that a connection is
 * looked at from the second time on.
 */
static void
look (struct tl_node *node)
{
  struct tl_paths *known = &node->paths;
  struct tl_conn *conn = connection (node);
  uint32_t id = conn ? conn->id : 0;
  unsigned paths;

  if (id != known->conn)
    *known = (struct tl_paths){.conn = id};
  else if (conn) {
    paths = tl_mptcp_paths (node);
    if (paths != known->now)
      say (node, paths);
    known->now = paths;
    if (paths > known->most)
      known->most = paths;
  }
}

void
tl_mptcp_look (struct tl_node *node)
{
  tl_lock (node);
  look (node);
  tl_unlock (node);
}
