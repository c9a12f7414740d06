/* The name of an attached volume that stays the same, whichever device it
 * gets.  One thread.
 */
#ifndef TWINLOG_CLIENT_ATTACH_NAME_H
#define TWINLOG_CLIENT_ATTACH_NAME_H

#include <stdbool.h>

#define NAME_PATH_SIZE 128

/* /dev/disk/by-id/twinlog-VOLUME, into PATH of NAME_PATH_SIZE bytes. */
void name_path (const char *volume, char *path);

/* See to it that the name leads to the device: by udev where that runs and
 * has our rule, else by a link of our own.  False with errno set.
 */
bool name_make (const char *volume, int index);

/* The device is gone: so is the name, where it leads there. */
void name_remove (const char *volume, int index);

#endif
