/* What surrounds the two cores: connections, state files, RAM, the arbiter.
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
static const struct packet *arriving;
static const char *const names[] = {"a", "b"};

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

/* ---- Connections ---- */

static struct conn *
find_conn (uint32_t id, unsigned *index)
{
  for (unsigned i = 0; i < CONNS; i++)
    if (id != 0 && world.conns[i].id == id) {
      *index = i;
      return &world.conns[i];
    }
  return NULL;
}

static struct packet *
append (unsigned conn, unsigned receiver)
{
  struct pipe *pipe = &pipes[conn][receiver];
  struct packet *p = &pipe->packets[pipe->n];

  if (!world.conns[conn].open[receiver])
    return NULL;
  if (pipe->n == QUEUE) {
    overflow = true;
    return NULL;
  }
  memset (p, 0, offsetof (struct packet, small));
  pipe->n++;
  return p;
}

/* Node SIDE is done with it: what it had sent still arrives, then the end. */
static void
close_side (unsigned conn, unsigned side)
{
  struct conn *c = &world.conns[conn];
  struct packet *p;

  if (!c->open[side])
    return;
  c->open[side] = false;
  pipes[conn][side].n = 0;
  if (!c->open[!side]) {
    c->id = 0;
    c->cut = false;
  } else if (!c->cut) {
    p = append (conn, !side);
    if (p != NULL)
      p->end = true;
  }
}

/* What is on the way is lost, and so is what is sent until both know. */
void
world_cut (unsigned conn)
{
  struct conn *c = &world.conns[conn];

  for (unsigned side = 0; side < 2; side++) {
    struct packet *p;

    pipes[conn][side].n = 0;
    p = append (conn, side);
    if (p != NULL)
      p->end = true;
  }
  c->cut = true;
}

static void
send_packet (unsigned node, const struct tl_action *a)
{
  const struct client *r = (const struct client *)(const void *)a->request;
  uint64_t first = a->frame.offset / TL_BLOCK;
  unsigned conn;
  struct conn *c = find_conn (a->conn, &conn);
  struct packet *p;

  /* Pings are answered by time_pass: they carry nothing. */
  if (a->frame.type == TL_PING || a->frame.type == TL_PONG)
    return;
  if (c == NULL || c->cut || !c->open[node])
    return;
  p = append (conn, !node);
  if (p == NULL)
    return;
  p->frame = a->frame;
  switch (a->payload) {
  case TL_PAYLOAD_NONE:
    break;
  case TL_PAYLOAD_REQUEST:
    p->tags[first] = r->tag;
    break;
  case TL_PAYLOAD_STORE:
    for (uint64_t b = first; b < first + a->frame.length / TL_BLOCK; b++)
      p->tags[b] = world.nodes[node].tags[b];
    break;
  case TL_PAYLOAD_SMALL:
    assert (a->frame.payload <= SMALL);
    p->length = (uint16_t)a->frame.payload;
    memcpy (p->small, a->small, p->length);
    break;
  }
}

/* ---- Steps ---- */

static void
zero (struct node *n, uint64_t offset, uint64_t length)
{
  for (uint64_t b = offset / TL_BLOCK; b < (offset + length) / TL_BLOCK; b++)
    n->tags[b] = 0;
  tl_map_clear (&n->allocated, offset / TL_BLOCK, length / TL_BLOCK);
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
ask (unsigned node, const struct tl_action *a)
{
  struct question *q = NULL;

  for (unsigned i = 0; i < QUESTIONS; i++) {
    if (world.questions[i].used && world.questions[i].asked &&
        world.questions[i].node == node)
      violate ("node %s asks the arbiter twice at once", names[node]);
    if (!world.questions[i].used && q == NULL)
      q = &world.questions[i];
  }
  if (q == NULL) {
    overflow = true;
    return;
  }
  memset (q, 0, sizeof *q);
  q->used = q->asked = true;
  q->node = (uint8_t)node;
  q->create = a->create;
  q->uuid = a->uuid;
  q->before = a->before;
  q->after = a->after;
}

static void
execute (unsigned node)
{
  struct node *n = &world.nodes[node];

  for (unsigned k = 0; k < update.n; k++) {
    const struct tl_action *a = &update.actions[k];
    struct client *r = (struct client *)(void *)a->request;
    uint64_t first = a->offset / TL_BLOCK;
    unsigned conn;

    if (tracing)
      trace_action (a);
    switch (a->type) {
    case TL_DO_WRITE:
      n->tags[r->block] = r->tag;
      tl_map_set (&n->allocated, r->block, 1);
      break;
    case TL_DO_READ:
      r->tag = n->tags[r->block];
      break;
    case TL_DO_ZERO:
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
      send_packet (node, a);
      break;
    case TL_DO_CLOSE:
      if (find_conn (a->conn, &conn) != NULL)
        close_side (conn, node);
      break;
    case TL_DO_DIAL:
      n->dial_wanted = true;
      break;
    case TL_DO_STORE:
      if (n->store_wanted)
        violate ("node %s writes two records at once", names[node]);
      n->store_wanted = true;
      break;
    case TL_DO_ASK:
      ask (node, a);
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

  touched |= 1u << node;
  event->now = n->now;
  event->random = ++world.random * 0x9e3779b97f4a7c15u;
  tl_core_step (n->core, event, &update);
  n->wake = update.wake;
  execute (node);
  for (r = update.done; r != NULL; r = next) {
    struct client *client = (struct client *)(void *)r;

    next = r->next;
    client->pending = false;
    if (tracing)
      printf ("        %s of block %u (%u): %s\n",
              r->op == TL_OP_READ ? "read" : "write", client->block,
              client->tag, r->error == 0 ? "done" : strerror (r->error));
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

/* Nobody waits for its answer, and the arbiter is past what it would swap. */
static bool
hopeless (const struct question *q)
{
  const struct tl_view *stands = &world.arbiter_view;

  return q->used && !q->asked &&
         (q->create ? stands->number != 0
                    : stands->number >= q->before.number &&
                          !tl_view_equal (&q->before, stands));
}

/* Questions whose answer nobody waits for reach the arbiter now, or never.
 * False: there are none.
 */
bool
world_end_questions (bool lost)
{
  bool any = false;

  for (unsigned i = 0; i < QUESTIONS; i++)
    if (world.questions[i].used && !world.questions[i].asked) {
      if (!lost && !world.questions[i].executed)
        world_execute (i);
      world.questions[i].used = false;
      any = true;
    }
  world_tidy ();
  return any;
}

/* Connections and questions by age, without gaps: so that equal states are
 * equal bytes.  Numbers of either change, so this ends a move.
 */
void
world_tidy (void)
{
  unsigned n = 0;

  for (unsigned i = 0; i < CONNS; i++) {
    if (world.conns[i].id == 0)
      continue;
    if (n != i) {
      world.conns[n] = world.conns[i];
      memset (&world.conns[i], 0, sizeof world.conns[i]);
      for (unsigned side = 0; side < 2; side++) {
        pipes[n][side].n = pipes[i][side].n;
        memcpy (pipes[n][side].packets, pipes[i][side].packets,
                pipes[i][side].n * sizeof pipes[i][side].packets[0]);
        pipes[i][side].n = 0;
      }
    }
    n++;
  }
  n = 0;
  for (unsigned i = 0; i < QUESTIONS; i++) {
    if (hopeless (&world.questions[i]))
      world.questions[i].used = false;
    if (!world.questions[i].used)
      continue;
    if (n != i) {
      world.questions[n] = world.questions[i];
      memset (&world.questions[i], 0, sizeof world.questions[i]);
    }
    n++;
  }
}

void
world_start (unsigned node)
{
  struct node *n = &world.nodes[node];
  struct tl_event event = {.type = TL_EV_START};
  struct tl_core_config config = {.volume = "v",
                                  .node = names[node],
                                  .size = SIZE,
                                  .arbiter =
                                      scenario->policy == TL_POLICY_ARBITER,
                                  .policy = scenario->policy,
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

void
world_stored (unsigned node, bool ok)
{
  struct node *n = &world.nodes[node];
  struct tl_event event = {.type = TL_EV_STORED,
                           .stored = {.ok = ok, .reason = "disk full"}};

  n->store_wanted = false;
  if (ok) {
    records[node] = *tl_core_pending (n->core);
    n->has_record = true;
  }
  world_step (node, &event);
}

/* What the node had sent and has not arrived is lost with it: that it arrives
 * first is another order of moves.
 */
void
world_crash (unsigned node, unsigned arg)
{
  struct node *n = &world.nodes[node];

  touched |= 1u << node;
  if (n->store_wanted && (arg & MADE)) {
    records[node] = *tl_core_pending (n->core);
    n->has_record = true;
  }
  for (unsigned i = 0; i < CONNS; i++)
    if (world.conns[i].id != 0 && world.conns[i].open[node]) {
      pipes[i][!node].n = 0;
      world.conns[i].cut = false;
      close_side (i, node);
    }
  for (unsigned i = 0; i < QUESTIONS; i++)
    if (world.questions[i].used && world.questions[i].node == node) {
      world.questions[i].asked = false;
      if (world.questions[i].executed)
        world.questions[i].used = false;
    }
  for (unsigned i = 0; i < world.n_clients; i++)
    if (world.clients[i].node == node)
      world.clients[i].pending = false;
  tl_core_free (n->core);
  n->core = NULL;
  n->has_ram = arg & KEPT;
  n->store_wanted = n->dial_wanted = n->waits = false;
  world.nodes[!node].fenced = false;
}

void
world_dial (unsigned node)
{
  struct tl_event event = {.type = TL_EV_CONNECTED};
  unsigned conn = 0;
  struct conn *c;

  world.nodes[node].dial_wanted = false;
  while (world.conns[conn].id != 0)
    conn++;
  c = &world.conns[conn];
  c->id = ++world.next_conn;
  c->open[0] = c->open[1] = true;
  c->cut = false;
  event.connected.id = c->id;
  event.connected.dialled = false;
  world_step (!node, &event);
  event.connected.dialled = true;
  world_step (node, &event);
}

/* The next frame, and that no other follows for the moment: a batch of several
 * is the same as that the acknowledgements between are lost or late.
 */
void
world_deliver (unsigned node, unsigned conn)
{
  static struct packet p;
  struct pipe *pipe = &pipes[conn][node];
  struct tl_event event = {.type = TL_EV_FRAME};
  uint32_t id = world.conns[conn].id;

  p = pipe->packets[0];
  memmove (&pipe->packets[0], &pipe->packets[1],
           --pipe->n * sizeof pipe->packets[0]);
  if (p.end) {
    event.type = TL_EV_CLOSED;
    event.closed.id = id;
    event.closed.reason = "connection lost";
    close_side (conn, node);
    world_step (node, &event);
    return;
  }
  event.frame.id = id;
  event.frame.frame = &p.frame;
  event.frame.payload = p.small;
  arriving = &p;
  world_step (node, &event);
  event = (struct tl_event){.type = TL_EV_BATCH_END};
  world_step (node, &event);
}

void
world_execute (unsigned question)
{
  struct question *q = &world.questions[question];
  const struct tl_view *stands = &world.arbiter_view;
  bool match = q->create ? stands->number == 0
                         : tl_view_equal (&q->before, stands) &&
                               tl_uuid_equal (&q->uuid, &world.arbiter_uuid);

  q->executed = true;
  q->known = stands->number != 0;
  q->result = match ? TL_ANSWER_DONE : TL_ANSWER_LOST;
  if (match) {
    world.arbiter_uuid = q->uuid;
    world.arbiter_view = q->after;
  } else {
    q->uuid = world.arbiter_uuid;
    q->found = *stands;
  }
  if (!q->asked)
    q->used = false;
}

void
world_answer (unsigned question, bool unknown)
{
  struct question *q = &world.questions[question];
  struct tl_event event = {.type = TL_EV_ANSWER};

  event.answer.result = unknown ? TL_ANSWER_UNKNOWN : q->result;
  event.answer.reason = "no answer";
  event.answer.known = q->known;
  event.answer.uuid = q->uuid;
  event.answer.view = q->found;
  q->asked = false;
  if (q->executed)
    q->used = false;
  world_step (q->node, &event);
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
  if (op == TL_OP_WRITE)
    r->tag = ++world.tag;
  world_step (node, &event);
}
