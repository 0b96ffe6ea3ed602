/* pattern: regular expressions in the syntax of tokenizers (Oniguruma's), and plain texts to search
 * for; the only caller of PCRE2.
 *
 * Immutable; any number of threads may search with it at once, each with a search of its own. The
 * time of all searches for one request together is limited, so that no text can stop a thread: some
 * tenths of a second, and half a microsecond for each byte. */
#ifndef CONFIG_PATTERN_H
#define CONFIG_PATTERN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/patience.h"
#include "core/base/status.h"

struct pattern;

/* From {"String": text} or {"Regex": expression}. NULL with STATUS_CONFIG that says what is wrong,
 * and where in the expression; or STATUS_OUT_OF_MEMORY. */
struct pattern *pattern_new(const json_t *json, struct error *e);

/* From an expression alone. */
struct pattern *pattern_of(const char *expression, struct error *e);
void pattern_free(struct pattern *p); /* NULL is fine */

/* The time of searches in several texts: all zero at first. */
struct pattern_watch {
  uint64_t took, may;        /* nanoseconds, and their limit */
  bool by_processor;         /* whether the thread's processor time counts, not the clock's */
  struct patience *patience; /* of the caller; or NULL */
};

struct pattern_search {
  const struct pattern *pattern;
  struct pattern_watch *watch, own;
  const char *text;
  size_t length, at; /* where the search continues */
  size_t begin, end; /* the last match */
  bool found;        /* whether there was a match in this text */
  void *match;       /* the library's state; NULL for a plain text */
};

/* Returns the status of `e`: STATUS_OUT_OF_MEMORY, or STATUS_OK: then pattern_search_end must
 * follow. Searches of the same thread may share a watch; NULL: this one has its own. */
enum status pattern_search_begin(struct pattern_search *s, const struct pattern *p,
                                 struct pattern_watch *watch, const char *text, size_t length,
                                 struct error *e);

/* Begins with another text; allocates nothing. */
void pattern_search_text(struct pattern_search *s, const char *text, size_t length);

/* Finds the next match, which may be empty, but not where the last one ended; false: there is none,
 * or it failed, as `e` says (STATUS_INVALID_REQUEST if the text takes too long). */
bool pattern_search_next(struct pattern_search *s, struct error *e);
void pattern_search_end(struct pattern_search *s);

#endif
