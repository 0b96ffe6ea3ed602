/* test_cpu: the levels of instructions; the limits of cgroups, read from a proc and a sys that the
 * test writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <ftw.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/cpu.h"

static int enter(void **state) {
  char *root = strdup("/tmp/attend-test-cpu-XXXXXX");
  *state = root;
  return root && mkdtemp(root) ? 0 : -1;
}

static int drop(const char *path, const struct stat *s, int kind, struct FTW *where) {
  (void)s, (void)kind, (void)where;
  return remove(path);
}

static int leave(void **state) {
  int failed = nftw(*state, drop, 8, FTW_DEPTH | FTW_PHYS);
  free(*state);
  return failed;
}

/* Writes a file below the root, and the folders that lead to it. */
static void put(const char *root, const char *name, const char *text) {
  char path[512];
  snprintf(path, sizeof path, "%s%s", root, name);
  for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); *at++ = '/') {
    *at = '\0';
    mkdir(path, 0700);
  }
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs(text, f);
  assert_int_equal(fclose(f), 0);
}

static void without_cgroups_there_is_no_limit(void **state) {
  assert_true(isinf(cpu_group_cores(*state)));
  assert_true(cpu_group_memory(*state) == SIZE_MAX);
  put(*state, "/proc/self/cgroup", "0::/\n");
  assert_true(isinf(cpu_group_cores(*state)));
}

static void the_least_of_all_groups_counts(void **state) {
  put(*state, "/proc/self/cgroup", "0::/slice/pod/own\n");
  put(*state, "/sys/fs/cgroup/slice/pod/own/cpu.max", "max 100000\n");
  put(*state, "/sys/fs/cgroup/slice/pod/cpu.max", "150000 100000\n");
  put(*state, "/sys/fs/cgroup/slice/cpu.max", "400000 100000\n");
  put(*state, "/sys/fs/cgroup/slice/pod/own/memory.max", "max\n");
  put(*state, "/sys/fs/cgroup/slice/memory.max", "1073741824\n");
  assert_true(cpu_group_cores(*state) == 1.5);
  assert_true(cpu_group_memory(*state) == (size_t)1 << 30);
  put(*state, "/sys/fs/cgroup/slice/pod/own/cpu.max", "50000 100000\n");
  put(*state, "/sys/fs/cgroup/slice/pod/own/memory.max", "4096\n");
  assert_true(cpu_group_cores(*state) == 0.5);
  assert_true(cpu_group_memory(*state) == 4096);
}

/* In a container the path may be the host's, of which only the top is there. */
static void groups_that_cannot_be_seen_are_passed_over(void **state) {
  put(*state, "/proc/self/cgroup", "0::/machine/unseen\n");
  put(*state, "/sys/fs/cgroup/cpu.max", "200000 100000\n");
  assert_true(cpu_group_cores(*state) == 2);
}

static void the_first_version_has_a_tree_for_each_controller(void **state) {
  put(*state, "/proc/self/cgroup",
      "7:cpuset:/wrong\n5:cpuacct,cpu:/pod/own\n4:memory:/pod\n0::/\n");
  put(*state, "/sys/fs/cgroup/cpu/wrong/cpu.cfs_quota_us", "1000\n");
  put(*state, "/sys/fs/cgroup/cpu/wrong/cpu.cfs_period_us", "100000\n");
  put(*state, "/sys/fs/cgroup/cpu/pod/own/cpu.cfs_quota_us", "-1\n");
  put(*state, "/sys/fs/cgroup/cpu/pod/own/cpu.cfs_period_us", "100000\n");
  put(*state, "/sys/fs/cgroup/cpu/pod/cpu.cfs_quota_us", "300000\n");
  put(*state, "/sys/fs/cgroup/cpu/pod/cpu.cfs_period_us", "100000\n");
  put(*state, "/sys/fs/cgroup/memory/pod/memory.limit_in_bytes", "8192\n");
  put(*state, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  assert_true(cpu_group_cores(*state) == 3);
  assert_true(cpu_group_memory(*state) == 8192);
}

static void this_process_may_use_something(void **state) {
  (void)state;
  assert_true(cpu_quota() >= 1);
  assert_true(cpu_memory() > 1 << 20);
}

enum {
  AVX2 = CPU_HAS_AVX2 | CPU_HAS_FMA | CPU_HAS_F16C,
  AVX512 = AVX2 | CPU_HAS_AVX512,
  EVERYTHING = AVX512 | CPU_HAS_BITS | CPU_HAS_VBMI | CPU_HAS_CD
};

static void each_level_needs_all_of_its_instructions(void **state) {
  (void)state;
  static const struct {
    unsigned features;
    enum cpu_level level, text;
  } row[] = {
      {0, CPU_PORTABLE, CPU_PORTABLE},
      {CPU_HAS_AVX2 | CPU_HAS_BITS, CPU_PORTABLE, CPU_PORTABLE},
      {CPU_HAS_FMA | CPU_HAS_BITS, CPU_PORTABLE, CPU_PORTABLE},
      {AVX2, CPU_AVX2, CPU_PORTABLE},
      {AVX2 | CPU_HAS_BITS, CPU_AVX2, CPU_AVX2},
      {EVERYTHING & ~CPU_HAS_AVX512, CPU_AVX2, CPU_AVX2},
      {AVX512, CPU_AVX512, CPU_PORTABLE},
      {AVX512 | CPU_HAS_BITS, CPU_AVX512, CPU_AVX2}, /* Skylake's servers */
      {EVERYTHING & ~CPU_HAS_VBMI, CPU_AVX512, CPU_AVX2},
      {EVERYTHING & ~CPU_HAS_CD, CPU_AVX512, CPU_AVX2},
      {EVERYTHING & ~CPU_HAS_BITS, CPU_AVX512, CPU_PORTABLE},
      {EVERYTHING & ~CPU_HAS_FMA, CPU_PORTABLE, CPU_PORTABLE},
      {EVERYTHING & ~CPU_HAS_F16C, CPU_PORTABLE, CPU_PORTABLE}, /* a hypervisor may hide it */
      {EVERYTHING, CPU_AVX512, CPU_AVX512},
  };
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
    assert_int_equal(cpu_level_with(row[i].features), row[i].level);
    assert_int_equal(cpu_text_level_with(row[i].features), row[i].text);
  }
}

/* A word that the processor cannot follow becomes the next lower one that it can. */
static void a_word_needs_its_level_and_its_products_of_bytes(void **state) {
  (void)state;
  static const struct {
    unsigned features;
    const char *most, *word;
  } row[] = {
      {0, "avx512vnni", "portable"},
      {AVX2, "avx512vnni", "avx2"},
      {AVX2 | CPU_HAS_AVX_VNNI, "avx512vnni", "avx2vnni"},
      {AVX2 | CPU_HAS_AVX_VNNI, "avx2", "avx2"},
      {AVX2 | CPU_HAS_AVX512_VNNI, "avx512vnni", "avx2"},
      {AVX512, "avx512vnni", "avx512"},
      {AVX512 | CPU_HAS_AVX512_VNNI, "avx512vnni", "avx512vnni"},
      {AVX512 | CPU_HAS_AVX512_VNNI, "avx2vnni", "avx2"}, /* as Zen 4 */
      {EVERYTHING, "avx512", "avx512"},
      {EVERYTHING, "portable", "portable"},
  };
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
    const struct cpu_word *most = cpu_words;
    while (strcmp(most->name, row[i].most) != 0) most++;
    assert_string_equal(cpu_word_with(row[i].features, most)->name, row[i].word);
  }
}

/* At the level that ATTEND_CPU names, or the highest if that is not there. */
static void the_environment_lowers_both_levels(void **state) {
  (void)state;
  const enum cpu_level most = cpu_level_with(cpu_features());
  const enum cpu_level text = cpu_text_level_with(cpu_features());
  const char *wanted = getenv("ATTEND_CPU");
  enum cpu_level limit = CPU_AVX512;
  if (wanted && strncmp(wanted, "avx2", 4) == 0) limit = CPU_AVX2;
  if (wanted && strcmp(wanted, "portable") == 0) limit = CPU_PORTABLE;
  assert_int_equal(cpu_level(), limit < most ? limit : most);
  assert_int_equal(cpu_text_level(), limit < text ? limit : text);
}

int main(void) {
#define IN_ROOT(test) cmocka_unit_test_setup_teardown(test, enter, leave)
  const struct CMUnitTest tests[] = {
      IN_ROOT(without_cgroups_there_is_no_limit),
      IN_ROOT(the_least_of_all_groups_counts),
      IN_ROOT(groups_that_cannot_be_seen_are_passed_over),
      IN_ROOT(the_first_version_has_a_tree_for_each_controller),
      cmocka_unit_test(each_level_needs_all_of_its_instructions),
      cmocka_unit_test(a_word_needs_its_level_and_its_products_of_bytes),
      cmocka_unit_test(the_environment_lowers_both_levels),
      cmocka_unit_test(this_process_may_use_something),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
