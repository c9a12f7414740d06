#include "arguments.h"
#include "attach.h"
#include "bench.h"
#include "commands.h"
#include "verify.h"
#include "wait.h"

#include "core/view.h"

#include <stdlib.h>
#include <string.h>

#define TIMEOUT_MAX 1000000 /* seconds */

static const struct {
  const char *name;
  const char *argument; /* NULL: takes none */
  const char *help;
  bool everywhere; /* goes with any command */
  bool flag;       /* of a request to the node */
} options[OPTIONS] = {
    [OPTION_CONTROL] = {"control", "PATH", "the node's control socket", true,
                        false},
    [OPTION_HELP] = {"help", NULL, "this text, or a command's", true, false},
    [OPTION_VERSION] = {"version", NULL, "print the version", true, false},
    [OPTION_JSON] = {"json", NULL, "as JSON, for programs", false, false},
    [OPTION_WATCH] = {"watch", NULL, "again whenever something changes", false,
                      false},
    [OPTION_ALONE] = {"alone", NULL, "without the other node: one copy", false,
                      true},
    [OPTION_FENCED] = {"fenced", NULL,
                       "asserts that the other machine was powered off", false,
                       true},
    [OPTION_FORCE] =
        {"force", NULL,
         "even where acknowledged writes may be lost; VOLUME is a must", false,
         true},
    [OPTION_DISCONNECT] = {"disconnect", NULL,
                           "although clients are attached, or programs use "
                           "the device",
                           false, true},
    [OPTION_FOR] = {"for", "STATE",
                    "role, disk-state, connection-state, or peer:STATE", false,
                    false},
    [OPTION_TIMEOUT] = {"timeout", "S", "seconds, such as 30 or 0.5", false,
                        false},
    [OPTION_DEVICE] = {"device", "/dev/nbdN", "that device", false, false},
    [OPTION_SOCKET] = {"socket", "PATH",
                       "the NBD socket (/run/twinlog/VOLUME.sock)", false,
                       false},
    [OPTION_RECONNECT] = {"reconnect", "S",
                          "seconds that requests wait for nbdkit to come back "
                          "(60)",
                          false, false},
    [OPTION_FOREGROUND] = {"foreground", NULL,
                           "stay, and log to standard error", false, false},
    [OPTION_OVERWRITE] = {"overwrite", NULL,
                          "all that the volume holds may be lost", false,
                          false},
    [OPTION_URI] = {"uri", "URI", "any NBD export instead of a volume", false,
                    false},
    [OPTION_SIZE] = {"size", "LIST", "bytes of a write, such as 4K,128K", false,
                     false},
    [OPTION_DEPTH] = {"depth", "LIST", "writes in flight, such as 1,16", false,
                      false},
    [OPTION_CONNECTIONS] = {"connections", "LIST",
                            "NBD connections, such as 1,4", false, false},
    [OPTION_SECONDS] = {"seconds", "S", "for each figure (0.8)", false, false},
    [OPTION_CONTENT] = {"content", "FILE", "write what it holds, over and over",
                        false, false},
    [OPTION_LINK] = {"link", "RTT,RATE",
                     "project to a link of so many microseconds and Gbit/s",
                     false, false},
    [OPTION_PLOT] = {"plot", "FILE.svg", "draw a picture, with gnuplot", false,
                     false},
    [OPTION_PING] = {"ping", "ADDRESS:PORT",
                     "measure the link to where --answer runs", false, false},
    [OPTION_ANSWER] = {"answer", "ADDRESS:PORT",
                       "only answer there, for --ping", false, false},
};

#define BIT(option) (1u << OPTION_##option)

static const struct command commands[] = {
    {"status", "[--json] [--watch]", "show roles, data, connection and view",
     BIT (JSON) | BIT (WATCH), 0, command_status},
    {"create", "[--alone]", "begin the volume; this node is primary",
     BIT (ALONE), 0, command_plain},
    {"promote", "[--fenced] [--force]", "make this node the primary",
     BIT (FENCED) | BIT (FORCE), 0, command_plain},
    {"demote", "[--disconnect]", "make this node a secondary", BIT (DISCONNECT),
     0, command_plain},
    {"degrade", "--fenced", "let this primary go on alone", BIT (FENCED),
     BIT (FENCED), command_plain},
    {"switchover", "[--disconnect]", "give the primary role to the other node",
     BIT (DISCONNECT), 0, command_plain},
    {"discard", "", "give up this node's data after a split brain", 0, 0,
     command_plain},
    {"forget-peer", "", "let another machine take the partner's place", 0, 0,
     command_plain},
    {"verify", "", "compare both copies, under load", 0, 0, command_verify},
    {"wait", "--for STATE --timeout S", "wait until the node is in a state",
     BIT (FOR) | BIT (TIMEOUT), BIT (FOR) | BIT (TIMEOUT), command_wait},
    {"attach",
     "[--device /dev/nbdN] [--socket PATH] [--reconnect S] "
     "[--foreground]",
     "make the volume a block device of this machine",
     BIT (DEVICE) | BIT (SOCKET) | BIT (RECONNECT) | BIT (FOREGROUND), 0,
     command_attach},
    {"detach", "[--device /dev/nbdN] [--disconnect]", "end that block device",
     BIT (DEVICE) | BIT (DISCONNECT), 0, command_detach},
    {"bench",
     "[--overwrite] [--uri URI] [--socket PATH] [--size LIST] [--depth LIST] "
     "[--connections LIST] [--seconds S] [--content FILE] [--link RTT,RATE] "
     "[--ping ADDRESS:PORT] [--answer ADDRESS:PORT] [--plot FILE.svg] [--json]",
     "measure writes, of a throw-away pair where no VOLUME is named",
     BIT (OVERWRITE) | BIT (URI) | BIT (SOCKET) | BIT (SIZE) | BIT (DEPTH) |
         BIT (CONNECTIONS) | BIT (SECONDS) | BIT (CONTENT) | BIT (LINK) |
         BIT (PING) | BIT (ANSWER) | BIT (PLOT) | BIT (JSON),
     0, command_bench},
};

#define N_COMMANDS (sizeof commands / sizeof commands[0])

const char *
option_name (enum option option)
{
  return options[option].name;
}

bool
option_is_flag (enum option option)
{
  return options[option].flag;
}

/* Seconds; no locale is set, so the point is a point. */
static int
parse_timeout (const char *text, unsigned *milliseconds)
{
  char *end;
  double seconds;

  if (text[strspn (text, "0123456789.")])
    return -1;
  seconds = strtod (text, &end);
  if (end == text || *end || seconds > TIMEOUT_MAX)
    return -1;
  *milliseconds = (unsigned)(seconds * 1000);
  return 0;
}

/* TEXT begins with a dash.  Takes the value from NEXT where it needs one and
 * says so in *USED.
 */
static int
parse_option (struct arguments *arguments, const char *text, const char *next,
              bool *used, char *error, size_t error_size)
{
  const char *word = text + 2, *equals, *value = NULL;
  size_t length;
  unsigned i;

  if (strcmp (text, "-h") == 0)
    word = "help";
  else if (strncmp (text, "--", 2) != 0)
    return command_explain (-1, error, error_size,
                            "unknown option %s; see twinlog --help", text);
  equals = strchr (word, '=');
  length = equals ? (size_t)(equals - word) : strlen (word);
  for (i = 0; i < OPTIONS; i++)
    if (strlen (options[i].name) == length &&
        strncmp (options[i].name, word, length) == 0)
      break;
  if (i == OPTIONS)
    return command_explain (-1, error, error_size,
                            "unknown option %s; see twinlog --help", text);

  *used = false;
  if (options[i].argument) {
    value = equals ? equals + 1 : next;
    *used = !equals;
    if (!value || !value[0] || (!equals && strncmp (value, "--", 2) == 0))
      return command_explain (-1, error, error_size,
                              "--%s needs a value: --%s %s", options[i].name,
                              options[i].name, options[i].argument);
    if (arguments->given[i] && strcmp (arguments->value[i], value) != 0)
      return command_explain (-1, error, error_size,
                              "--%s is given twice: %s and %s", options[i].name,
                              arguments->value[i], value);
  } else if (equals)
    return command_explain (-1, error, error_size, "--%s takes no value",
                            options[i].name);
  arguments->given[i] = true;
  arguments->value[i] = value;
  return 0;
}

static int
parse_word (struct arguments *arguments, const char *word, char *error,
            size_t error_size)
{
  if (!arguments->command) {
    for (unsigned i = 0; i < N_COMMANDS; i++)
      if (strcmp (commands[i].name, word) == 0) {
        arguments->command = &commands[i];
        return 0;
      }
    return command_explain (-1, error, error_size,
                            "unknown command \"%s\"; see twinlog --help", word);
  }
  if (arguments->volume)
    return command_explain (-1, error, error_size,
                            "one volume, not two: \"%s\" and \"%s\"",
                            arguments->volume, word);
  if (!tl_name_valid (word))
    return command_explain (-1, error, error_size,
                            "\"%s\" is not the name of a volume", word);
  arguments->volume = word;
  return 0;
}

/* Do command and options go together? */
static int
check (struct arguments *arguments, char *error, size_t error_size)
{
  const struct command *command = arguments->command;

  if (arguments->given[OPTION_HELP] || arguments->given[OPTION_VERSION])
    return 0;
  if (!command)
    return command_explain (-1, error, error_size,
                            "a command is missing; see twinlog --help");
  for (unsigned i = 0; i < OPTIONS; i++) {
    if (arguments->given[i] && !options[i].everywhere &&
        !(command->options & 1u << i))
      return command_explain (-1, error, error_size,
                              "%s takes no --%s; see twinlog %s --help",
                              command->name, options[i].name, command->name);
    if (!arguments->given[i] && (command->required & 1u << i))
      return command_explain (
          -1, error, error_size, "%s needs --%s: twinlog %s [VOLUME] %s",
          command->name, options[i].name, command->name, command->synopsis);
  }
  if (arguments->given[OPTION_FORCE] && !arguments->volume)
    return command_explain (
        -1, error, error_size,
        "--force demands that the volume is named: twinlog %s VOLUME "
        "--force",
        command->name);
  if (arguments->given[OPTION_TIMEOUT] &&
      parse_timeout (arguments->value[OPTION_TIMEOUT], &arguments->timeout) ==
          -1)
    return command_explain (-1, error, error_size,
                            "--timeout %s: expected seconds from 0 to %d",
                            arguments->value[OPTION_TIMEOUT], TIMEOUT_MAX);
  if (arguments->given[OPTION_FOR] &&
      wait_check_state (arguments->value[OPTION_FOR], error, error_size) == -1)
    return -1;
  if (attach_check_options (arguments, error, error_size) == -1)
    return -1;
  return bench_check_options (arguments, error, error_size);
}

int
arguments_parse (struct arguments *arguments, int argc, char **argv,
                 char *error, size_t error_size)
{
  bool words_only = false, used = false;

  *arguments = (struct arguments){0};
  for (int i = 1; i < argc; i++) {
    if (words_only || argv[i][0] != '-') {
      if (parse_word (arguments, argv[i], error, error_size) == -1)
        return -1;
    } else if (strcmp (argv[i], "--") == 0)
      words_only = true;
    else {
      if (parse_option (arguments, argv[i], argv[i + 1], &used, error,
                        error_size) == -1)
        return -1;
      i += used;
    }
  }
  return check (arguments, error, error_size);
}

static void
option_help (unsigned i, FILE *stream)
{
  char text[64];

  snprintf (text, sizeof text, "--%s%s%s", options[i].name,
            options[i].argument ? " " : "",
            options[i].argument ? options[i].argument : "");
  fprintf (stream, "  %-16s %s\n", text, options[i].help);
}

void
arguments_help (const struct command *command, FILE *stream)
{
  if (command) {
    fprintf (stream, "twinlog [--control PATH] %s [VOLUME]%s%s: %s\n\n",
             command->name, command->synopsis[0] ? " " : "", command->synopsis,
             command->help);
    for (unsigned i = 0; i < OPTIONS; i++)
      if (command->options & 1u << i)
        option_help (i, stream);
    option_help (OPTION_CONTROL, stream);
    return;
  }
  fprintf (stream, "twinlog [--control PATH] COMMAND [VOLUME] [options]\n\n"
                   "Commands:\n");
  for (unsigned i = 0; i < N_COMMANDS; i++) {
    char text[320];

    snprintf (text, sizeof text, "%s %s", commands[i].name,
              commands[i].synopsis);
    fprintf (stream, "  %-32s %s\n", text, commands[i].help);
  }
  fprintf (stream, "\nOptions, anywhere on the line:\n");
  for (unsigned i = 0; i < OPTIONS; i++)
    option_help (i, stream);
  fprintf (stream,
           "\nA node is named by its volume (/run/twinlog/VOLUME.ctl), which "
           "may be left out\nwhere there is one, or by its control socket.\n\n"
           "Exit status: 0 done, 1 failed, 2 usage, 3 refused to protect data, "
           "4 node\nunreachable, 5 timed out.\n");
}
