/* The `twinlog` command. */
#include "arguments.h"

#include "core/core.h"

#include <stdio.h>

int
main (int argc, char **argv)
{
  struct arguments arguments;
  char error[1024];

  if (arguments_parse (&arguments, argc, argv, error, sizeof error) == -1) {
    fprintf (stderr, "twinlog: %s\n", error);
    return TL_USAGE;
  }
  if (arguments.given[OPTION_HELP])
    arguments_help (arguments.command, stdout);
  else if (arguments.given[OPTION_VERSION])
    puts ("twinlog " TWINLOG_VERSION);
  else
    return arguments.command->run (&arguments);
  return fflush (stdout) == 0 ? TL_DONE : TL_FAILED;
}
