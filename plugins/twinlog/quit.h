/* The end of the process, noticed in time.  nbdkit waits for every request
 * before it tells a plugin that it ends, so a write that waits for the partner
 * would hold up a signal for ever.
 */
#ifndef TWINLOG_QUIT_H
#define TWINLOG_QUIT_H

struct tl_node;

/* After the fork: watch.  When nbdkit quits, NODE is stopped, which fails what
 * waits; if nbdkit then does not come to tl_quit_finish within a second, the
 * process ends.  0, or an errno value.
 */
int tl_quit_watch (struct tl_node *node);

/* From .cleanup: wait until the node is stopped, close it and end the watch.
 * Harmless without tl_quit_watch.
 */
void tl_quit_finish (void);

#endif
