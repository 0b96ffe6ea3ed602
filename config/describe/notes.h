/* notes: sentences about a model that works, but may not be what was meant. */
#ifndef CONFIG_NOTES_H
#define CONFIG_NOTES_H

#include <stddef.h>

enum { NOTES_MOST = 8, NOTE_SIZE = 240 };

/* All zeros: no notes. */
struct notes {
  size_t count;
  char text[NOTES_MOST][NOTE_SIZE]; /* one line each, without a full stop */
};

/* Adds a sentence, unless it is there already or NOTES_MOST are. */
void notes_add(struct notes *n, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
