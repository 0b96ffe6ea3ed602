/* number_layout: where the digits of a number go, as shuffles of 16 bytes. */
#ifndef SERVER_TEXT_NUMBER_LAYOUT_H
#define SERVER_TEXT_NUMBER_LAYOUT_H

#include <stdint.h>

enum {
  NUMBER_LAYOUTS = 14,    /* one for each number of digits behind the dot */
  NUMBER_LAYOUT_LAST = 14 /* where the last digit goes */
};

/* From a dot and 15 digits, right-aligned, to 14 digits with the dot among them. From byte 14 - n
 * on it is the shuffle that makes the text begin n places before the last digit. Only
 * on x86-64, for AVX2. */
extern const uint8_t number_layouts[NUMBER_LAYOUTS][32];

#endif
