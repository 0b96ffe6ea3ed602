/* answer: results as the bytes of a response, in pieces.
 *
 * The content is a list of sections, made by the request's contract. The pieces are planned before
 * anything is computed, with memory for their longest text, so that workers write them in any
 * order, in parallel, without allocating. */
#ifndef SERVER_ANSWER_H
#define SERVER_ANSWER_H

#include <stdatomic.h>
#include <sys/uio.h>

#include "core/base/arena.h"
#include "core/base/spare.h"
#include "server/answer/answer_section.h"

/* libmicrohttpd keeps the list of pieces in a connection's memory, which is small, and aborts if it
 * does not fit. */
enum { ANSWER_PIECES_MAX = 256 };

/* The format of a response. JSON has arrays of floats as text, or as base64 if the content says so;
 * safetensors needs rectangular or padded sections; v2 is JSON, followed by its binary sections. */
enum answer_form { ANSWER_JSON, ANSWER_SAFETENSORS, ANSWER_V2 };

/* The content of a response. Lives as long as the response. */
struct answer_content {
  const char *model; /* the model's name, which needs no escaping; NULL: JSON has no "model" */
  const char *id;    /* ANSWER_V2: a JSON string with its quotes; NULL: none */
  size_t id_length;  /* bytes of the id */
  const size_t
      *rows;      /* a number written before the sections, read after the computation; or NULL */
  bool unbatched; /* the first dimension of a batch is omitted */
  bool base64;    /* arrays of floats as base64 */
  bool alone;     /* the JSON is the value of the only section, which has no name */
  const char *labels; /* names of the classes, a JSON list, for safetensors' metadata; or NULL */
  bool has_usage;     /* `usage` follows the sections, or is in safetensors' metadata */
  struct answer_usage usage;
  struct spare left; /* memory that is free after the computation */
  size_t sections;
  struct answer_section *section; /* [sections] in the order to be sent; groups are contiguous */
};

struct answer {
  enum answer_form form;
  size_t pieces;
  struct iovec *piece;      /* [pieces]: length set by answer_write_piece */
  atomic_size_t json_bytes; /* ANSWER_V2 with binary sections: bytes of the JSON before them; else
                               0. Valid when all pieces are written */
  struct answer_plan *plan;
};

/* Returns the most bytes that all numbers of the content take in this form, without brackets and
 * names; SIZE_MAX: more than can be counted. The sections need their sizes, but no data: the run
 * need not be prepared. */
size_t answer_count(const struct answer_content *content, enum answer_form form);

/* Fails with STATUS_TOO_LARGE: the response may need `bytes`, or, if that is SIZE_MAX, more than
 * the limit. */
enum status answer_refuse_size(size_t bytes, size_t most, struct error *e);

/* Cuts the response into pieces; their memory is content->left and the arena's. Returns the status
 * of `e`: STATUS_TOO_LARGE (limit max_answer_bytes) if the longest possible text exceeds the limit.
 * ANSWER_SAFETENSORS and ANSWER_V2 require sections that are alike or padded. Some pieces may be
 * the results themselves, where they are computed. */
enum status answer_plan(struct answer *a, enum answer_form form, struct answer_content *content,
                        size_t max_bytes, struct arena *arena, struct error *e);

/* Writes piece `i`, after the computation. Cannot fail; any thread. */
void answer_write_piece(struct answer *a, size_t i);

size_t answer_bytes(const struct answer *a); /* the sum of the pieces' lengths */

#endif
