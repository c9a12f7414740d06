#include "cluster.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void execute (struct cluster *c, unsigned i);

void
cluster_step (struct cluster *c, unsigned i, struct tl_event *event)
{
  struct node *n = &c->nodes[i];

  if (n->core == NULL)
    return;
  event->now = c->now;
  event->random = c->random += 0x9e3779b97f4a7c15u;
  tl_core_step (n->core, event, &n->update);
  n->wake = n->update.wake;
  execute (c, i);
}

void
cluster_drop (struct cluster *c, unsigned i)
{
  for (unsigned p = 0; p < c->pipes[i].n; p++)
    free (c->pipes[i].packets[p].payload);
  c->pipes[i].n = 0;
}

static void
drop_pipes (struct cluster *c)
{
  cluster_drop (c, 0);
  cluster_drop (c, 1);
}

static void
closed (struct cluster *c, unsigned i, const char *reason)
{
  struct tl_event event = {.type = TL_EV_CLOSED,
                           .closed = {.id = c->conn, .reason = reason}};

  cluster_step (c, i, &event);
}

/* Node I closes the connection: what it sent before still arrives. */
static void
close_by (struct cluster *c, unsigned i)
{
  struct packet *p;

  if (c->conn == 0)
    return;
  ck_assert_uint_lt (c->pipes[i].n, QUEUE);
  p = &c->pipes[i].packets[c->pipes[i].n++];
  memset (p, 0, sizeof *p); /* type 0: the end */
}

static void
send_packet (struct cluster *c, unsigned i, const struct tl_action *a)
{
  struct node *n = &c->nodes[i];
  struct pipe *pipe = &c->pipes[i];
  struct packet *p;
  const void *bytes = NULL;

  if (a->conn != c->conn)
    return;
  ck_assert_uint_lt (pipe->n, QUEUE);
  p = &pipe->packets[pipe->n++];
  p->frame = a->frame;
  switch (a->payload) {
  case TL_PAYLOAD_NONE:
    break;
  case TL_PAYLOAD_REQUEST:
    bytes = ((struct unit_request *)a->request)->bytes;
    break;
  case TL_PAYLOAD_STORE:
    bytes = n->bytes + a->frame.offset;
    break;
  case TL_PAYLOAD_SMALL:
    bytes = a->small;
    break;
  }
  p->payload = malloc (a->frame.payload + 1);
  if (bytes != NULL)
    memcpy (p->payload, bytes, a->frame.payload);
}

static const void *current_payload;

static void
execute (struct cluster *c, unsigned i)
{
  struct node *n = &c->nodes[i];
  struct tl_update *u = &n->update;
  struct tl_request *next;

  for (unsigned k = 0; k < u->n; k++) {
    const struct tl_action *a = &u->actions[k];
    struct unit_request *r = (struct unit_request *)a->request;
    size_t used = strlen (n->log);

    switch (a->type) {
    case TL_DO_WRITE:
      memcpy (n->bytes + a->offset, r->bytes, a->length);
      tl_map_set (&n->allocated, tl_block_first (a->offset),
                  tl_block_count (a->offset, a->length));
      break;
    case TL_DO_READ:
      memcpy (r->bytes, n->bytes + r->core.offset, r->core.length);
      break;
    case TL_DO_ZERO:
      memset (n->bytes + a->offset, 0, a->length);
      break;
    case TL_DO_APPLY:
      memcpy (n->bytes + a->offset, current_payload, a->length);
      tl_map_set (&n->allocated, tl_block_first (a->offset),
                  tl_block_count (a->offset, a->length));
      break;
    case TL_DO_CLEAR:
      memset (n->bytes, 0, SIZE);
      tl_map_clear (&n->allocated, 0, BLOCKS);
      break;
    case TL_DO_SEND:
      send_packet (c, i, a);
      break;
    case TL_DO_CLOSE:
      if (a->conn == c->conn)
        close_by (c, i);
      break;
    case TL_DO_DIAL:
      n->dial_wanted = true;
      break;
    case TL_DO_STORE:
      n->store_wanted = true;
      break;
    case TL_DO_ASK:
      n->ask_wanted = true;
      n->ask = *a;
      break;
    case TL_DO_REPLY:
      ck_assert_uint_lt (n->n_replies, REPLIES);
      n->replies[n->n_replies].status = a->status;
      snprintf (n->replies[n->n_replies++].text, sizeof n->replies[0].text,
                "%s", a->text);
      break;
    case TL_DO_LOG:
      snprintf (n->log + used, sizeof n->log - used, "%s\n", a->text);
      break;
    }
  }
  for (struct tl_request *r = u->done; r != NULL; r = next) {
    next = r->next;
    ((struct unit_request *)r)->done = true;
  }
}

static bool
carry_dial (struct cluster *c, unsigned i)
{
  struct tl_event event = {.type = TL_EV_CONNECTED};
  struct node *n = &c->nodes[i];

  if (!n->dial_wanted)
    return false;
  n->dial_wanted = false;
  if (!c->link || c->nodes[!i].core == NULL || c->conn != 0) {
    struct tl_event failed = {.type = TL_EV_CLOSED,
                              .closed = {.reason = "no link"}};

    cluster_step (c, i, &failed);
    return true;
  }
  c->conn = (uint32_t)(c->random >> 32) | 1;
  event.connected.id = c->conn;
  event.connected.dialled = false;
  cluster_step (c, !i, &event);
  event.connected.dialled = true;
  cluster_step (c, i, &event);
  return true;
}

static bool
carry_frame (struct cluster *c, unsigned i)
{
  struct pipe *pipe = &c->pipes[i];
  struct packet p;
  struct tl_event event = {.type = TL_EV_FRAME};

  if (pipe->n == 0 || !c->link || c->hold_frames)
    return false;
  p = pipe->packets[0];
  if (c->hold_acks && p.frame.type == TL_ACK)
    return false;
  memmove (&pipe->packets[0], &pipe->packets[1],
           --pipe->n * sizeof pipe->packets[0]);
  if (p.frame.type == 0) {
    closed (c, !i, "closed by the peer");
    drop_pipes (c);
    c->conn = 0;
    return true;
  }
  event.frame.id = c->conn;
  event.frame.frame = &p.frame;
  event.frame.payload = current_payload = p.payload;
  cluster_step (c, !i, &event);
  free (p.payload);
  event = (struct tl_event){.type = TL_EV_BATCH_END};
  cluster_step (c, !i, &event);
  return true;
}

static bool
carry_store (struct cluster *c, unsigned i)
{
  struct node *n = &c->nodes[i];
  struct tl_event event = {.type = TL_EV_STORED, .stored = {.ok = true}};

  if (!n->store_wanted || (c->hold_stores >> i & 1))
    return false;
  n->store_wanted = false;
  if (c->fail_stores >> i & 1) {
    event.stored.ok = false;
    event.stored.reason = "the disk is full";
    cluster_step (c, i, &event);
    return true;
  }
  n->record = *tl_core_pending (n->core);
  n->has_record = true;
  cluster_step (c, i, &event);
  return true;
}

static bool
carry_ask (struct cluster *c, unsigned i)
{
  struct node *n = &c->nodes[i];
  struct tl_event event = {.type = TL_EV_ANSWER};
  bool match;

  if (!n->ask_wanted)
    return false;
  n->ask_wanted = false;
  event.answer.result = TL_ANSWER_UNKNOWN;
  event.answer.reason = "it is down";
  if (c->arbiter_up) {
    match = n->ask.create ? c->arbiter_view.number == 0
                          : tl_view_equal (&n->ask.before, &c->arbiter_view);
    event.answer.known = c->arbiter_view.number != 0;
    event.answer.uuid = c->arbiter_uuid;
    event.answer.view = c->arbiter_view;
    event.answer.result = match ? TL_ANSWER_DONE : TL_ANSWER_LOST;
    if (match) {
      c->arbiter_uuid = n->ask.uuid;
      c->arbiter_view = n->ask.after;
    }
    if (c->arbiter_mute)
      event.answer.result = TL_ANSWER_UNKNOWN;
  }
  cluster_step (c, i, &event);
  return true;
}

static bool
carry_time (struct cluster *c, unsigned i)
{
  struct tl_event event = {.type = TL_EV_TIME};

  if (c->nodes[i].core == NULL || c->nodes[i].wake > c->now)
    return false;
  cluster_step (c, i, &event);
  return true;
}

void
cluster_run (struct cluster *c)
{
  bool moved = true;

  for (unsigned rounds = 0; moved; rounds++) {
    ck_assert_msg (rounds < 10000, "the nodes never come to rest");
    moved = false;
    for (unsigned i = 0; i < 2; i++) {
      if (c->nodes[i].core == NULL)
        continue;
      moved = carry_store (c, i) || moved;
      moved = carry_ask (c, i) || moved;
      moved = carry_dial (c, i) || moved;
      moved = carry_frame (c, i) || moved;
      moved = carry_time (c, i) || moved;
    }
  }
}

void
cluster_pass (struct cluster *c, uint64_t microseconds)
{
  uint64_t end = c->now + microseconds;

  cluster_run (c);
  while (c->now < end) {
    c->now = c->now + 10000 < end ? c->now + 10000 : end;
    cluster_run (c);
  }
}

void
cluster_init (struct cluster *c, enum tl_policy policy)
{
  memset (c, 0, sizeof *c);
  c->policy = policy;
  c->arbiter = policy == TL_POLICY_ARBITER;
  c->arbiter_up = c->link = true;
  c->now = 1000000;
  c->nodes[0].name = "a";
  c->nodes[1].name = "b";
}

void
cluster_free (struct cluster *c)
{
  for (unsigned i = 0; i < 2; i++)
    cluster_crash (c, i);
}

static uint64_t
block_sum (void *opaque, uint64_t block)
{
  struct node *n = opaque;

  return tl_payload_checksum (n->bytes + block * TL_BLOCK, TL_BLOCK);
}

void
cluster_start (struct cluster *c, unsigned i)
{
  struct node *n = &c->nodes[i];
  struct tl_event event = {.type = TL_EV_START};
  struct tl_core_config config = {.volume = "v",
                                  .node = n->name,
                                  .size = SIZE,
                                  .arbiter = c->arbiter,
                                  .policy = c->policy,
                                  .deadline = DEADLINE};

  ck_assert_ptr_null (n->core);
  if (!n->killed) {
    memset (n->bytes, 0, SIZE);
    memset (&n->kept, 0, sizeof n->kept);
    memset (n->kept_map, 0, sizeof n->kept_map);
    n->incarnation = n->kept.incarnation = ++c->random;
    ck_assert_int_eq (tl_map_init (&n->allocated, BLOCKS), 0);
  }
  n->killed = false;
  config.incarnation = n->incarnation;
  config.sum = block_sum;
  config.sum_opaque = n;
  config.reads_local = c->extra.reads_local;
  config.auto_promote = c->extra.auto_promote;
  config.resync_rate = c->extra.resync_rate;
  if (c->keep) {
    config.kept = &n->kept;
    config.kept_map = n->kept_map;
  }
  config.allocated = &n->allocated;
  n->core = tl_core_new (&config, n->has_record ? &n->record : NULL);
  ck_assert_ptr_nonnull (n->core);
  cluster_step (c, i, &event);
}

static void
end_node (struct cluster *c, unsigned i)
{
  struct node *n = &c->nodes[i];

  tl_core_free (n->core);
  n->core = NULL;
  n->store_wanted = n->ask_wanted = n->dial_wanted = false;
  if (c->conn != 0) {
    closed (c, !i, "connection reset");
    drop_pipes (c);
    c->conn = 0;
  }
}

void
cluster_crash (struct cluster *c, unsigned i)
{
  struct node *n = &c->nodes[i];

  if (n->core != NULL)
    end_node (c, i);
  n->killed = false;
  tl_map_free (&n->allocated);
}

void
cluster_kill (struct cluster *c, unsigned i)
{
  ck_assert (c->keep);
  end_node (c, i);
  c->nodes[i].killed = true;
}

void
cluster_cut (struct cluster *c, bool link)
{
  uint32_t conn = c->conn;

  c->link = link;
  if (conn == 0)
    return;
  drop_pipes (c);
  closed (c, 0, "link cut");
  c->conn = conn;
  closed (c, 1, "link cut");
  drop_pipes (c);
  c->conn = 0;
}

int
cluster_command (struct cluster *c, unsigned i, enum tl_command command,
                 unsigned flags)
{
  struct node *n = &c->nodes[i];
  struct tl_event event = {
      .type = TL_EV_COMMAND,
      .command = {.command = command, .flags = flags, .token = 1}};
  unsigned before = n->n_replies = 0;

  memset (event.command.uuid.bytes, 7, sizeof event.command.uuid.bytes);
  cluster_step (c, i, &event);
  cluster_run (c);
  return n->n_replies > before ? n->replies[0].status : -1;
}

const char *
cluster_reply (const struct cluster *c, unsigned i)
{
  return c->nodes[i].n_replies > 0 ? c->nodes[i].replies[0].text : "";
}

static void
prepare (struct unit_request *r, enum tl_op op, uint64_t offset,
         uint32_t length)
{
  ck_assert (op == TL_OP_ZERO || length <= sizeof r->bytes);
  memset (r, 0, sizeof *r);
  r->core.op = op;
  r->core.offset = offset;
  r->core.length = length;
}

static void
submit (struct cluster *c, unsigned i, struct unit_request *r)
{
  struct tl_event event = {.type = TL_EV_REQUEST, .request = &r->core};

  r->core.epoch = tl_core_epoch (c->nodes[i].core);
  cluster_step (c, i, &event);
}

void
cluster_write (struct cluster *c, unsigned i, struct unit_request *r,
               uint64_t offset, uint32_t length, unsigned char fill)
{
  prepare (r, TL_OP_WRITE, offset, length);
  memset (r->bytes, fill, length);
  submit (c, i, r);
}

void
cluster_part (struct cluster *c, unsigned i, struct unit_request *r,
              uint64_t offset, uint32_t length, uint64_t began)
{
  prepare (r, TL_OP_WRITE, offset, length);
  r->core.began = began;
  submit (c, i, r);
}

void
cluster_zero (struct cluster *c, unsigned i, struct unit_request *r,
              uint64_t offset, uint32_t length)
{
  prepare (r, TL_OP_ZERO, offset, length);
  submit (c, i, r);
}

void
cluster_read (struct cluster *c, unsigned i, struct unit_request *r,
              uint64_t offset, uint32_t length)
{
  prepare (r, TL_OP_READ, offset, length);
  submit (c, i, r);
}

void
cluster_inject (struct cluster *c, unsigned i, struct tl_frame *frame,
                const void *payload)
{
  struct tl_event event = {
      .type = TL_EV_FRAME,
      .frame = {.id = c->conn, .frame = frame, .payload = payload}};

  current_payload = payload;
  cluster_step (c, i, &event);
}

void
cluster_status (const struct cluster *c, unsigned i, struct tl_status *s)
{
  tl_core_status (c->nodes[i].core, c->now, s);
}

void
cluster_pair (struct cluster *c, enum tl_policy policy)
{
  cluster_init (c, policy);
  cluster_create (c);
}

void
cluster_create (struct cluster *c)
{
  cluster_start (c, 0);
  cluster_start (c, 1);
  cluster_pass (c, 100000);
  ck_assert_int_eq (cluster_command (c, 0, TL_CMD_CREATE, 0), TL_DONE);
}
