/* pattern_text: an expression that is being written, and grows. */
#ifndef CONFIG_PATTERN_TEXT_H
#define CONFIG_PATTERN_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zeros at first. Where there was no memory it is `lost`, and what is put there is dropped. */
struct pattern_text {
  char *bytes; /* NULL, or `length` of them and a zero */
  size_t length, room;
  bool lost;
};

void pattern_text_free(struct pattern_text *t);
void pattern_text_put(struct pattern_text *t, const char *bytes, size_t length);
void pattern_text_say(struct pattern_text *t, const char *string);
void pattern_text_insert(struct pattern_text *t, size_t at, const char *string);

/* The other one's bytes, and whether it is lost. */
void pattern_text_join(struct pattern_text *t, const struct pattern_text *other);

/* A character that stands for itself, within brackets too. */
void pattern_text_character(struct pattern_text *t, uint32_t c);

#endif
