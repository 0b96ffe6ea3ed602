/* dialect: an endpoint of another service's API: its fields, the request of our own that they make,
 * and the format of its response. Each dialect is one constant of its own file, and the row of its
 * route names it. All functions get their memory from the arena of what was read, and
 * leave an error in its `e`, too. */
#ifndef SERVER_DIALECT_H
#define SERVER_DIALECT_H

#include "server/answer/answer.h"
#include "server/dialect/dialect_fields.h"
#include "server/dialect/dialect_stack.h"
#include "server/model/answer/stack_stream.h"
#include "server/tokenize/tokenize_body.h"

struct dialect {
  const struct contract *contract;
  struct dialect_values defaults;

  /* The bytes of values that begin with struct dialect_values and have more members, and what sets
   * the defaults of these members; 0 and NULL: there are no more members. */
  size_t values_bytes;
  void (*init)(void *values, struct arena *a);

  void (*done)(void *values); /* frees what is not the arena's, at the end; NULL: nothing */

  /* Sets the model's fields by those that were read, and checks them: dialect_stack_check makes
   * `out`. */
  enum status (*ask)(struct dialect_stack *s, const struct contract_reading *read,
                     struct stack_request *out);

  /* Plans the response, from the model of this name, to a request whose run is prepared. Fails as
   * answer_plan does. */
  enum status (*answer)(struct answer *a, const struct contract_reading *read, const char *model,
                        const struct stack_request *r, size_t max_bytes);

  /* The same for a streamed response; NULL: the dialect does not stream. */
  enum status (*stream)(struct stack_stream *s, const struct contract_reading *read,
                        const char *model, const struct stack_request *r);

  /* Instead of these three, for a dialect that needs only a tokenizer: makes tokens of texts, or
   * texts of tokens; and plans the response. Else NULL. */
  enum status (*tokenize)(const struct contract_reading *read, const struct whole *w,
                          const struct body_limits *limits, struct tokenize_request *out);
  enum status (*answer_tokenized)(struct answer *a, const struct contract_reading *read,
                                  const struct tokenize_request *r, size_t max_bytes);
};

/* OpenAI's POST /v1/embeddings: a vector for each text, or each list of tokens; POST
 * /v1/completions: text that follows prompts, at once or as a stream; and POST
 * /v1/chat/completions: the next message of a conversation. */
extern const struct dialect embeddings, completions, chat_completions;

/* POST /v1/rerank of Jina, Cohere and vLLM: the documents that fit a query, the best first; and
 * Cohere's POST /v1/embed and /v2/embed: a vector for each text. */
extern const struct dialect rerank, cohere_embed, cohere_embed_v2;

/* Hugging Face's text-embeddings-inference. */
extern const struct dialect tei_embed, tei_embed_all, tei_embed_sparse, tei_similarity, tei_rerank,
    tei_predict, tei_tokenize, tei_decode;

#endif
