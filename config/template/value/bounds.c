/* bounds: the memory, steps and depth that one template may use, and the place of its failure. */
#include "config/template/value/bounds.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 4000, OWN_BLOCK = 1000, ALIGNED = 8, BYTES_A_STEP = 64, ASK_EVERY = 1 << 16 };

/* The line and column of the place, counted from 1, in characters. */
static void count_lines(const struct bounds *b, size_t *line, size_t *column) {
  *line = *column = 1;
  for (size_t i = 0; i < b->at && b->source[i]; i++) {
    const unsigned char c = (unsigned char)b->source[i];
    if (c == '\n')
      ++*line, *column = 1;
    else if ((c & 0xc0) != 0x80)
      ++*column;
  }
}

/* Removes a character that was cut at the end of a full buffer: templates raise any text. The room
 * left is that of the place. */
static void cut_character(char said[ERROR_DETAIL_SIZE]) {
  enum { PLACE = 60 };
  said[ERROR_DETAIL_SIZE - PLACE] = '\0';
  size_t end = strlen(said), begin = end;
  while (begin > 0 && (said[begin - 1] & 0xc0) == 0x80) begin--;
  if (begin == 0 || !(said[begin - 1] & 0x80)) return;
  const unsigned char lead = (unsigned char)said[begin - 1];
  const size_t wanted = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (end - begin + 1 < wanted) said[begin - 1] = '\0';
}

bool bounds_fail(struct bounds *b, const char *format, ...) {
  char said[ERROR_DETAIL_SIZE];
  size_t line, column;
  va_list args;
  va_start(args, format);
  vsnprintf(said, sizeof said, format, args);
  va_end(args);
  count_lines(b, &line, &column);
  cut_character(said);
  error_set(b->e, STATUS_INVALID_REQUEST, "line %zu, column %zu: %s", line, column, said);
  return false;
}

void *bounds_alloc(struct bounds *b, size_t bytes) {
  if (bytes > b->bytes) {
    bounds_fail(b, "the template needs too much memory");
    return NULL;
  }
  const size_t size = (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
  b->bytes -= size < b->bytes ? size : b->bytes;
  if (size > OWN_BLOCK) return arena_alloc(b->arena, 1, size, b->e);
  if ((size_t)(b->end - b->next) < size) {
    b->next = arena_alloc(b->arena, 1, BLOCK, b->e);
    b->end = b->next ? b->next + BLOCK : NULL;
    if (!b->next) return NULL;
  }
  void *data = b->next;
  b->next += size;
  return data;
}

char *bounds_copy(struct bounds *b, const char *text, size_t length) {
  char *copy = bounds_alloc(b, length + 1);
  if (!copy) return NULL;
  memcpy(copy, text, length);
  copy[length] = '\0';
  return copy;
}

bool bounds_grow(struct bounds *b, void *array, size_t *room, size_t count, size_t size) {
  enum { FIRST = 4 };
  if (count <= *room) return true;
  const size_t wanted = *room ? 2 * *room : FIRST, more = wanted > count ? wanted : count;
  if (more > b->bytes / size) return bounds_fail(b, "the template needs too much memory");
  void **old = array, *grown = bounds_alloc(b, more * size);
  if (!grown) return false;
  if (*room) memcpy(grown, *old, *room * size);
  *old = grown;
  *room = more;
  return true;
}

bool bounds_step(struct bounds *b, size_t steps) {
  if (steps > b->steps) {
    b->steps = 0;
    return bounds_fail(b, "the template takes too many steps");
  }
  b->steps -= steps;
  if (b->steps > b->ask_at) return true;
  b->ask_at = b->steps > ASK_EVERY ? b->steps - ASK_EVERY : 0;
  return !patience_ends(b->patience, b->e);
}

bool bounds_text(struct bounds *b, size_t bytes) {
  const size_t steps = bytes / BYTES_A_STEP + (b->part + bytes % BYTES_A_STEP) / BYTES_A_STEP;
  b->part = (b->part + bytes) % BYTES_A_STEP;
  return steps == 0 || bounds_step(b, steps);
}

bool bounds_enter(struct bounds *b) {
  if (b->depth == 0) return bounds_fail(b, "the template is nested too deeply");
  b->depth--;
  return true;
}

void bounds_leave(struct bounds *b) { b->depth++; }
