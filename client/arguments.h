/* The command line of `twinlog`: one table of commands drives what is taken
 * and what --help says.  One thread.
 */
#ifndef TWINLOG_CLIENT_ARGUMENTS_H
#define TWINLOG_CLIENT_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum option {
  OPTION_CONTROL,
  OPTION_HELP,
  OPTION_VERSION,
  OPTION_JSON,
  OPTION_WATCH,
  OPTION_ALONE,
  OPTION_FENCED,
  OPTION_FORCE,
  OPTION_DISCONNECT,
  OPTION_FOR,
  OPTION_TIMEOUT,
  OPTION_DEVICE,
  OPTION_SOCKET,
  OPTION_RECONNECT,
  OPTION_FOREGROUND,
  OPTION_OVERWRITE,
  OPTION_URI,
  OPTION_SIZE,
  OPTION_DEPTH,
  OPTION_CONNECTIONS,
  OPTION_SECONDS,
  OPTION_CONTENT,
  OPTION_LINK,
  OPTION_PLOT,
  OPTION_PING,
  OPTION_ANSWER,
  OPTIONS
};

struct command;

struct arguments {
  const struct command *command; /* NULL: none, with --help or --version */
  const char *volume;            /* NULL: not named */
  bool given[OPTIONS];
  const char *value[OPTIONS]; /* of those that take one; never empty */
  unsigned timeout;           /* of wait, milliseconds */
};

struct command {
  const char *name;
  const char *synopsis; /* behind the volume */
  const char *help;
  unsigned options;  /* bits: that it takes */
  unsigned required; /* bits: that it must get */
  /* Does it and returns the exit status. */
  int (*run) (const struct arguments *arguments);
};

/* Parse.  0, or -1 with one line in ERROR.  The strings stay those of ARGV. */
int arguments_parse (struct arguments *arguments, int argc, char **argv,
                     char *error, size_t error_size);

/* The text of --help: of one command, or of all where it is NULL. */
void arguments_help (const struct command *command, FILE *stream);

/* The word of an option without its dashes. */
const char *option_name (enum option option);

/* May be sent along with a command's request, as a boolean of that name? */
bool option_is_flag (enum option option);

#endif
