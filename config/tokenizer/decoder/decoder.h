/* decoder: text of the pieces of tokens: the "decoder" of a tokenizer.json.
 *
 * Immutable; any number of threads may use it at once. */
#ifndef CONFIG_DECODER_H
#define CONFIG_DECODER_H

#include <jansson.h>

#include "config/tokenizer/sentencepiece/sentencepiece.h"
#include "core/base/arena.h"

struct token_decoder;

/* From a "decoder", an object, or NULL or null: pieces with blanks between them. NULL with
 * STATUS_CONFIG that names the type or member at fault and lists what is supported, or
 * STATUS_OUT_OF_MEMORY. */
struct token_decoder *decoder_new(const json_t *json, struct error *e);

/* As sentencepiece decodes with this model. NULL: no memory. */
struct token_decoder *decoder_new_sentence(const struct sentencepiece *s, struct error *e);
void decoder_free(struct token_decoder *d); /* NULL is fine */

/* Whether it reads each character of a piece as a byte ("ByteLevel"), and does nothing else. */
bool decoder_reads_bytes(const struct token_decoder *d);

struct decoder_piece {
  const char *bytes; /* well-formed UTF-8, unless they are raw */
  size_t length;
  bool raw; /* bytes already, where decoder_reads_bytes */
};

/* Whether later pieces leave the text of earlier ones as it is, except an unfinished character and
 * what decoder_leaves_open says. Then a text may be decoded from any piece on whose own text is not
 * empty: what follows that piece's text is the same as in the full text. */
bool decoder_is_steady(const struct token_decoder *d);

/* The byte that a piece such as <0x61> stands for, if the decoder reads such pieces; else -1. */
int decoder_byte(const struct token_decoder *d, const struct decoder_piece *piece);

/* Whether the next piece may change the text of this one, which is a byte of a character. */
bool decoder_leaves_open(const struct token_decoder *d, const struct decoder_piece *piece);

/* The most bytes of text that a piece of `piece` bytes becomes; SIZE_MAX: there is no bound. */
size_t decoder_room(const struct token_decoder *d, size_t piece);

/* Text in an arena. */
struct decoder_text {
  char *bytes; /* may be NULL if there are none */
  size_t length;
  bool open; /* a U+FFFD at its end stands for bytes that may still become a character */
};
#define DECODER_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD, for bytes that are no character */

/* The text of `count` pieces, joined: well-formed UTF-8, with U+FFFD for ill-formed bytes. Returns
 * the status of `e`: no memory, or a pattern that takes too long on this text. */
enum status decoder_decode(const struct token_decoder *d, const struct decoder_piece *piece,
                           size_t count, struct arena *a, struct decoder_text *out,
                           struct error *e);

#endif
