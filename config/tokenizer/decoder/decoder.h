/* decoder: from the pieces of tokens to text: the "decoder" of a tokenizer.json.
 *
 * Immutable; any number of threads may use it at once. */
#ifndef CONFIG_DECODER_H
#define CONFIG_DECODER_H

#include <jansson.h>

#include "core/base/arena.h"

struct token_decoder;

/* Of a "decoder", an object, or NULL or null: pieces with blanks between. NULL with STATUS_CONFIG
 * that names the type or member at fault and says what is known, or STATUS_OUT_OF_MEMORY. */
struct token_decoder *decoder_new(const json_t *json, struct error *e);
void decoder_free(struct token_decoder *s); /* NULL is fine */

/* Does it read each character of a piece as a byte ("ByteLevel"), and nothing else? */
bool decoder_reads_bytes(const struct token_decoder *s);

struct decoder_piece {
  const char *bytes; /* well-formed UTF-8, unless they are raw */
  size_t length;
  bool raw; /* bytes already, where decoder_reads_bytes */
};

/* Do later pieces leave the text of earlier ones as it is, but for an unfinished character and
 * for what decoder_leaves_open says? Then a text may be spelled from any piece on whose own text
 * is not empty: what follows that piece's text is the same as in the whole. */
bool decoder_is_steady(const struct token_decoder *s);

/* The byte that a piece is, which the vocabulary has no character for, where the decoder reads
 * such; -1: it is none. */
int decoder_byte(const struct token_decoder *s, const struct decoder_piece *piece);

/* May the piece that follows change the text of this one, which is a byte of a character? */
bool decoder_leaves_open(const struct token_decoder *s, const struct decoder_piece *piece);

/* The most bytes of text that a piece of so many bytes becomes; SIZE_MAX: there is no bound. */
size_t decoder_room(const struct token_decoder *s, size_t piece);

/* Text in an arena. */
struct decoder_text {
  char *bytes; /* may be NULL where there are none */
  size_t length;
  bool open; /* a U+FFFD at its end stands for bytes that more of them may make a character */
};
#define DECODER_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD, of bytes that are no character */

/* The text of so many pieces, one behind the other: well-formed UTF-8, where what is not becomes
 * U+FFFD. STATUS_OK, no memory, or a pattern that takes too long on this text. */
enum status decoder_decode(const struct token_decoder *s, const struct decoder_piece *piece,
                           size_t count, struct arena *a, struct decoder_text *out,
                           struct error *e);

#endif
