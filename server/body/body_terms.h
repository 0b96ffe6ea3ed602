/* body_terms: what is known of a request before its body, and how much it may ask for. */
#ifndef SERVER_BODY_TERMS_H
#define SERVER_BODY_TERMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a request asks of a model: the answer of its attention, measures of its heads (of a whole
 * one that becomes body_terms.ablation); of a whole one what it makes of tokens, to which classes
 * they belong, how likely it holds them, or which come next; of its tokenizer the tokens of texts,
 * or the text of tokens. */
enum body_ask {
  ASK_ATTENTION,
  ASK_HEADS,
  ASK_ENCODE,
  ASK_CLASSIFY,
  ASK_SCORE,
  ASK_GENERATE,
  ASK_TOKENIZE,
  ASK_DETOKENIZE
};

/* Is it asked what becomes of rows, and not what follows them? */
static inline bool body_ask_encodes(enum body_ask ask) {
  return ask == ASK_ENCODE || ask == ASK_CLASSIFY;
}

/* Is it asked of the tokenizer alone? */
static inline bool body_ask_is_of_tokenizer(enum body_ask ask) {
  return ask == ASK_TOKENIZE || ask == ASK_DETOKENIZE;
}

/* In whose words a request is: in our own, or in those of another service. Where they are
 * another's, the model is named in the body. */
enum body_dialect {
  DIALECT_NONE,
  DIALECT_EMBEDDINGS,
  DIALECT_COMPLETIONS,
  DIALECT_RERANK,
  DIALECT_COHERE_EMBED,
  DIALECT_COHERE_EMBED_V2,
  DIALECT_TEI_EMBED, /* of text-embeddings-inference */
  DIALECT_TEI_RERANK,
  DIALECT_TEI_PREDICT,
  DIALECT_TEI_EMBED_ALL,
  DIALECT_TEI_SIMILARITY,
  DIALECT_TEI_TOKENIZE,
  DIALECT_TEI_DECODE
};

/* How a body is written. */
enum body_form { BODY_JSON, BODY_SAFETENSORS, BODY_V2 };

/* What the path and the header of a request say of its body and its answer. */
struct body_terms {
  enum body_ask ask;
  enum body_dialect dialect;
  enum body_form form;
  uint64_t body_bytes; /* as announced; BODY_UNKNOWN: they are not */
  uint64_t json_bytes; /* BODY_V2: of the JSON before the binary data; BODY_UNKNOWN: no such data */
  bool wants_binary;   /* the answer is wanted as safetensors, if it has that form */
  bool refuses_json;   /* and in no other form */
  bool ablation; /* of ASK_ENCODE and ASK_SCORE: not the answer itself, but what each head of the
                 model is worth to it */
};
#define BODY_UNKNOWN UINT64_MAX

struct body_limits {
  size_t max_items, max_pairs, max_answer_bytes, max_tokens, max_sequences, max_body_bytes;
};

#endif
