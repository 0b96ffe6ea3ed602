/* number_rows: rows of numbers as text, by each level of the processor's instructions. Private to
 * number_rows*.c and number_write.c. */
#ifndef SERVER_TEXT_NUMBER_ROWS_H
#define SERVER_TEXT_NUMBER_ROWS_H

#include <stddef.h>

/* number_write_rows of one level; `width` is at least 1. The portable one is in number_write.c,
 * where each number is written inline: 7 % less time. Elsewhere than on x86-64 the others do not
 * exist. */
char *number_rows_portable(char *out, const float *value, size_t rows, size_t width);
char *number_rows_avx2(char *out, const float *value, size_t rows, size_t width);
char *number_rows_avx512(char *out, const float *value, size_t rows, size_t width);

#endif
