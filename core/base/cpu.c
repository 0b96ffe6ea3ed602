/* cpu: the instruction sets of this processor, and how much of the machine this process may use. */
#include "core/base/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const level_name[CPU_LEVEL_COUNT] = {"portable", "avx2", "avx512"};

const char *cpu_level_name(enum cpu_level level) { return level_name[level]; }

static bool has_all(unsigned features, unsigned wanted) { return (features & wanted) == wanted; }

enum cpu_level cpu_level_with(unsigned features) {
  if (!has_all(features, CPU_HAS_AVX2 | CPU_HAS_FMA | CPU_HAS_F16C)) return CPU_PORTABLE;
  return has_all(features, CPU_HAS_AVX512) ? CPU_AVX512 : CPU_AVX2;
}

enum cpu_level cpu_text_level_with(unsigned features) {
  if (!has_all(features, CPU_HAS_BITS)) return CPU_PORTABLE;
  const enum cpu_level level = cpu_level_with(features);
  if (level == CPU_AVX512 && !has_all(features, CPU_HAS_VBMI | CPU_HAS_CD)) return CPU_AVX2;
  return level;
}

/* clang's __builtin_cpu_supports does not know F16C and AVX-VNNI. Whether the system saves their
 * registers, the test of AVX2 says. */
#if defined(__x86_64__)
static bool has_f16c(void) {
  unsigned a, b, c = 0, d;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static bool has_avx_vnni(void) {
  enum { AVX_VNNI = 1 << 4 };
  unsigned a = 0, b, c, d;
  return __builtin_cpu_supports("avx2") && __get_cpuid_count(7, 1, &a, &b, &c, &d) &&
         (a & AVX_VNNI);
}
#endif

unsigned cpu_features(void) {
  unsigned features = 0;
#if defined(__x86_64__)
#define HAS(name) (__builtin_cpu_supports(name) != 0)
  if (HAS("avx2")) features |= CPU_HAS_AVX2;
  if (HAS("fma")) features |= CPU_HAS_FMA;
  if (HAS("bmi") && HAS("bmi2") && HAS("popcnt")) features |= CPU_HAS_BITS;
  if (HAS("avx512f") && HAS("avx512bw") && HAS("avx512vl") && HAS("avx512dq"))
    features |= CPU_HAS_AVX512;
  if (HAS("avx512vbmi") && HAS("avx512vbmi2")) features |= CPU_HAS_VBMI;
  if (HAS("avx512cd")) features |= CPU_HAS_CD;
  if (has_f16c()) features |= CPU_HAS_F16C;
  if (has_avx_vnni()) features |= CPU_HAS_AVX_VNNI;
  if (HAS("avx512vnni")) features |= CPU_HAS_AVX512_VNNI;
#undef HAS
#endif
  return features;
}

const struct cpu_word cpu_words[CPU_WORD_COUNT] = {
    {"portable", CPU_PORTABLE, 0},
    {"avx2", CPU_AVX2, 0},
    {"avx2vnni", CPU_AVX2, CPU_HAS_AVX_VNNI},
    {"avx512", CPU_AVX512, 0},
    {"avx512vnni", CPU_AVX512, CPU_HAS_AVX512_VNNI},
};

const struct cpu_word *cpu_word_with(unsigned features, const struct cpu_word *most) {
  const struct cpu_word *word = most;
  while (word->level > cpu_level_with(features) || !has_all(features, word->vnni)) word--;
  return word;
}

/* The word that ATTEND_CPU names, or the highest. */
static const struct cpu_word *wanted_word(void) {
  const char *wanted = getenv("ATTEND_CPU");
  for (size_t i = 0; wanted && i < CPU_WORD_COUNT; i++)
    if (strcmp(wanted, cpu_words[i].name) == 0) return &cpu_words[i];
  return &cpu_words[CPU_WORD_COUNT - 1];
}

const struct cpu_word *cpu_word(void) {
  static const struct cpu_word *_Atomic known;
  const struct cpu_word *word = known;
  if (!word) known = word = cpu_word_with(cpu_features(), wanted_word());
  return word;
}

enum cpu_level cpu_level(void) { return cpu_word()->level; }

enum cpu_level cpu_text_level(void) {
  static _Atomic int known = -1;
  int level = known;
  if (level >= 0) return (enum cpu_level)level;
  const enum cpu_level here = cpu_text_level_with(cpu_features()), most = wanted_word()->level;
  known = level = (int)(here < most ? here : most);
  return (enum cpu_level)level;
}

/* --- cgroups --- */

/* Returns whether `name` is one of the words of a list such as "cpu,cpuacct". */
static bool is_listed(const char *list, const char *name) {
  const size_t length = strlen(name);
  for (const char *at = list;; at++) {
    const size_t word = strcspn(at, ",");
    if (word == length && strncmp(at, name, length) == 0) return true;
    at += word;
    if (!*at) return false;
  }
}

enum { PATH_SIZE = 4096 };

/* A group of a hierarchy, as a path; cutting its end gives the group above. */
struct cpu_group {
  char path[PATH_SIZE];
  size_t top; /* length of the part that stays */
};

/* Finds the process's own group in a hierarchy mounted at `mount`, in a line "0::/path" (v2, with
 * `controller` "") or "4:cpu,cpuacct:/path" (v1). */
static void find_group(struct cpu_group *g, const char *root, const char *mount,
                       const char *controller) {
  char line[PATH_SIZE];
  g->top = (size_t)snprintf(g->path, sizeof g->path, "%s/proc/self/cgroup", root);
  FILE *f = fopen(g->path, "re");
  g->top = (size_t)snprintf(g->path, sizeof g->path, "%s/sys/fs/cgroup%s", root, mount);
  while (f && fgets(line, sizeof line, f)) {
    char *names = strchr(line, ':');
    char *place = names ? strchr(names + 1, ':') : NULL;
    if (!place) continue;
    *place++ = '\0';
    place[strcspn(place, "\n")] = '\0';
    if (!is_listed(names + 1, controller)) continue;
    snprintf(g->path + g->top, sizeof g->path - g->top, "%s", place);
    break;
  }
  if (f) fclose(f);
}

/* Moves to the group above; false at the top. */
static bool go_up(struct cpu_group *g) {
  char *slash = strrchr(g->path + g->top, '/');
  if (slash) *slash = '\0';
  return slash != NULL;
}

/* Reads the first line of a group's file; false if there is none. */
static bool read_group_line(const struct cpu_group *g, const char *file, char line[128]) {
  char path[PATH_SIZE + 64];
  snprintf(path, sizeof path, "%s/%s", g->path, file);
  FILE *f = fopen(path, "re");
  if (!f) return false;
  const bool ok = fgets(line, 128, f) != NULL;
  fclose(f);
  return ok;
}

static double own_cores(const struct cpu_group *g) {
  char line[128];
  double quota = 0, period = 0;
  if (read_group_line(g, "cpu.max", line)) {
    if (sscanf(line, "%lf %lf", &quota, &period) != 2) return INFINITY; /* "max" */
  } else if (read_group_line(g, "cpu.cfs_quota_us", line)) {
    quota = strtod(line, NULL); /* -1: none */
    period = read_group_line(g, "cpu.cfs_period_us", line) ? strtod(line, NULL) : 0;
  }
  return quota > 0 && period > 0 ? quota / period : INFINITY;
}

/* A group may have a lower limit than the groups below it: the lowest one counts. */
double cpu_group_cores(const char *root) {
  static const char *const place[][2] = {{"", ""}, {"/cpu", "cpu"}};
  double least = INFINITY;
  for (size_t i = 0; i < 2; i++) {
    struct cpu_group g;
    find_group(&g, root, place[i][0], place[i][1]);
    do {
      least = fmin(least, own_cores(&g));
    } while (go_up(&g));
  }
  return least;
}

size_t cpu_group_memory(const char *root) {
  static const char *const place[][3] = {{"", "", "memory.max"},
                                         {"/memory", "memory", "memory.limit_in_bytes"}};
  size_t least = SIZE_MAX;
  for (size_t i = 0; i < 2; i++) {
    struct cpu_group g;
    char line[128];
    find_group(&g, root, place[i][0], place[i][1]);
    do {
      if (!read_group_line(&g, place[i][2], line)) continue;
      unsigned long long limit = strtoull(line, NULL, 10); /* 0 for "max" */
      if (limit > 0 && limit < least) least = (size_t)limit;
    } while (go_up(&g));
  }
  return least;
}

/* --- what this process may use --- */

size_t cpu_quota(void) {
  cpu_set_t set;
  CPU_ZERO(&set);
  size_t cores = 0;
  if (sched_getaffinity(0, sizeof set, &set) == 0) cores = (size_t)CPU_COUNT(&set);
  if (cores == 0) {
    long online = sysconf(_SC_NPROCESSORS_ONLN); /* more processors than a cpu_set_t can name */
    cores = online > 0 ? (size_t)online : 1;
  }
  double limit = cpu_group_cores("");
  if (limit < (double)cores) cores = (size_t)fmax(ceil(limit), 1);
  return cores;
}

size_t cpu_memory(void) {
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  size_t memory = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : (size_t)1 << 30;
  size_t limit = cpu_group_memory("");
  return limit < memory ? limit : memory;
}
