/* normalizer_parts: the kinds of steps that a normalizer has, and what they read of it. */
#ifndef CONFIG_NORMALIZER_PARTS_H
#define CONFIG_NORMALIZER_PARTS_H

#include "config/document/member.h"
#include "config/tokenizer/normalizer/passage.h"

/* A kind of step. What is made of its members is its own: freed by `release`, or by free. */
struct normalizer_kind {
  struct member_type type;
  void *(*read)(const json_t *json, struct error *e); /* NULL: it has no members */
  void (*apply)(const void *made, struct passage *p); /* to a text that is not empty */
  void (*release)(void *made);
};

extern const struct normalizer_kind normalizer_kind_bert, normalizer_kind_bert_old,
    normalizer_kind_nfc, normalizer_kind_nfd, normalizer_kind_nfkc, normalizer_kind_nfkd,
    normalizer_kind_strip, normalizer_kind_strip_accents, normalizer_kind_nmt,
    normalizer_kind_lowercase, normalizer_kind_prepend, normalizer_kind_byte_level,
    normalizer_kind_replace, normalizer_kind_precompiled;

/* Cleared memory for what is made of a step's members. */
void *normalizer_make(size_t size, struct error *e);

#endif
