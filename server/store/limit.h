/* What the system lets this process take: memory, locked memory, space.  Each
 * check compares what is needed with one figure and names that figure where it
 * is too small.  They only look: a machine may still run short later.  Any
 * thread.
 */
#ifndef TWINLOG_STORE_LIMIT_H
#define TWINLOG_STORE_LIMIT_H

#include <stddef.h>
#include <stdint.h>

/* NEEDED bytes of memory against MemAvailable and the memory limits of this
 * process's cgroup and all those above it, version 2 and 1, where page cache
 * counts as free.  PROC is "/proc"; what it does not tell is not checked.
 * 0, or -1 with one line in ERROR.
 */
int tl_limit_memory (const char *proc, uint64_t needed, char *error,
                     size_t error_size);

/* NEEDED bytes more of locked memory against RLIMIT_MEMLOCK, whose soft limit
 * is raised where the hard one allows it.  A process that has CAP_IPC_LOCK
 * passes.  0, or -1 with one line in ERROR.
 */
int tl_limit_lock (uint64_t needed, char *error, size_t error_size);

/* A file of SIZE bytes against RLIMIT_FSIZE, beyond which a signal would end
 * the process.  0, or -1 with one line in ERROR.
 */
int tl_limit_file (uint64_t size, char *error, size_t error_size);

/* NEEDED bytes more in the file system of FD; PATH is for the message.  0, or
 * -1 with one line in ERROR.
 */
int tl_limit_space (int fd, const char *path, uint64_t needed, char *error,
                    size_t error_size);

#define TL_AMOUNT_TEXT 32

/* BYTES for a message, in MiB or, where that would say too little, KiB.
 * Returns TEXT.
 */
const char *tl_amount (uint64_t bytes, char text[TL_AMOUNT_TEXT]);

#endif
