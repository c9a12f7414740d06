/* The trace: one readable line for each event and each action, to standard
 * output or into a ring that is printed after a violation.
 */
#include "sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static struct trace_ring *target;

void
sim_trace_to (struct trace_ring *ring)
{
  target = ring;
  if (ring)
    ring->n = 0;
}

void
sim_trace (struct sim *sim, const char *format, ...)
{
  char line[TRACE_WIDTH];
  int n = snprintf (line, sizeof line, "%10.3f #%-6llu ",
                    (double)sim->now / 1000, (unsigned long long)sim->steps);
  va_list args;

  va_start (args, format);
  vsnprintf (line + n, sizeof line - (size_t)n, format, args);
  va_end (args);
  if (target)
    memcpy (target->lines[target->n++ % TRACE_LINES], line, sizeof line);
  else
    puts (line);
}

void
sim_trace_print (const struct trace_ring *ring)
{
  uint64_t from = ring->n > TRACE_LINES ? ring->n - TRACE_LINES : 0;

  for (uint64_t i = from; i < ring->n; i++)
    puts (ring->lines[i % TRACE_LINES]);
}

/* One of a few buffers in turn, so that one line may hold several. */
static char *
turn (void)
{
  static char buffers[4][256];
  static unsigned next;

  return buffers[next++ % 4];
}

const char *
sim_view_text (const struct tl_view *view)
{
  char *text = turn ();

  snprintf (text, 256, "view %llu.%04llx %s of {%s%s%s}",
            (unsigned long long)view->number,
            (unsigned long long)view->id & 0xffff,
            view->number ? view->primary : "-",
            view->n_members > 0 ? view->members[0] : "",
            view->n_members > 1 ? "," : "",
            view->n_members > 1 ? view->members[1] : "");
  return text;
}

const char *
sim_op_text (const struct op *op)
{
  static const char *const names[] = {"read", "write", "zero", "flush"};
  char *text = turn ();

  snprintf (text, 256, "%s %llu+%u of client %d (version %u)",
            names[op->request.op], (unsigned long long)op->request.offset,
            op->request.length, op->client, op->version);
  return text;
}

const char *
sim_command_text (enum tl_command command, unsigned flags)
{
  static const char *const names[] = {"create",      "promote",    "demote",
                                      "degrade",     "switchover", "discard",
                                      "forget-peer", "verify"};
  char *text = turn ();

  snprintf (text, 256, "%s%s%s%s%s", names[command],
            flags & TL_ALONE ? " --alone" : "",
            flags & TL_FENCED ? " --fenced" : "",
            flags & TL_FORCE ? " --force" : "",
            flags & TL_DISCONNECT ? " --disconnect" : "");
  return text;
}
