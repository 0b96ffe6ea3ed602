/* subword: the pieces that words are made of, and how a word is made of them: the "model" of
 * a tokenizer.json. It is one of four kinds: WordPiece, BPE, Unigram, WordLevel.
 *
 * Immutable; any number of threads may cut words with it at once. */
#ifndef CONFIG_SUBWORD_H
#define CONFIG_SUBWORD_H

#include <jansson.h>

#include "config/tokenizer/model/tokens.h"
#include "config/tokenizer/model/vocabulary.h"
#include "core/base/patience.h"

struct subword_model;

/* Of a "model", an object. Words come as bytes, as they are, although the pieces are written with a
 * character for each byte, if `raw`. NULL with STATUS_CONFIG that names the member at fault, or
 * STATUS_OUT_OF_MEMORY. */
struct subword_model *subword_new(const json_t *json, bool raw, struct error *e);
void subword_free(struct subword_model *l);          /* NULL is fine */
size_t subword_bytes(const struct subword_model *l); /* of memory */

/* "WordPiece", ... */
const char *subword_kind(const struct subword_model *l);

/* Its pieces; those of raw ones as bytes, but for those that stand apart. */
const struct vocabulary *subword_vocabulary(const struct subword_model *l);

/* The id of a piece as the file writes it; -1: it is none, or bytes cannot spell it. */
int32_t subword_find(const struct subword_model *l, const char *text, size_t length);

/* What words are cut into, and memory for it, which serves one word after the other. */
struct subword_work {
  struct tokens *out;        /* with the failure that there may be */
  void *scratch;             /* of the arena of `out` */
  size_t room;               /* bytes of it */
  struct patience *patience; /* of who waits for a word that takes long; or NULL */
  size_t steps;              /* since that was asked */
};

/* Appends the tokens of a word, which begins at byte `at` of its text. Returns the status that the
 * list's error holds: no memory, or STATUS_INVALID_REQUEST where the word has a character that the
 * pieces lack, and there is no token for unknown ones, or why who waits has ceased to. */
enum status subword_tokenize(const struct subword_model *l, const char *word, size_t length,
                             size_t at, struct subword_work *w);

#endif
