/* notes: collects a few sentences. */
#include "config/describe/notes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config/document/text.h"

void notes_add(struct notes *n, const char *format, ...) {
  struct error line = {.status = STATUS_CONFIG};
  va_list args;
  va_start(args, format);
  vsnprintf(line.detail, NOTE_SIZE, format, args);
  va_end(args);
  text_plain(&line);
  for (size_t i = 0; i < n->count; i++)
    if (strcmp(n->text[i], line.detail) == 0) return;
  if (n->count < NOTES_MOST) memcpy(n->text[n->count++], line.detail, NOTE_SIZE);
}
