/* How much memory this process may still take: what the machine has, and what
 * each cgroup that it lives in lets through.
 *
 * The kernel does not fail an allocation beyond a cgroup's limit, it kills the
 * process; so the figures are compared before anything is allocated.
 */
#include "limit.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where one version of cgroups keeps what. */
struct dialect {
  const char *limit, *usage;
  const char *active, *inactive; /* page cache, in memory.stat */
};

static const struct dialect version_2 = {"memory.max", "memory.current",
                                         "active_file", "inactive_file"};
static const struct dialect version_1 = {
    "memory.limit_in_bytes", "memory.usage_in_bytes", "total_active_file",
    "total_inactive_file"};

/* Version 1 has no word for "none" but the largest number of whole pages. */
#define NO_LIMIT (UINT64_C (1) << 60)

static FILE *
open_in (const char *dir, const char *name)
{
  char path[PATH_MAX];

  if ((size_t)snprintf (path, sizeof path, "%s/%s", dir, name) >= sizeof path)
    return NULL;
  return fopen (path, "re");
}

/* Read the one number that a file holds.  False where it holds a word. */
static bool
read_number (const char *dir, const char *name, uint64_t *number)
{
  FILE *file = open_in (dir, name);
  bool found;

  if (file == NULL)
    return false;
  found = fscanf (file, "%" SCNu64, number) == 1;
  fclose (file);
  return found;
}

/* What of a cgroup's usage the kernel would give up first. */
static uint64_t
page_cache (const char *dir, const struct dialect *dialect)
{
  FILE *file = open_in (dir, "memory.stat");
  char line[256], key[128];
  uint64_t value, sum = 0;

  if (file == NULL)
    return 0;
  while (fgets (line, sizeof line, file))
    if (sscanf (line, "%127s %" SCNu64, key, &value) == 2 &&
        (strcmp (key, dialect->active) == 0 ||
         strcmp (key, dialect->inactive) == 0))
      sum += value;
  fclose (file);
  return sum;
}

static int
check_cgroup (const char *dir, const struct dialect *dialect, uint64_t needed,
              char *error, size_t error_size)
{
  uint64_t limit, usage, cache, available;
  char a[TL_AMOUNT_TEXT], b[TL_AMOUNT_TEXT];

  if (!read_number (dir, dialect->limit, &limit) || limit >= NO_LIMIT ||
      !read_number (dir, dialect->usage, &usage))
    return 0;
  cache = page_cache (dir, dialect);
  usage -= cache < usage ? cache : usage;
  available = usage < limit ? limit - usage : 0;
  if (needed <= available)
    return 0;
  snprintf (error, error_size,
            "not enough memory: %s are needed, %s are left of the limit "
            "%s/%s; raise it or choose a smaller size=",
            tl_amount (needed, a), tl_amount (available, b), dir,
            dialect->limit);
  return -1;
}

/* Check the cgroup PATH, as /proc/self/cgroup names it, and all above it that
 * can be seen below MOUNT.  ROOT is the cgroup that is mounted there.
 */
static int
check_up_the_tree (const char *mount, const char *root, const char *path,
                   const struct dialect *dialect, uint64_t needed, char *error,
                   size_t error_size)
{
  char dir[PATH_MAX];
  size_t top = strlen (mount), below = strlen (root);
  char *slash;

  if (strcmp (root, "/") == 0)
    below = 0;
  if (strncmp (path, root, below) == 0 &&
      (path[below] == '/' || path[below] == '\0'))
    path += below;
  else
    path = "";
  if (strcmp (path, "/") == 0 || strncmp (path, "/..", 3) == 0)
    path = "";
  if ((size_t)snprintf (dir, sizeof dir, "%s%s", mount, path) >= sizeof dir)
    return 0;
  for (;;) {
    if (check_cgroup (dir, dialect, needed, error, error_size) == -1)
      return -1;
    slash = strrchr (dir, '/');
    if (slash == NULL || (size_t)(slash - dir) < top)
      return 0;
    *slash = '\0';
  }
}

/* Undo the octal escapes of mountinfo, in place. */
static void
unescape (char *text)
{
  char *to = text;

  for (; *text != '\0'; text++) {
    if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' && text[2] >= '0' &&
        text[2] <= '7' && text[3] >= '0' && text[3] <= '7') {
      *to++ =
          (char)((text[1] - '0') * 64 + (text[2] - '0') * 8 + text[3] - '0');
      text += 3;
    } else
      *to++ = *text;
  }
  *to = '\0';
}

/* Is WORD one of the words of LIST, which commas part? */
static bool
listed (const char *list, const char *word)
{
  size_t length = strlen (word);

  while (list != NULL) {
    if (strncmp (list, word, length) == 0 &&
        (list[length] == ',' || list[length] == '\0'))
      return true;
    list = strchr (list, ',');
    if (list != NULL)
      list++;
  }
  return false;
}

/* The path of this process's cgroup, in the unified hierarchy or in the one of
 * the memory controller; empty where there is none.
 */
static void
own_cgroup (const char *proc, bool unified, char path[PATH_MAX])
{
  FILE *file = open_in (proc, "self/cgroup");
  char *line = NULL, *controllers, *name;
  size_t space = 0;

  path[0] = '\0';
  if (file == NULL)
    return;
  while (getline (&line, &space, file) != -1) {
    line[strcspn (line, "\n")] = '\0';
    controllers = strchr (line, ':');
    name = controllers ? strchr (controllers + 1, ':') : NULL;
    if (name == NULL)
      continue;
    controllers++;
    *name++ = '\0';
    if (unified ? *controllers == '\0' : listed (controllers, "memory")) {
      snprintf (path, PATH_MAX, "%s", name);
      break;
    }
  }
  free (line);
  fclose (file);
}

/* Check one line of mountinfo: is it of a hierarchy with a memory controller,
 * and what does that leave?
 */
static int
check_mount (const char *proc, char *line, uint64_t needed, char *error,
             size_t error_size)
{
  char *save = NULL, *root = NULL, *mount = NULL, *field, *tail;
  char type[32], options[1024], path[PATH_MAX];
  unsigned n;
  bool unified;

  tail = strstr (line, " - ");
  if (tail == NULL || sscanf (tail, " - %31s %*s %1023s", type, options) != 2)
    return 0;
  unified = strcmp (type, "cgroup2") == 0;
  if (!unified && (strcmp (type, "cgroup") != 0 || !listed (options, "memory")))
    return 0;
  *tail = '\0';
  field = strtok_r (line, " ", &save);
  for (n = 0; field != NULL && n < 5; n++) {
    if (n == 3)
      root = field;
    mount = field;
    field = strtok_r (NULL, " ", &save);
  }
  if (n < 5 || root == NULL)
    return 0;
  unescape (root);
  unescape (mount);
  own_cgroup (proc, unified, path);
  if (path[0] == '\0')
    return 0;
  return check_up_the_tree (mount, root, path,
                            unified ? &version_2 : &version_1, needed, error,
                            error_size);
}

static int
check_cgroups (const char *proc, uint64_t needed, char *error,
               size_t error_size)
{
  FILE *file = open_in (proc, "self/mountinfo");
  char *line = NULL;
  size_t space = 0;
  int r = 0;

  if (file == NULL)
    return 0;
  while (r == 0 && getline (&line, &space, file) != -1)
    r = check_mount (proc, line, needed, error, error_size);
  free (line);
  fclose (file);
  return r;
}

int
tl_limit_memory (const char *proc, uint64_t needed, char *error,
                 size_t error_size)
{
  FILE *file = open_in (proc, "meminfo");
  char line[256], a[TL_AMOUNT_TEXT], b[TL_AMOUNT_TEXT];
  uint64_t kib = UINT64_MAX;

  if (file != NULL) {
    while (fgets (line, sizeof line, file))
      if (sscanf (line, "MemAvailable: %" SCNu64, &kib) == 1)
        break;
    fclose (file);
  }
  if (kib < needed >> 10) {
    snprintf (error, error_size,
              "not enough memory: %s are needed, %s are available "
              "(MemAvailable in %s/meminfo); choose a smaller size= or free "
              "memory",
              tl_amount (needed, a), tl_amount (kib << 10, b), proc);
    return -1;
  }
  return check_cgroups (proc, needed, error, error_size);
}
