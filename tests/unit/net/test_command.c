#include "net/command.h"

#include "unit.h"

START_TEST (good_ones)
{
  static const struct {
    const char *line;
    bool status;
    enum tl_command command;
    unsigned flags;
  } cases[] = {
      {"{\"command\":\"status\"}", true, TL_CMD_CREATE, 0},
      {"{\"command\":\"create\"}", false, TL_CMD_CREATE, 0},
      {"{\"command\":\"create\",\"alone\":true}", false, TL_CMD_CREATE,
       TL_ALONE},
      {"{\"alone\":false,\"command\":\"create\"}", false, TL_CMD_CREATE, 0},
      {" { \"command\" : \"promote\" , \"fenced\" : true } ", false,
       TL_CMD_PROMOTE, TL_FENCED},
      {"{\"command\":\"promote\",\"fenced\":true,\"force\":true}", false,
       TL_CMD_PROMOTE, TL_FENCED | TL_FORCE},
      {"{\"command\":\"demote\",\"disconnect\":true}", false, TL_CMD_DEMOTE,
       TL_DISCONNECT},
      {"{\"command\":\"degrade\",\"fenced\":true}", false, TL_CMD_DEGRADE,
       TL_FENCED},
  };

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct tl_command_line command;
    char error[256] = "";

    ck_assert_msg (tl_command_parse (cases[i].line, strlen (cases[i].line),
                                     &command, error, sizeof error) == 0,
                   "%s: %s", cases[i].line, error);
    ck_assert_int_eq (command.status, cases[i].status);
    if (!command.status) {
      ck_assert_int_eq (command.command, cases[i].command);
      ck_assert_uint_eq (command.flags, cases[i].flags);
    }
  }
}
END_TEST

START_TEST (bad_ones_say_what_is_wrong)
{
  static const struct {
    const char *line, *says;
  } cases[] = {
      {"", "not JSON"},
      {"status", "not JSON"},
      {"{\"command\":\"status\"", "not JSON"},
      {"{\"command\":\"status\"} x", "not JSON"},
      {"{\"command\":\"status\",\"command\":\"demote\"}", "not JSON"},
      {"{\"command\":\"stat\xff\"}", "not JSON"},
      {"[]", "not a JSON object"},
      {"{}", "no \"command\""},
      {"{\"command\":7}", "no \"command\""},
      {"{\"command\":\"erase\"}", "erase"},
      {"{\"command\":\"status\",\"fenced\":true}", "fenced"},
      {"{\"command\":\"create\",\"force\":true}", "force"},
      {"{\"command\":\"demote\",\"disconect\":true}", "disconect"},
      {"{\"command\":\"promote\",\"fenced\":1}", "not true or false"},
      {"{\"command\":\"promote\",\"fenced\":\"true\"}", "not true or false"},
  };

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct tl_command_line command;
    char error[256] = "";

    ck_assert_msg (tl_command_parse (cases[i].line, strlen (cases[i].line),
                                     &command, error, sizeof error) == -1,
                   "%s was let pass", cases[i].line);
    assert_says (error, cases[i].says);
  }
}
END_TEST

/* Nothing an input may hold reads or writes beyond it. */
START_TEST (random_bytes_are_refused)
{
  uint64_t state = 2;

  for (unsigned i = 0; i < 20000; i++) {
    static const char alphabet[] = "{}[]\":,truefals \\u0\x01\xfe"
                                   "command";
    char line[64], error[64];
    size_t length = unit_random (&state) % sizeof line;
    struct tl_command_line command;

    for (size_t k = 0; k < length; k++)
      line[k] = alphabet[unit_random (&state) % (sizeof alphabet - 1)];
    ck_assert_int_eq (
        tl_command_parse (line, length, &command, error, sizeof error), -1);
  }
}
END_TEST

UNIT_MAIN ("command", good_ones, bad_ones_say_what_is_wrong,
           random_bytes_are_refused)
