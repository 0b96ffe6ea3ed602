/* tokenize_answer: the response to a request that needs only the tokenizer, and the sections with
 * tokens in any response. */
#ifndef SERVER_TOKENIZE_ANSWER_H
#define SERVER_TOKENIZE_ANSWER_H

#include "server/answer/answer.h"
#include "server/tokenize/tokenize_body.h"

enum { TOKENIZE_SECTIONS = 4 };

/* A byte of a text, and the number of characters before it. */
struct tokenize_offset {
  size_t byte, character;
};

/* Moves to a byte of the text and returns the number of characters before it. The first offset is
 * all 0. */
int64_t tokenize_offset_move(const char *text, struct tokenize_offset *p, size_t byte);

/* Writes the sections of tokenized texts: `tokens`, their `strings`, and their `offsets` into the
 * texts, in characters and in bytes. Each has a list for each text, or only one for a single text.
 * Returns the status of `e`: no memory. */
enum status tokenize_answer_sections(const struct tokenize_texts *d, struct answer_section *section,
                                     struct arena *a, struct error *e);

/* Writes the texts as a JSON value. Returns NULL with an error: no memory, or too large. */
const char *tokenize_answer_texts(const struct tokenize_request *r, struct arena *a,
                                  struct error *e);

/* Plans the response, in JSON, of the model with this name. Fails as answer_plan does. */
enum status tokenize_answer_plan(struct answer *a, const char *model,
                                 const struct tokenize_request *r, size_t max_bytes,
                                 struct arena *arena, struct error *e);

/* Plans the response with a rendered prompt: its `text` and `tokens`. */
enum status render_answer_plan(struct answer *a, const char *model,
                               const struct tokenize_request *r, size_t max_bytes,
                               struct arena *arena, struct error *e);

#endif
