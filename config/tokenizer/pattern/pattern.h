/* pattern: regular expressions in the syntax of tokenizers (that of Oniguruma), and plain texts to
 * be found; the only caller of PCRE2.
 *
 * Immutable; any number of threads may search with it at once, each by a search of its own. How
 * long searches may take is limited, of all texts of a request together, so that no text can stop a
 * thread: some tenths of a second, and half a microsecond for each byte. */
#ifndef CONFIG_PATTERN_H
#define CONFIG_PATTERN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/patience.h"
#include "core/base/status.h"

struct pattern;

/* Of {"String": text} or {"Regex": expression}. NULL with STATUS_CONFIG that says what is wrong,
 * and where in the expression; or STATUS_OUT_OF_MEMORY. */
struct pattern *pattern_new(const json_t *json, struct error *e);

/* Of an expression of our own. */
struct pattern *pattern_of(const char *expression, struct error *e);
void pattern_free(struct pattern *p); /* NULL is fine */

/* What searches of several texts have taken, and may take: all zero at first. */
struct pattern_watch {
  uint64_t took, may;        /* nanoseconds */
  bool by_processor;         /* of the thread on a processor, not by the clock */
  struct patience *patience; /* of who waits; or NULL */
};

struct pattern_search {
  const struct pattern *pattern;
  struct pattern_watch *watch, own;
  const char *text;
  size_t length, at; /* where the search goes on */
  size_t begin, end; /* of what was found last */
  bool found;        /* anything in this text */
  void *match;       /* the library's */
};

/* STATUS_OUT_OF_MEMORY, or STATUS_OK: then pattern_search_end must follow. The watch is that of
 * other searches, too, by the same thread; NULL: this one has its own. */
enum status pattern_search_begin(struct pattern_search *s, const struct pattern *p,
                                 struct pattern_watch *watch, const char *text, size_t length,
                                 struct error *e);

/* Goes on with another text, which allocates nothing. */
void pattern_search_text(struct pattern_search *s, const char *text, size_t length);

/* Finds the next match, which may be empty, but not where the last one ended; false: there is none,
 * or it failed, and `e` says why (STATUS_INVALID_REQUEST where the text takes too long). */
bool pattern_search_next(struct pattern_search *s, struct error *e);
void pattern_search_end(struct pattern_search *s);

#endif
