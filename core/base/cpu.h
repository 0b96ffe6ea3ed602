/* cpu: the instruction sets of this processor, and how much of the machine this process may use. */
#ifndef CORE_CPU_H
#define CORE_CPU_H

#include <stddef.h>

/* Levels of vector instructions that kernels are compiled for; each includes those before it. */
enum cpu_level { CPU_PORTABLE, CPU_AVX2, CPU_AVX512, CPU_LEVEL_COUNT };

/* Instruction sets that the levels need. */
enum cpu_feature {
  CPU_HAS_AVX2 = 1 << 0,
  CPU_HAS_FMA = 1 << 1,
  CPU_HAS_BITS = 1 << 2,   /* BMI1, BMI2, POPCNT */
  CPU_HAS_AVX512 = 1 << 3, /* F, BW, VL, DQ */
  CPU_HAS_VBMI = 1 << 4,   /* VBMI, VBMI2 */
  CPU_HAS_CD = 1 << 5,
  CPU_HAS_F16C = 1 << 6,
  CPU_HAS_AVX_VNNI = 1 << 7,   /* products of bytes, with AVX2 */
  CPU_HAS_AVX512_VNNI = 1 << 8 /* and with AVX-512 */
};

/* The highest level for a set of features: for arithmetic, and for code that works on bytes and
 * bits. The second is never higher: in addition to AVX2 it needs BMI1, BMI2 and POPCNT, and in
 * addition to AVX-512 VBMI, VBMI2 and CD. */
enum cpu_level cpu_level_with(unsigned features);
enum cpu_level cpu_text_level_with(unsigned features);

unsigned cpu_features(void); /* of this processor */

/* A word that ATTEND_CPU may hold, in ascending order: a level, with or without its instructions
 * for products of bytes (VNNI). */
struct cpu_word {
  const char *name;
  enum cpu_level level;
  unsigned vnni; /* the feature of these instructions; 0: without them */
};
enum { CPU_WORD_COUNT = 5 };
extern const struct cpu_word cpu_words[CPU_WORD_COUNT];

/* The highest of these for a set of features that is not above `most`. */
const struct cpu_word *cpu_word_with(unsigned features, const struct cpu_word *most);

/* The highest one that this processor and the environment variable ATTEND_CPU (unknown names are
 * ignored) allow; and its level. Decided at the first call, then fixed. */
const struct cpu_word *cpu_word(void);
enum cpu_level cpu_level(void);
const char *cpu_level_name(enum cpu_level level);

/* The same for code that works on bytes and bits. */
enum cpu_level cpu_text_level(void);

/* Cores this process may use: affinity and what its cgroups allow, rounded up, at least 1. */
size_t cpu_quota(void);

/* Bytes of memory this process may use: what its cgroups allow, or the machine's memory. */
size_t cpu_memory(void);

/* The lowest limit of the cgroup of this process and those above it: cores (cpu.max of v2, the cfs
 * quota of v1; INFINITY: no limit) and bytes (SIZE_MAX: no limit). `root` is "", or a folder that
 * has a proc and a sys for tests. */
double cpu_group_cores(const char *root);
size_t cpu_group_memory(const char *root);

#endif
