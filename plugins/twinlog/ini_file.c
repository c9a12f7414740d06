/* The file that config= names. */
#include "parameters.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <string.h>

struct reading {
  FILE *stream;
  unsigned line;   /* the one that inih works on */
  bool no_text;    /* it is too long, or holds a NUL */
  unsigned failed; /* the first line that SET refused, 0: none */
  int (*set) (void *opaque, const char *key, const char *value, unsigned line,
              char *error, size_t error_size);
  void *opaque;
  char *error;
  size_t error_size;
};

/* Hand one line to inih.  Counting here is what gives messages a line number.
 * Leading white space goes, since inih would take an indented line for more
 * of the value before it; so that "  node = b" cannot end up in another value.
 */
static char *
read_line (char *buffer, int size, void *opaque)
{
  struct reading *reading = opaque;
  int length = 0, c;

  if (reading->no_text)
    return NULL;
  reading->line++;
  while ((c = getc (reading->stream)) != EOF && c != '\n') {
    if (length == 0 && (c == ' ' || c == '\t'))
      continue;
    if (length >= size - 3 || c == '\0') {
      reading->no_text = true;
      return NULL;
    }
    buffer[length++] = (char)c;
  }
  buffer[length] = '\0';
  return c == EOF && length == 0 ? NULL : buffer;
}

static int
handle (void *opaque, const char *section, const char *key, const char *value)
{
  struct reading *reading = opaque;

  if (!reading->failed &&
      reading->set (reading->opaque, key, value, reading->line, reading->error,
                    reading->error_size) == -1)
    reading->failed = reading->line;
  return 1;
}

int
tl_ini_read (const char *path,
             int (*set) (void *opaque, const char *key, const char *value,
                         unsigned line, char *error, size_t error_size),
             void *opaque, char *error, size_t error_size)
{
  struct reading reading = {
      .set = set, .opaque = opaque, .error = error, .error_size = error_size};
  int bad, io_error = 0;

  reading.stream = fopen (path, "re");
  if (!reading.stream) {
    snprintf (error, error_size, "config=%s: cannot open the file: %s", path,
              strerror (errno));
    return -1;
  }
  errno = 0;
  bad = ini_parse_stream (read_line, &reading, handle, &reading);
  if (ferror (reading.stream))
    io_error = errno ? errno : EIO;
  fclose (reading.stream);

  if (io_error) {
    snprintf (error, error_size, "config=%s: cannot read the file: %s", path,
              strerror (io_error));
    return -1;
  }
  /* What stands first in the file is reported. */
  if (bad > 0 && (!reading.failed || (unsigned)bad < reading.failed)) {
    snprintf (error, error_size, "%s:%d: expected KEY = VALUE", path, bad);
    return -1;
  }
  if (bad < 0) {
    snprintf (error, error_size, "config=%s: out of memory", path);
    return -1;
  }
  if (reading.failed)
    return -1;
  if (reading.no_text) {
    snprintf (error, error_size,
              "%s:%u: the line is longer than %d bytes or is not text", path,
              reading.line, INI_MAX_LINE - 3);
    return -1;
  }
  return 0;
}
