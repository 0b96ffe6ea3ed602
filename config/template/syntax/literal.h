/* literal: the strings and numbers that a template writes out. */
#ifndef CONFIG_LITERAL_H
#define CONFIG_LITERAL_H

#include "config/template/value/value.h"

/* The text between the quotes of a string, without Python's escapes. VALUE_FAILED after a failure,
 * at b->at: an escape that is none. */
struct value literal_text(struct bounds *b, const char *text, size_t length);

/* Reads the number at the beginning of a text, which begins with a digit; returns how many bytes it
 * has. After a dot, it is an integer. *number is VALUE_FAILED after a failure, at b->at. */
size_t literal_number(struct bounds *b, const char *text, bool after_dot, struct value *number);

#endif
