/* subword: the pieces that words are made of, and how a word is cut into them: the "model" of a
 * tokenizer.json. It is of one of four kinds: WordPiece, BPE, Unigram, WordLevel.
 *
 * Immutable; any number of threads may cut words with it at once. */
#ifndef CONFIG_SUBWORD_H
#define CONFIG_SUBWORD_H

#include <jansson.h>

#include "config/tokenizer/model/tokens.h"
#include "config/tokenizer/model/vocabulary.h"
#include "config/tokenizer/sentencepiece/sentencepiece.h"
#include "core/base/patience.h"

struct subword_model;

/* From a "model", an object. If `raw`, words are bytes, although the file writes pieces with a
 * character for each byte (byte_level.h). NULL with STATUS_CONFIG that names the member at fault,
 * or STATUS_OUT_OF_MEMORY. */
struct subword_model *subword_new(const json_t *json, bool raw, struct error *e);

/* From a model of sentencepiece, with exactly its tokens. `id` has the id of each piece, or is
 * NULL: their places. `vocabulary`, an object, has all pieces with their ids; NULL: the model's
 * own. NULL with STATUS_CONFIG that names the piece at fault, or STATUS_OUT_OF_MEMORY. */
struct subword_model *subword_new_sentence(const struct sentencepiece *s, const int32_t *id,
                                           const json_t *vocabulary, struct error *e);
void subword_free(struct subword_model *m);          /* NULL is fine */
size_t subword_bytes(const struct subword_model *m); /* of memory */

/* "WordPiece", ... */
const char *subword_kind(const struct subword_model *m);

/* Its pieces: of a raw model as bytes, except those that are .apart. */
const struct vocabulary *subword_vocabulary(const struct subword_model *m);

/* The id of a piece as the file writes it; -1: none. */
int32_t subword_find(const struct subword_model *m, const char *text, size_t length);

/* The token of what no piece has; -1: none. */
int32_t subword_unknown(const struct subword_model *m);

/* Do pieces that continue a word begin with an affix, such as "##"? */
bool subword_has_inside(const struct subword_model *m);

/* Memory for one word after the other, and where their tokens go. */
struct subword_work {
  struct tokens *out; /* with the error */
  void *scratch;      /* [room] bytes in the arena of `out` */
  size_t room;
  struct patience *patience; /* of the caller; or NULL */
  size_t steps;              /* since it was asked last */
};

/* Appends the tokens of a word, which begins at byte `at` of its text. Returns the status of the
 * list's error: no memory, STATUS_INVALID_REQUEST for a character that no piece has if there is no
 * unknown token, or the caller's patience has ended. */
enum status subword_tokenize(const struct subword_model *m, const char *word, size_t length,
                             size_t at, struct subword_work *w);

#endif
