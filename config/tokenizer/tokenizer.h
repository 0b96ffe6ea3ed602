/* tokenizer: from text to tokens and back, as the tokenizer.json of a model says it.
 *
 * A text goes through these rooms: tokens that stand in it as they are (added), what is done to it
 * (normal), how it is cut into words (split), what these are made of (subword_model), what stands
 * around them (frame); and tokens back to text: their pieces put together (spell).
 *
 * Immutable once it is loaded; any number of threads may use it at once, without a lock. */
#ifndef CONFIG_TOKENIZER_H
#define CONFIG_TOKENIZER_H

#include "config/tokenizer/decoder/decoder.h"
#include "config/tokenizer/model/subword.h"
#include "config/tokenizer/normalizer/passage.h"

struct tokenizer;

/* Of a document such as tokenizer.json. NULL with STATUS_CONFIG that names the member at fault, or
 * STATUS_OUT_OF_MEMORY. */
struct tokenizer *tokenizer_new(const json_t *json, struct error *e);
void tokenizer_free(struct tokenizer *t); /* NULL is fine */

const char *tokenizer_kind(const struct tokenizer *t); /* "BPE", ... */
size_t tokenizer_size(const struct tokenizer *t);      /* above all ids */
size_t tokenizer_bytes(const struct tokenizer *t);     /* of memory, about */

/* Tokens that the file cuts texts to; 0: it does not say. */
size_t tokenizer_truncation(const struct tokenizer *t);

/* How many tokens are put around a text, or two. */
size_t tokenizer_special_count(const struct tokenizer *t, bool pair);

/* --- to tokens --- */

struct tokenizer_text {
  const char *bytes; /* UTF-8 */
  size_t length;
};

struct tokenizer_options {
  bool special;     /* the tokens that stand around texts are put there */
  bool traced;      /* which bytes of a text each token came from is wanted */
  bool first_again; /* the first text of a pair is that of the call before, with the same work: it
                       is not cut again */
  size_t longest; /* tokens that a text, or a pair, is cut to, those around it included; 0: as many
                     as there are */
  struct patience *patience; /* of who waits; or NULL */
};

/* Memory for one text after the other: an arena's. */
struct tokenizer_work {
  struct passage whole, part; /* a text; what is between its added tokens */
  struct subword_work word;
  struct tokens text[2]; /* without what stands around them */
  size_t steps;          /* so far: how long it takes, about */
};

void tokenizer_work_init(struct tokenizer_work *w, struct arena *a, struct error *e);

/* Appends the tokens of a text, or of a pair of texts, to `out`. Returns the status that the work's
 * error holds: no memory, a text that is too long or takes a pattern too long, a character that the
 * tokenizer has no token for, or who waits has ceased to. */
enum status tokenizer_encode(const struct tokenizer *t, struct tokenizer_work *w,
                             const struct tokenizer_text *text, size_t texts,
                             const struct tokenizer_options *ask, struct tokens *out);

/* --- to text --- */

/* The piece of a token as the file writes it, in the arena where it is not as it is; .bytes NULL:
 * no token has this id, or there is no memory, with an error. */
struct tokenizer_text tokenizer_piece(const struct tokenizer *t, int64_t id, struct arena *a,
                                      struct error *e);

/* Bytes of that, at most. */
size_t tokenizer_piece_room(const struct tokenizer *t, int64_t id);

bool tokenizer_is_special(const struct tokenizer *t, int64_t id);

/* Is it a token, and no special one? */
bool tokenizer_has_text(const struct tokenizer *t, int64_t id);

/* The text of tokens, without the special ones if `bare`. An id that no token has is passed over.
 */
enum status tokenizer_decode(const struct tokenizer *t, const int32_t *id, size_t count, bool bare,
                             struct arena *a, struct decoder_text *out, struct error *e);

/* Is what the token adds to a text the same wherever it stands: bytes, maybe of a character that is
 * not whole? Then these, in the arena. False, too: there is no memory, with an error. */
bool tokenizer_bytes_of(const struct tokenizer *t, int64_t id, struct arena *a,
                        struct tokenizer_text *out, struct error *e);

/* See decoder_is_steady. */
bool tokenizer_is_steady(const struct tokenizer *t);

/* The number of tokens at the end whose text may still change (decoder_leaves_open). Special
 * tokens between them count, though they have no text. */
size_t tokenizer_count_open(const struct tokenizer *t, const int32_t *id, size_t count);

/* A bound on the bytes of every piece, as tokenizer_piece returns them. */
size_t tokenizer_piece_max(const struct tokenizer *t);

/* The most bytes that a token adds to a text; SIZE_MAX: there is no bound. */
size_t tokenizer_text_max(const struct tokenizer *t);

#endif
