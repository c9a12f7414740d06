#include "net/command.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const struct {
  const char *name;
  int command; /* -1: status */
  struct {
    const char *name;
    unsigned flag;
  } options[2];
} commands[] = {
    {"status", -1, {{NULL, 0}, {NULL, 0}}},
    {"create", TL_CMD_CREATE, {{"alone", TL_ALONE}, {NULL, 0}}},
    {"promote", TL_CMD_PROMOTE, {{"fenced", TL_FENCED}, {"force", TL_FORCE}}},
    {"demote", TL_CMD_DEMOTE, {{"disconnect", TL_DISCONNECT}, {NULL, 0}}},
    {"degrade", TL_CMD_DEGRADE, {{"fenced", TL_FENCED}, {NULL, 0}}},
    {"switchover",
     TL_CMD_SWITCHOVER,
     {{"disconnect", TL_DISCONNECT}, {NULL, 0}}},
    {"discard", TL_CMD_DISCARD, {{NULL, 0}, {NULL, 0}}},
    {"forget-peer", TL_CMD_FORGET_PEER, {{NULL, 0}, {NULL, 0}}},
    {"verify", TL_CMD_VERIFY, {{NULL, 0}, {NULL, 0}}},
};

#define COMMANDS (sizeof commands / sizeof *commands)

/* Read the options of COMMANDS[I] from OBJECT. */
static int
read_options (const json_t *object, size_t i, unsigned *flags, char *error,
              size_t error_size)
{
  const char *key;
  json_t *value;

  json_object_foreach ((json_t *)object, key, value)
  {
    unsigned flag = 0;

    if (strcmp (key, "command") == 0)
      continue;
    for (size_t k = 0; k < 2; k++)
      if (commands[i].options[k].name &&
          strcmp (key, commands[i].options[k].name) == 0)
        flag = commands[i].options[k].flag;
    if (!flag) {
      snprintf (error, error_size, "%s has no option \"%.64s\"",
                commands[i].name, key);
      return -1;
    }
    if (!json_is_boolean (value)) {
      snprintf (error, error_size, "option \"%s\" is not true or false", key);
      return -1;
    }
    if (json_is_true (value))
      *flags |= flag;
  }
  return 0;
}

static int
read_object (const json_t *object, struct tl_command_line *command, char *error,
             size_t error_size)
{
  const json_t *value = json_object_get (object, "command");
  const char *name = json_string_value (value);

  if (!name) {
    snprintf (error, error_size, "the request has no \"command\"");
    return -1;
  }
  for (size_t i = 0; i < COMMANDS; i++)
    if (strcmp (name, commands[i].name) == 0) {
      command->status = commands[i].command == -1;
      command->command = command->status ? TL_CMD_CREATE
                                         : (enum tl_command)commands[i].command;
      command->flags = 0;
      return read_options (object, i, &command->flags, error, error_size);
    }
  snprintf (error, error_size, "unknown command \"%.64s\"", name);
  return -1;
}

int
tl_command_parse (const char *line, size_t length,
                  struct tl_command_line *command, char *error,
                  size_t error_size)
{
  json_error_t why;
  json_t *object = json_loadb (line, length, JSON_REJECT_DUPLICATES, &why);
  int r;

  if (!object) {
    snprintf (error, error_size, "the request is not JSON: %s", why.text);
    return -1;
  }
  if (!json_is_object (object)) {
    snprintf (error, error_size, "the request is not a JSON object");
    json_decref (object);
    return -1;
  }
  r = read_object (object, command, error, error_size);
  json_decref (object);
  return r;
}
