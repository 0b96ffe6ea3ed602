/* answer: results as the bytes of an answer, in pieces.
 *
 * What an answer says is its content: a list of sections, from the contract that was asked. The
 * pieces are planned before anything is computed, with memory for their longest text, so that
 * workers can write them in any order, in parallel, without allocating. */
#ifndef SERVER_ANSWER_H
#define SERVER_ANSWER_H

#include <stdatomic.h>
#include <sys/uio.h>

#include "core/base/arena.h"
#include "core/base/spare.h"
#include "server/answer/answer_section.h"

/* libmicrohttpd keeps the list of them in a connection's memory, which is small, and aborts where
 * it does not fit. */
enum { ANSWER_PIECES_MAX = 256 };

/* How an answer is written. JSON has arrays of floats as text, or as base64 where the content says
 * so; safetensors is for what is rectangular, or padded; an answer of v2 is JSON, and the sections
 * that are binary lie behind it. */
enum answer_form { ANSWER_JSON, ANSWER_SAFETENSORS, ANSWER_V2 };

/* What an answer says. Lives as long as the answer. */
struct answer_content {
  const char *model;  /* its name, which needs no escaping, in front; NULL: JSON without it there */
  const char *id;     /* ANSWER_V2: a JSON string with its quotes; NULL: none */
  size_t id_length;   /* of the id */
  const size_t *rows; /* a number in front of the sections, read once all is computed; or NULL */
  bool unbatched;     /* the first dimension of a batch is omitted */
  bool base64;        /* arrays of floats as base64 */
  bool alone;         /* JSON that is the value of its only section, which has no name */
  const char *labels; /* of classes, a list of strings as JSON, for the metadata of safetensors; or
                         NULL */
  bool has_usage;     /* `usage` stands behind the sections, or in the metadata of safetensors */
  struct answer_usage usage;
  struct spare left; /* memory that may be written to once all is computed */
  size_t sections;
  struct answer_section
      *section; /* [sections] in the order to be sent, those of a group together */
};

struct answer {
  enum answer_form form;
  size_t pieces;
  struct iovec *piece;      /* [pieces]: length set by answer_write_piece */
  atomic_size_t json_bytes; /* ANSWER_V2 with binary data: of the JSON in front of them; else 0.
                               Valid once all pieces are written */
  struct answer_plan *plan;
};

/* Says that the response may need `bytes`, or, where these cannot be counted, more than the limit.
 */
enum status answer_refuse_size(bool counted, size_t bytes, size_t most, struct error *e);

/* Cuts the answer into pieces and takes their memory from what the content leaves, and from the
 * arena. STATUS_TOO_LARGE (limit max_answer_bytes) if its longest text is over the limit.
 * ANSWER_SAFETENSORS and ANSWER_V2 are for sections that are alike or padded. Some pieces may be
 * the results themselves, where they are computed. */
enum status answer_plan(struct answer *a, enum answer_form form, struct answer_content *content,
                        size_t max_bytes, struct arena *arena, struct error *e);

/* Writes piece `i` once all is computed. Cannot fail; any thread. */
void answer_write_piece(struct answer *a, size_t i);

size_t answer_bytes(const struct answer *a); /* the sum of the pieces' lengths */

#endif
