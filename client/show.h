/* `twinlog status` for people. */
#ifndef TWINLOG_CLIENT_SHOW_H
#define TWINLOG_CLIENT_SHOW_H

#include <jansson.h>
#include <stdio.h>

/* Write NODE, the object of `status`: lines only where they say something. */
void show_status (const json_t *node, FILE *stream);

#endif
