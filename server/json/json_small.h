/* json_small: names and small values of a body: collected chunk by chunk, then parsed by Jansson.
 *
 * An allocation that fails while Jansson reads is served from a reserve, and the value is rejected
 * afterwards, so that no failing allocation goes unnoticed. */
#ifndef SERVER_JSON_SMALL_H
#define SERVER_JSON_SMALL_H

#include "config/document/json_reserve.h"
#include "core/base/arena.h"
#include "server/json/json_skim.h"

enum {
  JSON_SMALL_MAX = 512,   /* bytes of text of a small value */
  JSON_RESERVE_TIMES = 96 /* bytes of reserve for each byte of text: Jansson takes up to 77 for
                             "{},{},..." */
};

/* Text that is being collected. */
struct small_text {
  struct json_skim skim;
  size_t offset; /* the first byte's offset in the body */
  size_t length, most;
  bool lost;           /* the text is longer than `most` bytes, of which the first are kept */
  char *text;          /* `own`, or memory of the arena */
  size_t room;         /* bytes of memory at `text` */
  struct arena *arena; /* NULL if `most` is JSON_SMALL_MAX */
  char own[JSON_SMALL_MAX];
};

void small_text_begin(struct small_text *t, size_t offset);

/* Begins a text that may have more than JSON_SMALL_MAX bytes: up to `most`, in memory of the arena.
 */
void small_text_begin_long(struct small_text *t, size_t offset, size_t most, struct arena *a);

/* As json_skim_feed; also overloaded, out-of-memory. Stops where the text is lost, so that an error
 * about it is at the same byte however the body is cut. */
size_t small_text_feed(struct small_text *t, const char *text, size_t length, size_t offset,
                       bool *complete, struct error *e);

/* Parses a value of at most JSON_SMALL_MAX bytes, which is at `offset` of the body and whose JSON
 * Pointer is `pointer`. Returns NULL with an error. */
json_t *json_small_parse(const char *text, size_t length, size_t offset, const char *pointer,
                         struct error *e);

/* Parses a value of any length. Meanwhile its reserve is charged to the budget of `beside`, in
 * addition to the memory that this arena has. */
json_t *json_small_parse_long(const char *text, size_t length, size_t offset, const char *pointer,
                              const struct arena *beside, struct error *e);

/* Returns whether the value is this string. */
bool json_small_is_text(const json_t *value, const char *text);

#endif
