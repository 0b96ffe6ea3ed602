/* number_integers: number_read_integers of each level of instructions; internal to the text
 * modules.
 *
 * Both have number_read_integers' contract (number.h) and differ in where they stop and in speed.
 * The one with AVX2 must not be called where cpu_text_level is below; elsewhere than on x86-64 it
 * does not exist. */
#ifndef SERVER_TEXT_NUMBER_INTEGERS_H
#define SERVER_TEXT_NUMBER_INTEGERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/number/number_fast.h"

size_t number_integers_portable(const char *text, const char *end, int32_t *out, size_t room,
                                const char **stop);
size_t number_integers_avx2(const char *text, const char *end, int32_t *out, size_t room,
                            const char **stop);

#endif
