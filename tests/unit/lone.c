#include "lone.h"

#include <check.h>
#include <string.h>

static uint64_t
no_sum (void *opaque, uint64_t block)
{
  return 0;
}

void
lone_init (struct lone *l)
{
  struct tl_view view = {.number = 1,
                         .id = 5,
                         .primary = "b",
                         .n_members = 2,
                         .members = {"a", "b"}};

  memset (l, 0, sizeof *l);
  l->kept.incarnation = 7;
  l->kept.data = TL_COMPLETE;
  l->record = (struct tl_record){.volume = "v",
                                 .node = "a",
                                 .size = (uint64_t)LONE_BLOCKS * TL_BLOCK,
                                 .uuid = {{1}},
                                 .view = view,
                                 .incarnation = l->kept.incarnation,
                                 .peer = "b"};
  l->hello = (struct tl_hello){.version_min = TL_PROTOCOL_MIN,
                               .version_max = TL_PROTOCOL_MAX,
                               .volume = "v",
                               .node = "b",
                               .uuid = l->record.uuid,
                               .size = l->record.size,
                               .incarnation = 8,
                               .role = TL_PRIMARY,
                               .data = TL_COMPLETE,
                               .member = 1,
                               .view = view};
  ck_assert_int_eq (tl_map_init (&l->allocated, LONE_BLOCKS), 0);
  l->config = (struct tl_core_config){.volume = "v",
                                      .node = "a",
                                      .size = l->record.size,
                                      .deadline = 1000000,
                                      .kept = &l->kept,
                                      .kept_map = l->kept_map,
                                      .allocated = &l->allocated,
                                      .sum = no_sum};
}

void
lone_start (struct lone *l)
{
  struct tl_event event = {.type = TL_EV_START};

  l->core = tl_core_new (&l->config, &l->record);
  ck_assert_ptr_nonnull (l->core);
  lone_step (l, &event);
}

void
lone_free (struct lone *l)
{
  tl_core_free (l->core);
  tl_map_free (&l->allocated);
}

void
lone_step (struct lone *l, struct tl_event *event)
{
  event->now = 1000000;
  event->random = 99;
  tl_core_step (l->core, event, &l->update);
}

void
lone_give (struct lone *l, struct tl_frame frame, const void *payload)
{
  struct tl_event event = {
      .type = TL_EV_FRAME,
      .frame = {.id = 1, .frame = &frame, .payload = payload}};

  lone_step (l, &event);
}

void
lone_hello (struct lone *l)
{
  struct tl_event event = {.type = TL_EV_CONNECTED, .connected = {.id = 1}};
  struct tl_frame frame = {.type = TL_HELLO};
  unsigned char bytes[TL_SMALL_MAX];

  lone_step (l, &event);
  frame.payload = (uint32_t)tl_hello_encode (&l->hello, bytes);
  lone_give (l, frame, bytes);
}

uint64_t
lone_welcome (struct lone *l)
{
  struct tl_frame frame = {.type = TL_WELCOME,
                           .session = lone_sent (l, TL_HELLO)->frame.session};

  lone_give (l, frame, NULL);
  return frame.session;
}

const struct tl_action *
lone_sent (const struct lone *l, uint8_t type)
{
  for (unsigned i = 0; i < l->update.n; i++)
    if (l->update.actions[i].type == TL_DO_SEND &&
        l->update.actions[i].frame.type == type)
      return &l->update.actions[i];
  ck_abort_msg ("no %s is sent", tl_frame_name (type));
  return NULL;
}
