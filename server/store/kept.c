/* The process may be killed between any two instructions, and then nothing but
 * the memory is left; the machine itself does not fail, since its memory would
 * go with it.  So the order of the stores is all that counts, and a fence for
 * the compiler is enough.
 */
#include "kept.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#define FENCE() __atomic_signal_fence (__ATOMIC_SEQ_CST)

#define MAGIC "twinlog store 1"
#define PAGE 4096u

struct superblock {
  char magic[16]; /* written last */
  char boot[40];  /* id of the boot of the machine */
  uint64_t size;  /* of the store */
  uint64_t inode; /* of its file */
};

static uint64_t
pages (uint64_t bytes)
{
  return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* Where the parts are; END last. */
enum { KEPT, DIRTY, ALLOCATED, JOURNAL, END, PARTS };

static void
lay_out (uint64_t size, uint64_t at[PARTS])
{
  uint64_t map = pages (tl_map_words (size / TL_BLOCK) * sizeof (uint64_t));

  at[KEPT] = PAGE;
  at[DIRTY] = at[KEPT] + pages (sizeof (struct tl_kept));
  at[ALLOCATED] = at[DIRTY] + map;
  at[JOURNAL] = at[ALLOCATED] + map;
  at[END] = at[JOURNAL] + pages (sizeof (struct tl_journal));
}

static void
read_boot_id (char boot[40])
{
  int fd = open ("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  ssize_t n = -1;

  memset (boot, 0, 40);
  if (fd != -1) {
    n = read (fd, boot, 36);
    close (fd);
  }
  /* An unknown boot is none: never taken for an earlier one. */
  if (n != 36)
    boot[0] = '\0';
}

/* Make a header as of a store that was just made. */
static void
make_new (struct tl_header *header, const struct superblock *super)
{
  struct superblock *to = header->base;
  uint64_t incarnation = 0;

  memset (to->magic, 0, sizeof to->magic);
  FENCE ();
  memset ((char *)header->base + PAGE, 0, header->size - PAGE);
  while (incarnation == 0)
    if (getrandom (&incarnation, sizeof incarnation, 0) == -1)
      incarnation = 0;
  header->kept->incarnation = incarnation;
  memcpy (to->boot, super->boot, sizeof to->boot);
  to->size = super->size;
  to->inode = super->inode;
  FENCE ();
  memcpy (to->magic, MAGIC, sizeof to->magic);
}

static bool
is_valid (const struct tl_header *header, const struct superblock *super)
{
  const struct superblock *is = header->base;

  return memcmp (is->magic, MAGIC, sizeof is->magic) == 0 &&
         super->boot[0] != '\0' &&
         memcmp (is->boot, super->boot, sizeof is->boot) == 0 &&
         is->size == super->size && is->inode == super->inode &&
         header->kept->incarnation != 0 && header->kept->data <= 2 &&
         header->journal->kind <= 2 && header->journal->offset <= is->size &&
         header->journal->length <= is->size - header->journal->offset &&
         (header->journal->kind != 1 ||
          header->journal->length <= TL_JOURNAL_MAX);
}

static int
map_header (struct tl_header *header, const uint64_t at[PARTS], char *error,
            size_t error_size)
{
  char *base;

  /* A touch of memory that is not there would be fatal. */
  if (tl_fallocate (header->backing.fd, 0, 0, header->size) == -1 &&
      errno != EOPNOTSUPP) {
    snprintf (error, error_size, "%s: no space for it, %" PRIu64 " bytes: %m",
              header->path, header->size);
    return -1;
  }
  base = mmap (NULL, header->size, PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_POPULATE, header->backing.fd, 0);
  if (base == MAP_FAILED) {
    snprintf (error, error_size, "%s: cannot map it: %m", header->path);
    return -1;
  }
  header->base = base;
  header->kept = (struct tl_kept *)(base + at[KEPT]);
  header->dirty = (uint64_t *)(base + at[DIRTY]);
  header->allocated = (uint64_t *)(base + at[ALLOCATED]);
  header->journal = (struct tl_journal *)(base + at[JOURNAL]);
  return 0;
}

int
tl_header_open (struct tl_header *header, const char *path, uint64_t size,
                uint64_t inode, bool fresh, bool lock, bool *valid, char *error,
                size_t error_size)
{
  struct superblock super = {.size = size, .inode = inode};
  uint64_t at[PARTS];

  memset (header, 0, sizeof *header);
  header->backing.fd = -1;
  lay_out (size, at);
  header->size = at[END];
  if (asprintf (&header->path, "%s.header", path) == -1) {
    header->path = NULL;
    snprintf (error, error_size, "not enough memory to open the store");
    return -1;
  }
  if (tl_backing_open (&header->backing, header->path, header->size, error,
                       error_size) == -1 ||
      tl_backing_grow (&header->backing, error, error_size) == -1 ||
      map_header (header, at, error, error_size) == -1)
    return -1;
  if (lock && tl_header_lock (header) == -1) {
    snprintf (error, error_size, "%s: cannot lock it in memory: mlock: %m",
              header->path);
    return -1;
  }
  read_boot_id (super.boot);
  *valid = !fresh && is_valid (header, &super);
  if (!*valid)
    make_new (header, &super);
  return 0;
}

int
tl_header_lock (const struct tl_header *header)
{
  return mlock (header->base, header->size);
}

void
tl_header_close (struct tl_header *header, bool undo)
{
  if (header->path == NULL)
    return;
  if (header->base != NULL)
    munmap (header->base, header->size);
  tl_backing_close (&header->backing, undo);
  free (header->path);
  header->path = NULL;
}

/* ---- The change under way ---- */

static void
begin (struct tl_journal *journal, uint64_t kind, uint64_t offset,
       uint64_t length)
{
  journal->offset = offset;
  journal->length = length;
  FENCE ();
  journal->kind = kind;
  FENCE ();
}

void
tl_journal_write (struct tl_journal *journal, uint64_t offset, uint64_t length,
                  const void *bytes)
{
  if (journal == NULL)
    return;
  assert (length <= TL_JOURNAL_MAX);
  memcpy (journal->bytes, bytes, length);
  FENCE ();
  begin (journal, 1, offset, length);
}

void
tl_journal_zero (struct tl_journal *journal, uint64_t offset, uint64_t length)
{
  if (journal != NULL)
    begin (journal, 2, offset, length);
}

void
tl_journal_done (struct tl_journal *journal)
{
  if (journal == NULL)
    return;
  FENCE ();
  journal->kind = 0;
  FENCE ();
}
