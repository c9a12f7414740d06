/* The kernel's nbd devices, as sysfs and /proc show them.  One thread. */
#ifndef TWINLOG_CLIENT_ATTACH_DEVICE_H
#define TWINLOG_CLIENT_ATTACH_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICE_NONE (-1)
#define DEVICE_SEVERAL (-2)
#define DEVICE_IDENTIFIER_SIZE 128

/* N of «/dev/nbdN» or «nbdN», DEVICE_NONE: it is not that. */
int device_parse (const char *name);

/* What the kernel keeps with a device of ours: which volume it is. */
void device_identifier (const char *uuid, const char *volume, char *text);

/* The device whose identifier names VOLUME, DEVICE_NONE, or DEVICE_SEVERAL. */
int device_find (const char *volume);

/* Is the device there, and with this identifier? */
bool device_has (int index, const char *identifier);

/* The volume that the device is of; false: none of ours. */
bool device_volume (int index, char *volume, size_t size);

/* Bytes; 0: nothing is connected. */
uint64_t device_size (int index);

/* Who uses the device or a partition of it?  False: nobody. */
bool device_in_use (int index, char *who, size_t size);

/* Write TEXT into a file of the device's directory in sysfs; false with errno
 * set.
 */
bool device_set (int index, const char *file, const char *text);

#endif
