/* text: checks of text that came from outside, and edits of messages. */
#ifndef CONFIG_TEXT_H
#define CONFIG_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

/* Well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF. */
size_t text_character(const void *bytes, size_t left); /* size of the first one; 0: ill-formed */
bool text_is_utf8(const void *bytes, size_t size);

/* Digits and nothing else; false also if the number exceeds 64 bits. */
bool text_decimal(const char *text, uint64_t *out);

bool text_ends_with(const char *text, const char *end);

/* The part of the path after the last slash. */
const char *text_file_name(const char *path);

/* May a model have this name? It is a part, or two with a slash between. A part is 1 to
 * MODEL_NAME_PART of letters, digits, '.', '_', '-'; the second one is not a word of a path. */
enum { MODEL_NAME_PART = 96, MODEL_NAME_SIZE = 2 * MODEL_NAME_PART + 2 };
bool text_is_model_name(const char *name);

/* Can the word follow a model's name in a path ("encode")? */
bool text_is_path_word(const char *word);

/* The last 120 bytes of a path: a long path must not push the reason out of a message. */
const char *text_tail(const char *path);

/* The size of the first character if a terminal may show it as it is; 0 for a control character
 * (some are above 0x7f), for a character that changes the direction of the text around it, and for
 * ill-formed bytes. */
size_t text_visible(const char *text);

/* Replaces each character of the detail that is not visible by '?': a message that quotes a name
 * from a file must stay one line. Returns e->status. */
enum status text_plain(struct error *e);

/* Writes a text from a file so, cut to the size of `out`. Returns `out`. */
enum { TEXT_SHOWN = 160 };
const char *text_shown(const char *text, char out[TEXT_SHOWN]);

/* Puts words before the detail, whose end is cut off if the result is too long. Returns
 * e->status. */
enum status text_before(struct error *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
