/* json_reserve: Jansson's allocator, and the reading of whole documents. */
#include "config/document/json_reserve.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/size.h"
#include "core/base/status.h"

/* The size of the reserve: what a document still needs after the first allocation that fails.
 * Jansson gets no more text then: it reads the rest of one piece, at most 1024 bytes, which need up
 * to 77 times as much memory ("{},{},..."). One large buffer may also double once more, which needs
 * at most 8 bytes for each byte of text (a list of one-digit numbers; a long string needs less). */
enum { RESERVE_TIMES = 16, RESERVE_LEAST = 128 * 1024 };

/* The reserve of this thread while it reads; NULL otherwise. */
static _Thread_local struct json_reserve *reserve;

static void *allocate_or_reserve(size_t size) {
  void *p = malloc(size);
  if (p || !reserve) return p;
  size = size_round_up(size_max(size, 1), alignof(max_align_t));
  if (size > reserve->size - reserve->used) return NULL;
  p = reserve->room + reserve->used;
  reserve->used += size;
  return p;
}

static void free_unless_reserved(void *p) {
  const char *c = p;
  if (reserve && c >= reserve->room && c < reserve->room + reserve->size) return;
  free(p);
}

void json_reserve_init(void) { json_set_alloc_funcs(allocate_or_reserve, free_unless_reserved); }

void json_reserve_begin(struct json_reserve *r) {
  must(!reserve);
  reserve = r;
}

void json_reserve_end(void) { reserve = NULL; }

/* --- a document --- */

struct json_reserve_text {
  const char *at;
  size_t left;
};

/* Gives Jansson the next piece of the text; nothing once memory has run out, so that it soon
 * rejects the truncated text. */
static size_t next_piece(void *out, size_t room, void *of) {
  struct json_reserve_text *t = of;
  const size_t n = reserve->used > 0 ? 0 : size_min(t->left, room);
  memcpy(out, t->at, n);
  t->at += n;
  t->left -= n;
  return n;
}

static json_t *load_strictly(const char *text, size_t size, size_t flags, json_error_t *why) {
  struct json_reserve_text t = {.at = text, .left = size};
  return json_load_callback(next_piece, &t, JSON_REJECT_DUPLICATES | flags, why);
}

static json_t *load(const char *text, size_t size, size_t flags, json_error_t *why,
                    bool *no_memory) {
  struct json_reserve mine = {0};
  *no_memory = false;
  if (reserve) return load_strictly(text, size, flags, why);
  *no_memory = !size_mul(size, RESERVE_TIMES, &mine.size) ||
               !size_add(mine.size, RESERVE_LEAST, &mine.size) || !(mine.room = malloc(mine.size));
  if (*no_memory) return NULL;
  json_reserve_begin(&mine);
  json_t *value = load_strictly(text, size, flags, why);
  *no_memory = mine.used > 0;
  if (*no_memory) {
    json_decref(value);
    value = NULL;
  }
  json_reserve_end();
  free(mine.room);
  return value;
}

json_t *json_reserve_load(const char *text, size_t size, json_error_t *why, bool *no_memory) {
  return load(text, size, 0, why, no_memory);
}

json_t *json_reserve_load_reals(const char *text, size_t size, json_error_t *why, bool *no_memory) {
  return load(text, size, JSON_DECODE_INT_AS_REAL, why, no_memory);
}
