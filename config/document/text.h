/* text: small questions about text that came from outside. */
#ifndef CONFIG_TEXT_H
#define CONFIG_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

/* Well-formed UTF-8: no overlong forms, no surrogates, nothing beyond U+10FFFF. */
size_t text_character(const void *bytes, size_t left); /* bytes of the first one; 0: ill-formed */
bool text_is_utf8(const void *bytes, size_t size);

/* Digits and nothing else; false also when the number is beyond 64 bits. */
bool text_decimal(const char *text, uint64_t *out);

bool text_ends_with(const char *text, const char *end);

/* What is behind the last slash. */
const char *text_file_name(const char *path);

/* Can a model have this name? It is a part, or two with a slash between. A part is 1 to
 * MODEL_NAME_PART of letters, digits, '.', '_', '-'; the second one is no word of a path. */
enum { MODEL_NAME_PART = 96, MODEL_NAME_SIZE = 2 * MODEL_NAME_PART + 2 };
bool text_is_model_name(const char *name);

/* Can the word stand behind a model's name in a path ("encode")? */
bool text_is_path_word(const char *word);

/* The last 120 bytes of a path: a long path must not push the reason out of a message. */
const char *text_tail(const char *path);

/* Bytes of the first character if a terminal may show it as it is; 0 for a control character (some
 * are above 0x7f), for one that changes the direction of the text around it, and for an ill-formed
 * one. */
size_t text_visible(const char *text);

/* Replaces each character of the detail that is not visible by '?': a message that quotes a name
 * from a file must stay one line. Returns the status that the error holds. */
enum status text_plain(struct error *e);

/* Puts words before the detail, whose end is cut off where the whole is too long. Returns the
 * status that the error holds. */
enum status text_before(struct error *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
