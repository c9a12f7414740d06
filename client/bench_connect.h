/* A connection to what is measured. */
#ifndef TWINLOG_CLIENT_BENCH_CONNECT_H
#define TWINLOG_CLIENT_BENCH_CONNECT_H

#include "bench.h"

#include <libnbd.h>

/* Connect and shake hands within ten seconds.  An exit status; where not 0,
 * one line is in ERROR, otherwise *NBD is the caller's to close.
 */
int bench_connect (const struct bench_target *target, struct nbd_handle **nbd,
                   char *error, size_t error_size);

/* Connect once, for the size of the volume, what it offers and who serves it,
 * into TARGET.  These return an exit status; where not 0, one line is in ERROR.
 */
int bench_look (struct bench_target *target, char *error, size_t error_size);

/* Write it all once, so that no page is met for the first time later. */
int bench_fill (const struct bench_target *target, char *error,
                size_t error_size);

#endif
