/* What the control socket answers. */
#ifndef TWINLOG_NET_STATUS_JSON_H
#define TWINLOG_NET_STATUS_JSON_H

#include "core/core.h"
#include "net/latency.h"

#include <stddef.h>

/* What status shows beside the core's part. */
struct tl_status_more {
  const char *volume, *node;
  uint64_t size;
  enum tl_policy policy;
  bool arbiter;
  uint64_t deadline; /* microseconds */
  unsigned clients;
  uint64_t resident;                       /* bytes */
  unsigned paths;                          /* to the peer that work */
  bool compress;                           /* in use with the peer */
  uint64_t compressed_from, compressed_to; /* bytes */
  uint64_t now;
  const struct tl_latency *write, *read;
};

/* The answer to a status request, {"status":0,"node":{...}}: one line without
 * its end, to be freed.  NULL where memory is short.
 */
char *tl_status_json (const struct tl_status *status,
                      const struct tl_status_more *more);

/* {"status":STATUS,"text":TEXT}, the same. */
char *tl_answer_json (int status, const char *text);

#endif
