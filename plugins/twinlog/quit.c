#include "quit.h"
#include "log.h"

#include "net/node.h"

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <pthread.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

static pthread_t thread;
static struct tl_node *watched;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed; /* monotonic clock */
/* Guarded by lock. */
static bool stopped; /* tl_node_stop has returned */
static bool closed;  /* tl_node_close has returned */

/* Wait until *FLAG or a second has passed; with the lock held. */
static bool
wait_a_second (const bool *flag)
{
  struct timespec until;

  clock_gettime (CLOCK_MONOTONIC, &until);
  until.tv_sec++;
  while (!*flag)
    if (pthread_cond_timedwait (&changed, &lock, &until) != 0)
      return *flag;
  return true;
}

static void *
watch (void *opaque)
{
  bool ended;

  while (nbdkit_nanosleep (3600, 0) == 0)
    continue;
  /* It also explains the error about a sleep that nbdkit has just logged. */
  tl_log_line (NULL, false, "nbdkit ends: the node stops");
  tl_node_stop (watched);

  pthread_mutex_lock (&lock);
  stopped = true;
  pthread_cond_broadcast (&changed);
  ended = wait_a_second (&closed);
  pthread_mutex_unlock (&lock);
  /* An idle client keeps nbdkit's threads in read: leave all the same, as
   * there is nothing left to lose.
   */
  if (!ended)
    _exit (0);
  return NULL;
}

int
tl_quit_watch (struct tl_node *node)
{
  pthread_condattr_t attributes;
  int error;

  pthread_condattr_init (&attributes);
  pthread_condattr_setclock (&attributes, CLOCK_MONOTONIC);
  pthread_cond_init (&changed, &attributes);
  pthread_condattr_destroy (&attributes);
  watched = node;
  error = pthread_create (&thread, NULL, watch, NULL);
  if (error)
    watched = NULL;
  return error;
}

void
tl_quit_finish (void)
{
  bool ok;

  if (!watched)
    return;
  /* With -s nbdkit ends when its client does, and nothing has quit yet. */
  nbdkit_shutdown ();
  pthread_mutex_lock (&lock);
  ok = wait_a_second (&stopped);
  pthread_mutex_unlock (&lock);
  if (!ok)
    _exit (0);
  tl_node_close (watched);
  watched = NULL;
  pthread_mutex_lock (&lock);
  closed = true;
  pthread_cond_broadcast (&changed);
  pthread_mutex_unlock (&lock);
  pthread_join (thread, NULL);
}
