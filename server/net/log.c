/* Lines for the operator.  Who reads them may be slow, or have stopped
 * reading; so they are queued, and written by a thread that nothing waits for.
 */
#include "net/net.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void
tl_log_add (struct tl_node *node, bool error, const char *format, ...)
{
  struct tl_log *log = &node->log_queue;
  unsigned i = (log->first + log->n) % TL_LOG_LINES;
  va_list arguments;

  if (log->n == TL_LOG_LINES) {
    log->lost++;
    return;
  }
  va_start (arguments, format);
  vsnprintf (log->lines[i].text, TL_LOG_LINE, format, arguments);
  va_end (arguments);
  log->lines[i].error = error;
  log->n++;
  tl_poke (node);
}

void
tl_log_flush (struct tl_node *node)
{
  struct tl_log *log = &node->log_queue;
  char line[TL_LOG_LINE];

  tl_lock (node);
  while (log->n || log->lost) {
    bool error = true;

    if (log->n) {
      error = log->lines[log->first].error;
      strcpy (line, log->lines[log->first].text);
      log->first = (log->first + 1) % TL_LOG_LINES;
      log->n--;
    } else {
      snprintf (line, sizeof line, "%u lines of the log were lost", log->lost);
      log->lost = 0;
    }
    tl_unlock (node);
    if (node->log)
      node->log (node->opaque, error, line);
    tl_lock (node);
  }
  tl_unlock (node);
}

static void
run (uv_work_t *work)
{
  tl_log_flush (work->data);
}

static void
after (uv_work_t *work, int status)
{
  struct tl_node *node = work->data;

  node->log_queue.busy = false;
  tl_turn (node);
}

void
tl_log_turn (struct tl_node *node)
{
  struct tl_log *log = &node->log_queue;
  bool any;

  if (log->busy)
    return;
  tl_lock (node);
  any = log->n || log->lost;
  tl_unlock (node);
  if (!any)
    return;
  log->work.data = node;
  log->busy = uv_queue_work (&node->loop, &log->work, run, after) == 0;
}
