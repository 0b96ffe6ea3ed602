/* number_level: the readers of stretches and the writers of rows for each level of instructions;
 * internal to the text modules and their tests.
 *
 * All have the contracts of number.h and differ in where a stretch stops and in speed. A function
 * above cpu_text_level must not be called; without x86-64 only the portable ones exist. */
#ifndef SERVER_TEXT_NUMBER_LEVEL_H
#define SERVER_TEXT_NUMBER_LEVEL_H

#include <stddef.h>
#include <stdint.h>

size_t number_stretch_portable(const char *text, const char *end, float *out, size_t room,
                               const char **stop);
size_t number_stretch_avx2(const char *text, const char *end, float *out, size_t room,
                           const char **stop);
size_t number_stretch_avx512(const char *text, const char *end, float *out, size_t room,
                             const char **stop);

size_t number_integers_portable(const char *text, const char *end, int32_t *out, size_t room,
                                const char **stop);
size_t number_integers_avx2(const char *text, const char *end, int32_t *out, size_t room,
                            const char **stop);

/* `width` is at least 1. */
char *number_rows_portable(char *out, const float *value, size_t rows, size_t width);
char *number_rows_avx2(char *out, const float *value, size_t rows, size_t width);
char *number_rows_avx512(char *out, const float *value, size_t rows, size_t width);

#endif
