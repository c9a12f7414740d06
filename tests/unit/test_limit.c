/* The figures of the system, in made-up /proc and cgroup trees. */
#include "store/limit.h"

#include "unit.h"

#include <inttypes.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define MIB (UINT64_C (1) << 20)

static char error[512];

/* A file of the scratch directory, with the directories on its way. */
__attribute__ ((format (printf, 2, 3))) static void
put (const char *name, const char *format, ...)
{
  char path[256], text[4096];
  va_list args;

  snprintf (path, sizeof path, "%s", name);
  for (char *slash = path; (slash = strchr (slash, '/')) != NULL; slash++) {
    *slash = '\0';
    mkdir (unit_path (path), 0700); /* may be there */
    *slash = '/';
  }
  va_start (args, format);
  vsnprintf (text, sizeof text, format, args);
  va_end (args);
  unit_file (name, text);
}

static int
check (const char *proc, uint64_t needed)
{
  error[0] = '\0';
  return tl_limit_memory (unit_path (proc), needed, error, sizeof error);
}

START_TEST (amounts)
{
  char text[TL_AMOUNT_TEXT];

  ck_assert_str_eq (tl_amount (0, text), "0 KiB");
  ck_assert_str_eq (tl_amount (8 * MIB, text), "8192 KiB");
  ck_assert_str_eq (tl_amount (10 * MIB, text), "10 MiB");
  ck_assert_str_eq (tl_amount (UINT64_MAX, text), "17592186044415 MiB");
}
END_TEST

START_TEST (nothing_known)
{
  ck_assert_int_eq (check ("nothing", UINT64_MAX), 0);
}
END_TEST

START_TEST (available_memory)
{
  put ("p1/meminfo", "MemTotal: 4194304 kB\nMemFree: 1 kB\n"
                     "MemAvailable:    2097152 kB\nBuffers: 0 kB\n");
  ck_assert_int_eq (check ("p1", 2048 * MIB), 0);
  ck_assert_int_eq (check ("p1", 2049 * MIB), -1);
  assert_says (error, "2049 MiB are needed");
  assert_says (error, "2048 MiB are available");
  assert_says (error, "MemAvailable");
}
END_TEST

/* Below PROC, a cgroup tree of version 2 where a/b is ours. */
static void
make_v2 (const char *proc, const char *root, const char *own)
{
  char name[64];
#define IN(file) (snprintf (name, sizeof name, "%s/%s", proc, file), name)

  put (IN ("meminfo"), "MemAvailable: 1073741824 kB\n");
  put (IN ("self/cgroup"), "0::%s\n", own);
  put (IN ("self/mountinfo"),
       "22 28 0:20 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n"
       "31 22 0:27 %s %s/%s/cg rw,nosuid shared:9 - cgroup2 cgroup2 rw\n",
       root, unit_scratch, proc);
  put (IN ("cg/memory.stat"), "anon 1\n"); /* the root has no limit */
  put (IN ("cg/a/memory.max"), "%" PRIu64 "\n", 1000 * MIB);
  put (IN ("cg/a/memory.current"), "%" PRIu64 "\n", 600 * MIB);
  put (IN ("cg/a/memory.stat"),
       "anon 5\ninactive_file %" PRIu64 "\nactive_file %" PRIu64 "\n", 60 * MIB,
       40 * MIB);
  put (IN ("cg/a/b/memory.max"), "max\n");
  put (IN ("cg/a/b/memory.current"), "%" PRIu64 "\n", MIB);
}

START_TEST (cgroup_above_ours)
{
  make_v2 ("p2a", "/", "/a/b");
  ck_assert_int_eq (check ("p2a", 500 * MIB),
                    0); /* page cache counts as free */
  ck_assert_int_eq (check ("p2a", 501 * MIB), -1);
  assert_says (error, "501 MiB are needed");
  assert_says (error, "500 MiB are left");
  assert_says (error, "/p2a/cg/a/memory.max");
}
END_TEST

START_TEST (our_own_cgroup)
{
  make_v2 ("p2b", "/", "/a/b");
  put ("p2b/cg/a/b/memory.max", "%" PRIu64 "\n", 101 * MIB);
  ck_assert_int_eq (check ("p2b", 100 * MIB), 0);
  ck_assert_int_eq (check ("p2b", 101 * MIB), -1);
  assert_says (error, "/p2b/cg/a/b/memory.max");
}
END_TEST

START_TEST (part_of_the_tree_is_mounted)
{
  make_v2 ("p2c", "/top/a", "/top/a/b"); /* so p2c/cg is a */
  put ("p2c/cg/memory.max", "%" PRIu64 "\n", 300 * MIB);
  put ("p2c/cg/memory.current", "0\n");
  put ("p2c/cg/b/memory.max", "%" PRIu64 "\n", 200 * MIB);
  put ("p2c/cg/b/memory.current", "0\n");
  ck_assert_int_eq (check ("p2c", 200 * MIB), 0);
  ck_assert_int_eq (check ("p2c", 250 * MIB), -1);
  assert_says (error, "/p2c/cg/b/memory.max");
  put ("p2c/cg/b/memory.max", "max\n");
  ck_assert_int_eq (check ("p2c", 300 * MIB), 0);
  ck_assert_int_eq (check ("p2c", 301 * MIB), -1);
  assert_says (error, "/p2c/cg/memory.max");
}
END_TEST

START_TEST (our_cgroup_is_not_mounted)
{
  make_v2 ("p2d", "/elsewhere", "/../x");
  ck_assert_int_eq (check ("p2d", 501 * MIB), 0);
  put ("p2d/cg/memory.max", "%" PRIu64 "\n", 300 * MIB);
  put ("p2d/cg/memory.current", "%" PRIu64 "\n", 400 * MIB);
  ck_assert_int_eq (check ("p2d", 1), -1); /* over its limit already */
  assert_says (error, "0 KiB are left");
}
END_TEST

START_TEST (version_1)
{
  put ("p3/meminfo", "MemAvailable: 1073741824 kB\n");
  put ("p3/self/cgroup", "5:cpu,cpuacct:/other\n4:hugetlb,memory:/own\n"
                         "0::/\n");
  put ("p3/self/mountinfo",
       "40 22 0:30 / %s/p3/cpu rw - cgroup cgroup rw,cpu\n"
       "41 22 0:31 / %s/p3/with\\040space rw - cgroup cgroup rw,memory\n",
       unit_scratch, unit_scratch);
  put ("p3/cpu/own/memory.limit_in_bytes", "1\n"); /* not that one */
  put ("p3/cpu/own/memory.usage_in_bytes", "1\n");
  put ("p3/with space/memory.limit_in_bytes", "9223372036854771712\n");
  put ("p3/with space/memory.usage_in_bytes", "5\n");
  put ("p3/with space/own/memory.limit_in_bytes", "%" PRIu64 "\n", 100 * MIB);
  put ("p3/with space/own/memory.usage_in_bytes", "%" PRIu64 "\n", 50 * MIB);
  put ("p3/with space/own/memory.stat",
       "inactive_file 999\ntotal_inactive_file %" PRIu64
       "\ntotal_active_file 0\n",
       10 * MIB);
  ck_assert_int_eq (check ("p3", 60 * MIB), 0);
  ck_assert_int_eq (check ("p3", 61 * MIB), -1);
  assert_says (error, "memory.limit_in_bytes");
}
END_TEST

START_TEST (garbage_in_proc)
{
  put ("p4/meminfo", "MemAvailable\n\n: 5\n");
  put ("p4/self/cgroup", "\n:\n::\n0\n0::\n");
  put ("p4/self/mountinfo", "\n - \n - cgroup2\n1 2 - cgroup2 x rw\n"
                            "1 2 3 / \\04 rw - cgroup2 x rw\n");
  ck_assert_int_eq (check ("p4", 500 * MIB), 0);
}
END_TEST

/* The machine's own: a byte passes, all there could be does not. */
START_TEST (this_machine)
{
  ck_assert_msg (tl_limit_memory ("/proc", 1, error, sizeof error) == 0, "%s",
                 error);
  ck_assert_int_eq (
      tl_limit_memory ("/proc", UINT64_C (1) << 60, error, sizeof error), -1);
  assert_says (error, "not enough memory");
}
END_TEST

START_TEST (file_size)
{
  struct rlimit limit = {.rlim_cur = 16 * MIB, .rlim_max = RLIM_INFINITY};

  ck_assert_int_eq (tl_limit_file (UINT64_C (1) << 62, error, sizeof error), 0);
  ck_assert_int_eq (getrlimit (RLIMIT_FSIZE, &limit), 0);
  limit.rlim_cur = 16 * MIB;
  ck_assert_int_eq (setrlimit (RLIMIT_FSIZE, &limit), 0);
  ck_assert_int_eq (tl_limit_file (16 * MIB, error, sizeof error), 0);
  ck_assert_int_eq (tl_limit_file (17 * MIB, error, sizeof error), -1);
  assert_says (error, "17 MiB");
  assert_says (error, "RLIMIT_FSIZE is 16 MiB");
}
END_TEST

UNIT_MAIN ("limit", amounts, nothing_known, available_memory, cgroup_above_ours,
           our_own_cgroup, part_of_the_tree_is_mounted,
           our_cgroup_is_not_mounted, version_1, garbage_in_proc, this_machine,
           file_size)
