/* The durable record of a node, and views as one line of text for the arbiter.
 * twinlog-state(5) has the formats.
 */
#ifndef TWINLOG_STATE_STATE_H
#define TWINLOG_STATE_STATE_H

#include "core/view.h"

#include <stddef.h>

/* Read the record at PATH.  1: there is no file.  0: read.  -1: it cannot be
 * read, or it is truncated, damaged or of an unknown format, with one line in
 * ERROR.  RECORD is overwritten only where 0 is returned.
 */
int tl_state_load (const char *path, struct tl_record *record, char *error,
                   size_t error_size);

/* Make RECORD durable at PATH: write beside it, fsync, rename, fsync of the
 * directory.  0, or -1 with one line in ERROR and the old file untouched.
 * Blocks on the disk: never call it with a lock held or on the loop thread.
 */
int tl_state_save (const char *path, const struct tl_record *record,
                   char *error, size_t error_size);

/* Take the lock file PATH.lock, so that no second node uses the same state.
 * The descriptor, to be kept open (it is inherited across fork), or -1 with
 * one line in ERROR.
 */
int tl_state_lock (const char *path, char *error, size_t error_size);

#define TL_VIEW_TEXT 512

/* A view as the arbiter keeps it: one line without spaces, canonical: two
 * views are equal if and only if their texts are.
 */
void tl_view_format (const struct tl_uuid *uuid, const struct tl_view *view,
                     char text[TL_VIEW_TEXT]);

/* The reverse; trailing white space is let pass.  0, or -1. */
int tl_view_parse (const char *text, struct tl_uuid *uuid,
                   struct tl_view *view);

void tl_uuid_format (const struct tl_uuid *uuid, char text[37]);
int tl_uuid_parse (const char *text, struct tl_uuid *uuid);

#endif
