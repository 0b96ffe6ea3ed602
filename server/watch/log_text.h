/* log_text: a line of a log as it grows, in a fixed space that its parts are made to fit. */
#ifndef SERVER_LOG_TEXT_H
#define SERVER_LOG_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct log_text {
  char *at, *end;
};

void log_text_bytes(struct log_text *t, const char *bytes, size_t size);
void log_text_word(struct log_text *t, const char *word);
void log_text_number(struct log_text *t, uint64_t n);
void log_text_ms(struct log_text *t, uint64_t ns);                       /* "1.234", in ms */
void log_text_time(struct log_text *t, const struct timespec *realtime); /* RFC 3339, UTC, µs */

/* The inside of a JSON string of at most `most` + 6 bytes, all ASCII. What is no UTF-8 becomes
 * U+FFFD; what is too long is cut at a character and ends with an ellipsis. */
void log_text_json(struct log_text *t, const char *from, size_t most);

/* The inside of a quoted string of at most `most` bytes, all ASCII: an odd byte becomes \xHH. */
void log_text_plain(struct log_text *t, const char *from, size_t most);

#endif
