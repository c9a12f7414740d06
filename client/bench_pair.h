/* A pair to be thrown away: two nodes on 127.0.0.1 with a file arbiter, in a
 * directory of their own.  A process beside this one keeps them, ends them and
 * removes the directory when this one has ended, however that was.
 */
#ifndef TWINLOG_CLIENT_BENCH_PAIR_H
#define TWINLOG_CLIENT_BENCH_PAIR_H

#include "bench.h"

struct bench_pair {
  pid_t keeper;
  int leash; /* when it is closed, the keeper ends */
  pid_t primary, secondary;
  char directory[64];
  char socket[80]; /* NBD, of the primary */
};

/* Start it and wait until it has two copies, at most a minute.  An exit
 * status; where not 0, one line is in ERROR and nothing is left.
 */
int pair_start (struct bench_pair *pair, char *error, size_t error_size);

/* End it; returns when nothing is left of it. */
void pair_end (struct bench_pair *pair);

#endif
