/* Requests on the control socket, one JSON object a line. */
#ifndef TWINLOG_NET_COMMAND_H
#define TWINLOG_NET_COMMAND_H

#include "core/core.h"

#include <stddef.h>

struct tl_command_line {
  bool status; /* the request is for the status; else: */
  enum tl_command command;
  unsigned flags;
};

/* Read a line of LENGTH bytes.  0, or -1 with one line in ERROR. */
int tl_command_parse (const char *line, size_t length,
                      struct tl_command_line *command, char *error,
                      size_t error_size);

#endif
