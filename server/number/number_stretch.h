/* number_stretch: number_read_stretch of each level of instructions; internal to the text modules.
 *
 * All have number_read_stretch's contract (number.h) and differ in where they stop and in speed.
 * Those that this processor lacks (cpu_text_level) must not be called; elsewhere than on x86-64
 * they do not exist. */
#ifndef SERVER_TEXT_NUMBER_STRETCH_H
#define SERVER_TEXT_NUMBER_STRETCH_H

#include <stddef.h>

size_t number_stretch_portable(const char *text, const char *end, float *out, size_t room,
                               const char **stop);
size_t number_stretch_avx2(const char *text, const char *end, float *out, size_t room,
                           const char **stop);
size_t number_stretch_avx512(const char *text, const char *end, float *out, size_t room,
                             const char **stop);

#endif
