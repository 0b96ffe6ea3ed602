/* hex: the value of a hexadecimal digit. */
#ifndef SERVER_TEXT_HEX_H
#define SERVER_TEXT_HEX_H

/* 0 to 15; -1: it is no such digit. */
static inline int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

#endif
