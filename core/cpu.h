/* cpu: what this processor can do, and how much of it is ours. */
#ifndef CORE_CPU_H
#define CORE_CPU_H

#include <stdbool.h>
#include <stddef.h>

/* Levels of vector instructions for which there are kernels, each including those before it. */
enum cpu_level { CPU_PORTABLE, CPU_AVX2, CPU_AVX512, CPU_LEVEL_COUNT };

/* The highest level that this processor and the environment variable ATTEND_CPU ("portable",
 * "avx2", "avx512"; unknown names are ignored) allow. Decided at the first call, then fixed. */
enum cpu_level cpu_level(void);
const char *cpu_level_name(enum cpu_level level);

/* At the level CPU_AVX512: are there also the instructions on bytes that text needs (VBMI, VBMI2)?
 * The first processors of that level lack them. */
bool cpu_text_avx512(void);

/* Cores this process may use: affinity and what its cgroups allow, rounded up, at least 1. */
size_t cpu_quota(void);

/* Bytes of memory this process may use: what its cgroups allow, or the machine's memory. */
size_t cpu_memory(void);

/* The least that this process's cgroup and those above it allow: cores (cpu.max of v2, the cfs
 * quota of v1; INFINITY: no limit) and bytes (SIZE_MAX: no limit). `root` is "", or a folder with
 * a proc and a sys of its own. */
double cpu_group_cores(const char *root);
size_t cpu_group_memory(const char *root);

#endif
