/* Big-endian integers and names in a buffer, read with bounds. */
#ifndef TWINLOG_CORE_BYTE_H
#define TWINLOG_CORE_BYTE_H

#include "view.h"

#include <string.h>

static inline void
tl_put (unsigned char **at, uint64_t value, unsigned bytes)
{
  while (bytes-- > 0)
    *(*at)++ = (unsigned char)(value >> (8 * bytes));
}

static inline void
tl_put_bytes (unsigned char **at, const void *bytes, size_t length)
{
  memcpy (*at, bytes, length);
  *at += length;
}

/* What is left to read; once FAILED every further value is 0. */
struct tl_reader {
  const unsigned char *at;
  size_t left;
  bool failed;
};

static inline uint64_t
tl_get (struct tl_reader *reader, unsigned bytes)
{
  uint64_t value = 0;

  if (reader->left < bytes) {
    reader->failed = true;
    reader->left = 0;
    return 0;
  }
  reader->left -= bytes;
  while (bytes-- > 0)
    value = value << 8 | *reader->at++;
  return value;
}

static inline void
tl_get_bytes (struct tl_reader *reader, void *bytes, size_t length)
{
  if (reader->left < length) {
    reader->failed = true;
    reader->left = 0;
    memset (bytes, 0, length);
    return;
  }
  memcpy (bytes, reader->at, length);
  reader->at += length;
  reader->left -= length;
}

/* A name field: TL_NAME_SIZE bytes, padded with zeroes and ended by one. */
static inline void
tl_get_name (struct tl_reader *reader, char name[TL_NAME_SIZE])
{
  tl_get_bytes (reader, name, TL_NAME_SIZE);
  if (name[TL_NAME_SIZE - 1] != '\0') {
    reader->failed = true;
    name[TL_NAME_SIZE - 1] = '\0';
  }
}

static inline void
tl_put_name (unsigned char **at, const char *name)
{
  char field[TL_NAME_SIZE] = {0};

  memcpy (field, name, strnlen (name, TL_NAME_SIZE - 1));
  tl_put_bytes (at, field, sizeof field);
}

#endif
