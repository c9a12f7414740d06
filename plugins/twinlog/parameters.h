/* The parameters of the plugin: the words of the command line and of the file
 * that config= names.  Pure but for reading that file; nothing here depends on
 * nbdkit, what is needed of it is handed in.  One thread at a time.
 */
#ifndef TWINLOG_PARAMETERS_H
#define TWINLOG_PARAMETERS_H

#include "core/core.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tl_key {
  TL_KEY_SIZE,
  TL_KEY_NAME,
  TL_KEY_NODE,
  TL_KEY_LISTEN,
  TL_KEY_PEER,
  TL_KEY_CONTROL,
  TL_KEY_STATE,
  TL_KEY_STORE,
  TL_KEY_LOCK,
  TL_KEY_FLUSH,
  TL_KEY_POLICY,
  TL_KEY_ARBITER,
  TL_KEY_DEADLINE,
  TL_KEY_READS,
  TL_KEY_AUTO_PROMOTE,
  TL_KEY_RESYNC_RATE,
  TL_KEY_COMPRESS,
  TL_KEY_MPTCP,
  TL_KEY_NOTIFY,
  TL_KEYS
};

enum tl_flush { TL_FLUSH_AUTO, TL_FLUSH_ON, TL_FLUSH_OFF };

/* What the host supplies. */
struct tl_host {
  /* Make a path absolute; the caller frees it.  NULL where it cannot. */
  char *(*absolute_path) (const char *path);
  /* As tl_address_check. */
  int (*check_address) (const char *text, char *error, size_t error_size);
};

/* A value as it was given. */
struct tl_given {
  char *text;    /* NULL: not given */
  unsigned line; /* of the file */
};

struct tl_parameters {
  /* Set by tl_parameters_check; the strings live until tl_parameters_clear. */
  uint64_t size; /* bytes */
  const char *volume;
  const char *node;
  const char *listen;
  const char *peer;
  const char *control; /* absolute */
  const char *state;   /* absolute */
  const char *store;   /* absolute, or NULL */
  const char *arbiter; /* or NULL */
  const char *notify;  /* or NULL */
  bool lock;
  bool reads_local;
  bool auto_promote;
  uint64_t resync_rate; /* bytes a second, 0: no limit */
  bool compress;        /* lz4 */
  bool mptcp;
  enum tl_flush flush;
  enum tl_policy policy;
  uint64_t deadline; /* microseconds */

  /* Private. */
  struct tl_host host;
  struct tl_given command[TL_KEYS]; /* command line; wins over ... */
  struct tl_given file[TL_KEYS];    /* ... the file */
  char *path;                       /* that config= named, or NULL */
  char *control_path, *state_path, *store_path;
};

void tl_parameters_init (struct tl_parameters *parameters,
                         const struct tl_host *host);

/* Take one KEY=VALUE of the command line; for `config` the file is read at
 * once.  A value is checked by itself here, against the others in
 * tl_parameters_check.  0, or -1 with one line in ERROR.
 */
int tl_parameters_set (struct tl_parameters *parameters, const char *key,
                       const char *value, char *error, size_t error_size);

/* All have been given: is anything missing or contradictory?  Fills in the
 * defaults.  0, or -1 with one line in ERROR.
 */
int tl_parameters_check (struct tl_parameters *parameters, char *error,
                         size_t error_size);

void tl_parameters_clear (struct tl_parameters *parameters);

/* Read the INI file at PATH and hand each KEY = VALUE to SET, which returns 0
 * or -1 with one line in ERROR.  Sections count for nothing.  0, or -1 with
 * one line in ERROR.
 */
int tl_ini_read (const char *path,
                 int (*set) (void *opaque, const char *key, const char *value,
                             unsigned line, char *error, size_t error_size),
                 void *opaque, char *error, size_t error_size);

#endif
