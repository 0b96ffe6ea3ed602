/* tokenizer: text to tokens and back, as the tokenizer.json of a model defines it.
 *
 * A text passes these folders: added tokens are found (added), the text is changed (normalizer) and
 * cut into words (pretokenizer), words are cut into tokens (model), special tokens are added around
 * them (postprocessor). Tokens become text again in decoder.
 *
 * Immutable once it is loaded; any number of threads may use it at once, without a lock. */
#ifndef CONFIG_TOKENIZER_H
#define CONFIG_TOKENIZER_H

#include "config/tokenizer/decoder/decoder.h"
#include "config/tokenizer/model/subword.h"
#include "config/tokenizer/normalizer/passage.h"

struct tokenizer;

/* From a document such as tokenizer.json. NULL with STATUS_CONFIG that names the member at fault,
 * or STATUS_OUT_OF_MEMORY. */
struct tokenizer *tokenizer_new(const json_t *json, struct error *e);

/* A tokenizer of sentencepiece: its model, and what a model's family adds to it. */
struct tokenizer_sentence {
  const struct sentencepiece *model;
  const struct sentencepiece *target; /* decodes; NULL: the same */
  const int32_t *id;                  /* of each piece; NULL: its place */
  const json_t *vocabulary;           /* {"piece": id, ...}; NULL: the pieces of the model */
  bool first;    /* whether a blank is added only where a text begins, not after added tokens */
  bool searched; /* whether added tokens are found in texts */
  const json_t *json; /* "normalizer" (before the model's), "post_processor" and "added_tokens" as
                         in tokenizer.json, each may be absent */
};

/* With exactly the tokens of sentencepiece. NULL with STATUS_CONFIG or STATUS_OUT_OF_MEMORY. */
struct tokenizer *tokenizer_new_sentence(const struct tokenizer_sentence *s, struct error *e);
void tokenizer_free(struct tokenizer *t); /* NULL is fine */

const char *tokenizer_kind(const struct tokenizer *t); /* "BPE", ... */
size_t tokenizer_size(const struct tokenizer *t);      /* the largest id + 1 */
size_t tokenizer_bytes(const struct tokenizer *t);     /* of memory, estimated */

/* How many tokens the file truncates texts to; 0: it does not say. */
size_t tokenizer_truncation(const struct tokenizer *t);

/* From now on adds no special tokens, whatever is asked for. */
void tokenizer_leave_bare(struct tokenizer *t);

/* How many special tokens are added to a text, or to a pair of texts. */
size_t tokenizer_special_count(const struct tokenizer *t, bool pair);

/* --- to tokens --- */

struct tokenizer_text {
  const char *bytes; /* UTF-8 */
  size_t length;
};

struct tokenizer_options {
  bool special;     /* whether special tokens are added around the texts */
  bool traced;      /* whether each token's place in its text is recorded */
  bool first_again; /* whether the first text of a pair is the last call's, with the same work: its
                       tokens are reused */
  size_t longest;   /* tokens that a text or a pair is truncated to, special ones included; 0: it is
                       not truncated */
  struct patience *patience; /* of the caller; or NULL */
};

/* Memory for one text after the other, in an arena. */
struct tokenizer_work {
  struct passage whole, part; /* a text; a stretch between added tokens */
  struct subword_work word;
  struct tokens text[2]; /* tokens of each text, without the added special ones */
  size_t steps;          /* so far: about as many as it takes time */
};

void tokenizer_work_init(struct tokenizer_work *w, struct arena *a, struct error *e);

/* Appends the tokens of a text, or of a pair of texts, to `out`. Returns the status of the work's
 * error: no memory, a text that is too long or that a pattern takes too long for, a character that
 * has no token, or the caller's patience has ended. */
enum status tokenizer_encode(const struct tokenizer *t, struct tokenizer_work *w,
                             const struct tokenizer_text *text, size_t texts,
                             const struct tokenizer_options *options, struct tokens *out);

/* --- to text --- */

/* The piece of a token as the file writes it: the tokenizer's bytes, or bytes in the arena. .bytes
 * NULL: no token has this id, or no memory, as `e` says. */
struct tokenizer_text tokenizer_piece(const struct tokenizer *t, int64_t id, struct arena *a,
                                      struct error *e);

/* Writes that piece to `out`, which has tokenizer_piece_max bytes, and returns its length;
 * SIZE_MAX: no token has this id. */
size_t tokenizer_write_piece(const struct tokenizer *t, int64_t id, char *out);

/* The special token that stands for a masked one: "[MASK]" or "<mask>"; -1: there is none. */
int64_t tokenizer_mask(const struct tokenizer *t);

/* At least the bytes of that piece. */
size_t tokenizer_piece_room(const struct tokenizer *t, int64_t id);

bool tokenizer_is_special(const struct tokenizer *t, int64_t id);

/* Whether it is the token of what the vocabulary lacks. */
bool tokenizer_is_unknown(const struct tokenizer *t, int64_t id);

/* Whether the pieces that continue a word are marked, as "##" marks them. */
bool tokenizer_marks_inside(const struct tokenizer *t);

/* Whether the id is a token's, and not a special one's. */
bool tokenizer_has_text(const struct tokenizer *t, int64_t id);

/* The text of tokens, without the special ones if `bare`. Ids that no token has are ignored.
 * Returns the status of `e`, as decoder_decode. */
enum status tokenizer_decode(const struct tokenizer *t, const int32_t *id, size_t count, bool bare,
                             struct arena *a, struct decoder_text *out, struct error *e);

/* Whether a token adds the same bytes to every text, perhaps of an incomplete character; *out:
 * these, as tokenizer_piece. False also without memory, as `e` says. */
bool tokenizer_bytes_of(const struct tokenizer *t, int64_t id, struct arena *a,
                        struct tokenizer_text *out, struct error *e);

/* See decoder_is_steady. */
bool tokenizer_is_steady(const struct tokenizer *t);

/* How many tokens at the end have a text that may still change (decoder_leaves_open), including
 * special tokens between them. */
size_t tokenizer_count_open(const struct tokenizer *t, const int32_t *id, size_t count);

/* The most bytes of any piece that tokenizer_piece returns. */
size_t tokenizer_piece_max(const struct tokenizer *t);

/* The most bytes that a token adds to a text; SIZE_MAX: there is no bound. */
size_t tokenizer_text_max(const struct tokenizer *t);

#endif
