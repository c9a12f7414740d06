/* What is going to happen: a binary heap by time, then by insertion. */
#include "sim.h"

#include <stdlib.h>

void
queue_reset (struct queue *queue)
{
  queue->n = 0;
  queue->order = 0;
}

static bool
before (const struct entry *a, const struct entry *b)
{
  return a->time != b->time ? a->time < b->time : a->order < b->order;
}

uint64_t
queue_push (struct queue *queue, const struct entry *entry)
{
  if (queue->n == queue->room) {
    queue->room = queue->room ? queue->room * 2 : 256;
    queue->heap = realloc (queue->heap, queue->room * sizeof *queue->heap);
    if (!queue->heap)
      abort ();
  }

  struct entry new = *entry;
  size_t at = queue->n++;

  new.order = ++queue->order;
  while (at > 0 && before (&new, &queue->heap[(at - 1) / 2])) {
    queue->heap[at] = queue->heap[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  queue->heap[at] = new;
  return new.order;
}

bool
queue_pop (struct queue *queue, struct entry *entry)
{
  if (queue->n == 0)
    return false;
  *entry = queue->heap[0];

  struct entry last = queue->heap[--queue->n];
  size_t at = 0;

  for (;;) {
    size_t child = at * 2 + 1;

    if (child >= queue->n)
      break;
    if (child + 1 < queue->n &&
        before (&queue->heap[child + 1], &queue->heap[child]))
      child++;
    if (!before (&queue->heap[child], &last))
      break;
    queue->heap[at] = queue->heap[child];
    at = child;
  }
  queue->heap[at] = last;
  return true;
}

void
sim_at (struct sim *sim, uint64_t time, enum kind kind, struct node *node,
        uint64_t a, uint64_t b)
{
  struct entry entry = {
      .time = time,
      .kind = kind,
      .node = node ? node->index : -1,
      .life = node ? node->life : 0,
      .a = a,
      .b = b,
  };

  queue_push (&sim->queue, &entry);
}
