/* cpu: what this processor can do, and how much of it is ours. */
#include "core/cpu.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const level_name[CPU_LEVEL_COUNT] = {"portable", "avx2", "avx512"};

const char *cpu_level_name(enum cpu_level level) { return level_name[level]; }

static enum cpu_level detect(void) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    return CPU_AVX512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return CPU_AVX2;
#endif
  return CPU_PORTABLE;
}

enum cpu_level cpu_level(void) {
  static _Atomic int known = -1;
  int level = known;
  if (level >= 0) return (enum cpu_level)level;
  level = (int)detect();
  const char *wanted = getenv("ATTEND_CPU");
  for (int i = 0; wanted && i < level; i++)
    if (strcmp(wanted, level_name[i]) == 0) level = i;
  known = level;
  return (enum cpu_level)level;
}

/* The first line of a small file of the kernel's; false if there is none. */
static bool first_line(const char *path, char *line, size_t size) {
  FILE *f = fopen(path, "re");
  if (!f) return false;
  bool ok = fgets(line, (int)size, f) != NULL;
  fclose(f);
  return ok;
}

/* The process's own group within a cgroup hierarchy: "0::/path" (v2) or "N:cpu,cpuacct:/path". */
static bool group_path(const char *controller, char *path, size_t size) {
  FILE *f = fopen("/proc/self/cgroup", "re");
  if (!f) return false;
  char line[512];
  bool found = false;
  while (!found && fgets(line, sizeof line, f)) {
    char *names = strchr(line, ':');
    char *place = names ? strchr(names + 1, ':') : NULL;
    if (!place) continue;
    *place++ = '\0';
    place[strcspn(place, "\n")] = '\0';
    found = controller ? strstr(names, controller) != NULL : names[1] == '\0';
    if (found) snprintf(path, size, "%s", strcmp(place, "/") == 0 ? "" : place);
  }
  fclose(f);
  return found;
}

/* Reads `file` of our cgroup, or of the nearest group above it that has one. */
static bool group_line(const char *root, const char *controller, const char *file, char *line,
                       size_t size) {
  char group[400];
  if (!group_path(controller, group, sizeof group)) group[0] = '\0';
  for (;;) {
    char path[1024];
    snprintf(path, sizeof path, "%s%s/%s", root, group, file);
    if (first_line(path, line, size)) return true;
    char *slash = strrchr(group, '/');
    if (!slash) return false;
    *slash = '\0';
  }
}

static double cgroup_cores(void) {
  char line[128];
  double quota, period;
  if (group_line("/sys/fs/cgroup", NULL, "cpu.max", line, sizeof line))
    return sscanf(line, "%lf %lf", &quota, &period) == 2 && period > 0 ? quota / period : 0;
  const char *root = "/sys/fs/cgroup/cpu";
  if (!group_line(root, "cpu", "cpu.cfs_quota_us", line, sizeof line)) return 0;
  quota = atof(line);
  if (quota <= 0 || !group_line(root, "cpu", "cpu.cfs_period_us", line, sizeof line)) return 0;
  period = atof(line);
  return period > 0 ? quota / period : 0;
}

size_t cpu_quota(void) {
  cpu_set_t set;
  CPU_ZERO(&set);
  size_t cores = 0;
  if (sched_getaffinity(0, sizeof set, &set) == 0) cores = (size_t)CPU_COUNT(&set);
  if (cores == 0) {
    long online = sysconf(_SC_NPROCESSORS_ONLN); /* more processors than a cpu_set_t can name */
    cores = online > 0 ? (size_t)online : 1;
  }
  double limit = cgroup_cores();
  if (limit > 0 && limit < (double)cores) {
    cores = (size_t)limit + (limit > (double)(size_t)limit);
    if (cores == 0) cores = 1;
  }
  return cores;
}

size_t cpu_memory(void) {
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  size_t memory = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : (size_t)1 << 30;
  char line[128];
  if (group_line("/sys/fs/cgroup", NULL, "memory.max", line, sizeof line) ||
      group_line("/sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes", line, sizeof line)) {
    unsigned long long limit = strtoull(line, NULL, 10); /* 0 for "max" */
    if (limit > 0 && limit < memory) memory = (size_t)limit;
  }
  return memory;
}
