/* The files of a node. */
#ifndef TWINLOG_NET_PATHS_H
#define TWINLOG_NET_PATHS_H

#include <stddef.h>

/* PATH as an absolute path, to be freed: nbdkit changes its directory when it
 * goes into the background.  NULL where memory is short or the directory is
 * not known.
 */
char *tl_path_absolute (const char *path);

/* Make the directory of PATH, mode 0700, where there is none; its parents must
 * exist.  KEY names the parameter in the error line.  1 if it was made, 0 if
 * it was there, or -1.
 */
int tl_path_make_parent (const char *key, const char *path, char *error,
                         size_t error_size);

/* Remove the directory of PATH, if it is empty. */
void tl_path_remove_parent (const char *path);

/* Can files be written beside PATH?  Tries it.  0, or -1 with one line. */
int tl_path_check_writable (const char *key, const char *path, char *error,
                            size_t error_size);

#endif
