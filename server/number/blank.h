/* blank: what JSON allows between its tokens. */
#ifndef SERVER_TEXT_BLANK_H
#define SERVER_TEXT_BLANK_H

#include <stdbool.h>

static inline bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

#endif
