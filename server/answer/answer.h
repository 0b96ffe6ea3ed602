/* answer: the result of a call as the bytes of an answer, in pieces.
 *
 * The pieces are planned before the call is computed, with memory for their longest text, so that
 * workers can write them in any order, in parallel, without allocating. */
#ifndef SERVER_ANSWER_H
#define SERVER_ANSWER_H

#include <stdatomic.h>
#include <sys/uio.h>

#include "config/model/model.h"
#include "core/attention/call.h"
#include "server/attention/attention_body.h"

/* libmicrohttpd keeps the list of them in a connection's memory, which is small, and aborts where
 * it does not fit. */
enum { ANSWER_PIECES_MAX = 256 };

/* How an answer is written. JSON has arrays of floats as text, or as base64 where the request says
 * so; safetensors is for what is rectangular, and not for measures; an answer of v2 is JSON, and
 * the outputs that were asked for in binary lie behind it. */
enum answer_form { ANSWER_JSON, ANSWER_SAFETENSORS, ANSWER_V2 };

struct answer {
  enum answer_form form;
  size_t pieces;
  struct iovec *piece;      /* [pieces]: length set by answer_write_piece */
  atomic_size_t json_bytes; /* ANSWER_V2 with binary data: of the JSON in front of them; else 0.
                               Valid once all pieces are written */
  struct answer_plan *plan;
};

/* Cuts the answer into pieces and takes their memory from what the call leaves once it is computed,
 * and from the arena. STATUS_TOO_LARGE (limit max_answer_bytes) if its longest text is over the
 * limit. The call is prepared. ANSWER_SAFETENSORS is for what attention_request_has_binary,
 * ANSWER_V2 for items that agree in their shape. Some pieces may be the results themselves, where
 * they are computed. */
enum status answer_plan(struct answer *a, enum answer_form form, const struct model *m,
                        const struct attention_request *d, const struct body_limits *limits,
                        struct arena *arena, struct error *e);

/* Writes piece `i` once the call is computed. Cannot fail; any thread. */
void answer_write_piece(struct answer *a, size_t i);

size_t answer_bytes(const struct answer *a); /* the sum of the pieces' lengths */

#endif
