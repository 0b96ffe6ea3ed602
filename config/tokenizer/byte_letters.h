/* byte_letters: GPT-2's character for each byte, all of which can be seen.
 *
 * A byte that is such a character in Latin-1 stands for itself; the others are the characters from
 * U+0100 on, in their order: a blank is U+0120. In UTF-8 each has one or two bytes. */
#ifndef CONFIG_BYTE_LETTERS_H
#define CONFIG_BYTE_LETTERS_H

#include <stdint.h>

enum { BYTE_LETTERS_END = 0x144 }; /* behind the last one */

static inline uint32_t byte_letters_of(unsigned char byte) {
  if (byte <= ' ') return 0x100u + byte;
  if (byte < 0x7f || (byte > 0xa0 && byte != 0xad)) return byte;
  return byte == 0xad ? BYTE_LETTERS_END - 1 : 0x121u + byte - 0x7f;
}

/* -1: it is none of them. */
static inline int byte_letters_byte(uint32_t letter) {
  if (letter >= BYTE_LETTERS_END) return -1;
  if (letter == BYTE_LETTERS_END - 1) return 0xad;
  if (letter > 0x120) return (int)(letter - 0x121 + 0x7f);
  if (letter >= 0x100) return (int)(letter - 0x100);
  return byte_letters_of((unsigned char)letter) == letter ? (int)letter : -1;
}

#endif
