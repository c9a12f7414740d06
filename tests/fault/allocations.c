/* Counts requests for memory: a library for LD_PRELOAD.
 *
 * The file that TWINLOG_ALLOCATIONS names holds struct counts.  Whoever sets
 * `on` in it is told from then on how many allocations had the plugin among
 * their callers, directly or through a library that it uses, on a worker's
 * thread or its own, and how many had not: those are nbdkit's.
 */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#define PLUGIN "nbdkit-twinlog-plugin.so"
#define EXPORT __attribute__ ((visibility ("default")))

struct counts {
  _Atomic uint64_t on;
  _Atomic uint64_t plugin;
  _Atomic uint64_t others;
  _Atomic uint64_t place; /* of the plugin's last one: the offset in it */
};

static struct counts *counts;
static _Atomic uintptr_t plugin_begin, plugin_end; /* its mapping */
static __thread __attribute__ ((tls_model ("initial-exec"))) bool counting;

/* The C library's own; asking for them by name may allocate. */
void *__libc_malloc (size_t);
void *__libc_calloc (size_t, size_t);
void *__libc_realloc (void *, size_t);
void *__libc_memalign (size_t, size_t);

/* The commands that the node runs are no business of this library. */
__attribute__ ((constructor)) static void
begin (void)
{
  const char *path = getenv ("TWINLOG_ALLOCATIONS");
  int fd = path ? open (path, O_RDWR | O_CLOEXEC) : -1;
  void *at;

  if (fd == -1)
    return;
  at = mmap (NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close (fd);
  unsetenv ("TWINLOG_ALLOCATIONS");
  if (at != MAP_FAILED)
    counts = at;
}

static int
find_plugin (struct dl_phdr_info *info, size_t size, void *opaque)
{
  if (!strstr (info->dlpi_name, PLUGIN))
    return 0;
  for (unsigned i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_LOAD)
      plugin_end = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr +
                   info->dlpi_phdr[i].p_memsz;
  plugin_begin = info->dlpi_addr;
  return 1;
}

static _Unwind_Reason_Code
look (struct _Unwind_Context *context, void *opaque)
{
  uintptr_t at = _Unwind_GetIP (context);

  if (at < plugin_begin || at >= plugin_end)
    return _URC_NO_REASON;
  *(uintptr_t *)opaque = at - plugin_begin;
  return _URC_END_OF_STACK;
}

static void
count (void)
{
  uintptr_t place = 0;

  if (!counts || !counts->on || counting)
    return;
  counting = true; /* what follows may allocate */
  if (!plugin_begin)
    dl_iterate_phdr (find_plugin, NULL);
  _Unwind_Backtrace (look, &place);
  if (place) {
    counts->plugin++;
    counts->place = place;
  } else
    counts->others++;
  counting = false;
}

EXPORT void *
malloc (size_t size)
{
  count ();
  return __libc_malloc (size);
}

EXPORT void *
calloc (size_t n, size_t size)
{
  count ();
  return __libc_calloc (n, size);
}

EXPORT void *
realloc (void *memory, size_t size)
{
  count ();
  return __libc_realloc (memory, size);
}

EXPORT void *
memalign (size_t alignment, size_t size)
{
  count ();
  return __libc_memalign (alignment, size);
}

EXPORT void *
aligned_alloc (size_t alignment, size_t size)
{
  count ();
  return __libc_memalign (alignment, size);
}

EXPORT int
posix_memalign (void **memory, size_t alignment, size_t size)
{
  count ();
  *memory = __libc_memalign (alignment, size);
  return *memory ? 0 : ENOMEM;
}
