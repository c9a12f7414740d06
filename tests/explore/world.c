/* What surrounds the two cores: state files, RAM, clocks, clients, operators.
 *
 * Each node has a clock of its own, which stands until a move lets it reach
 * the core's next timer: no rule may depend on a clock, so any two clocks are
 * as good as one.  A dial that finds nobody stays under way until there is
 * somebody, which is the same as many that fail.
 */
#include "explore.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

struct world world;
struct pipe pipes[CONNS][2];
struct tl_record records[2];
struct tl_kept kept[2];
const struct scenario *scenario;
bool tracing, overflow;
unsigned touched;
char violation[256];

static struct tl_update update;
const struct packet *arriving;

void
violate (const char *format, ...)
{
  va_list args;

  if (violation[0] != '\0')
    return;
  va_start (args, format);
  vsnprintf (violation, sizeof violation, format, args);
  va_end (args);
}

void
world_init (const struct scenario *s)
{
  memset (&world, 0, sizeof world);
  memset (records, 0, sizeof records);
  memset (kept, 0, sizeof kept);
  for (unsigned i = 0; i < 2 * CONNS; i++)
    pipes[i / 2][i % 2].n = 0;
  scenario = s;
  world.nodes[0].now = world.nodes[1].now = 1000 * DEADLINE;
  violation[0] = '\0';
  overflow = false;
}

/* ---- Steps ---- */

char
node_name (unsigned node)
{
  return world.nodes[node].replaced ? 'c' : (char)('a' + node);
}

/* What the block holds.  Zeroes are those of the newest zero or, before the
 * first, no write: there is no telling them apart.
 */
uint8_t
content (unsigned node, unsigned block)
{
  const struct node *n = &world.nodes[node];

  return tl_map_test (&n->allocated, block) ? n->tags[block]
                                            : world.zeroed[block];
}

static void
zero (struct node *n, uint64_t offset, uint64_t length)
{
  for (uint64_t b = offset / TL_BLOCK; b < (offset + length) / TL_BLOCK; b++)
    n->tags[b] = 0;
  tl_map_clear (&n->allocated, offset / TL_BLOCK, length / TL_BLOCK);
}

/* A write or a zero of a client reaches the store of its node. */
static void
change (unsigned node, const struct client *r)
{
  struct node *n = &world.nodes[node];

  owed_change (node, r);
  if (r->core.op == TL_OP_ZERO) {
    world.zeroed[r->block] = r->tag;
    zero (n, r->core.offset, r->core.length);
  } else {
    n->tags[r->block] = r->tag;
    tl_map_set (&n->allocated, r->block, 1);
  }
}

static void
trace_action (const struct tl_action *a)
{
  switch (a->type) {
  case TL_DO_SEND:
    if (a->frame.type != TL_PING)
      printf ("        send %s%s view %llu sequence %llu\n",
              tl_frame_name (a->frame.type), a->frame.flags ? " (flag)" : "",
              (unsigned long long)a->frame.view,
              (unsigned long long)a->frame.sequence);
    break;
  case TL_DO_CLOSE:
    printf ("        close: %s\n", a->text);
    break;
  case TL_DO_STORE:
    printf ("        write the record\n");
    break;
  case TL_DO_ASK:
    printf ("        ask for view %llu, primary %s, %u members\n",
            (unsigned long long)a->after.number, a->after.primary,
            a->after.n_members);
    break;
  case TL_DO_REPLY:
    printf ("        reply %d: %s\n", a->status, a->text);
    break;
  case TL_DO_LOG:
    printf ("        \"%s\"\n", a->text);
    break;
  default:
    break;
  }
}

static void
execute (unsigned node)
{
  struct node *n = &world.nodes[node];

  for (unsigned k = 0; k < update.n; k++) {
    const struct tl_action *a = &update.actions[k];
    struct client *r = (struct client *)(void *)a->request;
    uint64_t first = a->offset / TL_BLOCK;

    if (tracing)
      trace_action (a);
    switch (a->type) {
    case TL_DO_WRITE:
      change (node, r);
      break;
    case TL_DO_READ:
      r->tag = content (node, r->block);
      break;
    case TL_DO_ZERO:
      if (r != NULL)
        change (node, r);
      else
        zero (n, a->offset, a->length);
      break;
    case TL_DO_APPLY:
      for (uint64_t b = first; b < first + a->length / TL_BLOCK; b++)
        n->tags[b] = arriving->tags[b];
      tl_map_set (&n->allocated, first, a->length / TL_BLOCK);
      break;
    case TL_DO_CLEAR:
      zero (n, 0, SIZE);
      break;
    case TL_DO_SEND:
      wire_send (node, a);
      break;
    case TL_DO_CLOSE:
      wire_close (node, a->conn);
      break;
    case TL_DO_DIAL:
      n->dial_wanted = true;
      break;
    case TL_DO_STORE:
      if (n->store_wanted)
        violate ("node %c writes two records at once", node_name (node));
      n->store_wanted = true;
      break;
    case TL_DO_ASK:
      arbiter_ask (node, a);
      break;
    case TL_DO_REPLY:
      n->waits = false;
      n->status = a->status;
      world.nodes[!node].fenced = false;
      break;
    case TL_DO_LOG:
      break;
    }
  }
}

void
world_step (unsigned node, struct tl_event *event)
{
  struct node *n = &world.nodes[node];
  struct tl_request *r, *next;
  bool forced = n->core->role != TL_PRIMARY && n->core->agree.forced;

  touched |= 1u << node;
  event->now = n->now;
  event->random = ++world.random * 0x9e3779b97f4a7c15u;
  tl_core_step (n->core, event, &update);
  n->wake = update.wake;
  execute (node);
  if (forced && n->core->role == TL_PRIMARY)
    owed_forced (node);
  if (n->core->kept->data == TL_EMPTY)
    owed_nothing (node);
  for (r = update.done; r != NULL; r = next) {
    struct client *client = (struct client *)(void *)r;

    next = r->next;
    client->pending = false;
    if (tracing)
      printf ("        %s of block %u (%u): %s\n",
              r->op == TL_OP_READ    ? "read"
              : r->op == TL_OP_WRITE ? "write"
                                     : "zero",
              client->block, client->tag,
              r->error == 0 ? "done" : strerror (r->error));
    if (r->error == EIO && scenario->policy == TL_POLICY_FREEZE)
      violate ("a request fails on node %c, which is to wait",
               node_name (node));
    if (r->error != 0)
      continue;
    if (r->op == TL_OP_READ)
      check_read (node, client);
    else
      check_acknowledged (node, client);
  }
  if (n->core->record.n_history >= PAST || n->core->kept != &kept[node] ||
      n->core->n_slots < TL_KEPT_WRITES - TOP)
    overflow = true;
}

/* ---- Moves of the world ---- */

void
world_start (unsigned node)
{
  struct node *n = &world.nodes[node];
  struct tl_event event = {.type = TL_EV_START};
  char name[] = {node_name (node), '\0'};
  struct tl_core_config config = {.volume = "v",
                                  .node = name,
                                  .size = SIZE,
                                  .arbiter =
                                      scenario->policy == TL_POLICY_ARBITER,
                                  .policy = scenario->policy,
                                  .reads_local = scenario->reads_local,
                                  .auto_promote = scenario->auto_promote,
                                  .resync_rate = scenario->resync_rate,
                                  .deadline = DEADLINE,
                                  .kept = &kept[node],
                                  .kept_map = n->dirty_words,
                                  .allocated = &n->allocated};

  if (!n->has_ram) {
    memset (&kept[node], 0, offsetof (struct tl_kept, writes));
    memset (&kept[node].writes[TL_KEPT_WRITES - TOP], 0,
            TOP * sizeof kept[node].writes[0]);
    memset (n->tags, 0, sizeof n->tags);
    n->allocated_words[0] = n->dirty_words[0] = 0;
    kept[node].incarnation = ++world.random * 0x9e3779b97f4a7c15u;
    tl_map_over (&n->allocated, n->allocated_words, BLOCKS);
    n->has_ram = true;
  }
  arena_begin (node);
  n->core = tl_core_new (&config, n->has_record ? &records[node] : NULL);
  arena_end ();
  assert (n->core == arena_core (node) && n->core->slots == arena_slots (node));
  n->epoch = n->core->epoch;
  world_step (node, &event);
}

/* The record that was being written is durable. */
static void
make_record (unsigned node)
{
  const struct tl_record *record = tl_core_pending (world.nodes[node].core);

  if (record->view.number == 0)
    owed_nothing (node); /* an operator gives it up */
  records[node] = *record;
  world.nodes[node].has_record = true;
}

/* OK: what the node is told; MADE: whether it is so.  (The directory may fail
 * after the file was renamed.)
 */
void
world_stored (unsigned node, bool ok, bool made)
{
  struct node *n = &world.nodes[node];
  struct tl_event event = {.type = TL_EV_STORED,
                           .stored = {.ok = ok, .reason = "disk full"}};

  n->store_wanted = false;
  if (made)
    make_record (node);
  world_step (node, &event);
}

/* Neither node has a state file or data: nobody can know that the volume was
 * ever created.
 */
static bool
nothing_left (void)
{
  for (unsigned i = 0; i < 2; i++)
    if (world.nodes[i].has_record ||
        (world.nodes[i].has_ram && kept[i].data != TL_EMPTY))
      return false;
  return true;
}

void
world_crash (unsigned node, unsigned arg)
{
  struct node *n = &world.nodes[node];

  touched |= 1u << node;
  if (n->store_wanted && (arg & MADE))
    make_record (node);
  if (arg & GONE) {
    memset (&records[node], 0, sizeof records[node]);
    n->has_record = false;
    world.record_lost = true;
  }
  wire_crash (node);
  arbiter_crash (node);
  for (unsigned i = 0; i < world.n_clients; i++)
    if (world.clients[i].node == node)
      world.clients[i].pending = false;
  tl_core_free (n->core);
  n->core = NULL;
  n->has_ram = arg & KEPT;
  if (!n->has_ram)
    owed_nothing (node);
  if ((arg & GONE) && nothing_left ()) {
    memset (world.acknowledged, 0, sizeof world.acknowledged);
    memset (world.floor, 0, sizeof world.floor);
    world.ack_number = world.ack_id = 0;
  }
  n->store_wanted = n->dial_wanted = n->waits = false;
  world.nodes[!node].fenced = false;
}

/* Another machine takes the place of the node. */
void
world_replace (unsigned node)
{
  if (world.nodes[node].core != NULL)
    world_crash (node, GONE);
  memset (&records[node], 0, sizeof records[node]);
  world.nodes[node].has_record = world.nodes[node].has_ram = false;
  world.nodes[node].replaced = true;
  owed_nothing (node);
  touched |= 1u << node;
}

/* Ends a move: equal states are equal bytes. */
void
world_tidy (void)
{
  wire_tidy ();
  arbiter_tidy ();
}

void
world_command (unsigned node, enum tl_command command, unsigned flags)
{
  struct tl_event event = {
      .type = TL_EV_COMMAND,
      .command = {.command = command, .flags = flags, .token = 1}};

  memset (event.command.uuid.bytes, (int)node + 1,
          sizeof event.command.uuid.bytes);
  world.nodes[node].waits = true;
  world.nodes[node].status = -1;
  world_step (node, &event);
}

void
world_request (unsigned node, enum tl_op op, unsigned block)
{
  struct client *r = &world.clients[world.n_clients++];
  struct tl_event event = {.type = TL_EV_REQUEST, .request = &r->core};

  memset (r, 0, sizeof *r);
  r->core.op = op;
  r->core.offset = block * TL_BLOCK;
  r->core.length = TL_BLOCK;
  r->core.epoch = tl_core_epoch (world.nodes[node].core);
  r->pending = true;
  r->node = (uint8_t)node;
  r->block = (uint8_t)block;
  r->floor = world.floor[block];
  if (op != TL_OP_READ)
    r->tag = ++world.tag;
  world_step (node, &event);
}
