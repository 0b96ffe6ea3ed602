/* body_terms: the terms of a request that are known before its body, and its limits. */
#ifndef SERVER_BODY_TERMS_H
#define SERVER_BODY_TERMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/answer/answer.h"

/* The kind of a request. */
enum body_ask {
  ASK_ATTENTION, /* outputs of one attention layer */
  ASK_HEADS,     /* measures of its heads; for a whole model see body_terms.ablation */
  ASK_ENCODE,
  ASK_CLASSIFY,
  ASK_CLASSIFY_TOKENS,
  ASK_QUESTION,
  ASK_FILL,
  ASK_SCORE,
  ASK_GENERATE,
  ASK_TOKENIZE,
  ASK_DETOKENIZE,
  ASK_RENDER
};

/* Returns whether the response has scores of classes, or of the ends of spans. */
static inline bool body_ask_classifies(enum body_ask ask) {
  return ask == ASK_CLASSIFY || ask == ASK_CLASSIFY_TOKENS || ask == ASK_QUESTION;
}

/* Returns whether the request's rows alone go through a stack, and no predicted tokens. */
static inline bool body_ask_encodes(enum body_ask ask) {
  return ask == ASK_ENCODE || ask == ASK_FILL || body_ask_classifies(ask);
}

/* The format of a body. */
enum body_form { BODY_JSON, BODY_SAFETENSORS, BODY_V2 };

struct dialect;

/* Terms of a request, from its path and header. */
struct body_terms {
  enum body_ask ask;
  const struct dialect *dialect; /* the API of another service, where the body names the model;
                                    NULL: our own */
  enum body_form form;
  uint64_t body_bytes; /* announced bytes; BODY_UNKNOWN: not announced */
  uint64_t
      json_bytes;    /* BODY_V2: bytes of the JSON before binary data; BODY_UNKNOWN: no such data */
  bool wants_binary; /* safetensors is accepted and preferred, if the response can be that */
  bool refuses_json; /* JSON is not accepted */
  bool ablation;     /* ASK_ENCODE, ASK_SCORE: the importance of each head for the response */
};
#define BODY_UNKNOWN UINT64_MAX

/* The format of the response. Without `has_binary` it cannot be safetensors. */
static inline enum answer_form body_terms_answer(const struct body_terms *t, bool has_binary) {
  if (t->form == BODY_V2) return ANSWER_V2;
  return t->wants_binary && has_binary ? ANSWER_SAFETENSORS : ANSWER_JSON;
}

struct body_limits {
  size_t max_items, max_pairs, max_answer_bytes, max_tokens, max_sequences, max_body_bytes;
};

#endif
