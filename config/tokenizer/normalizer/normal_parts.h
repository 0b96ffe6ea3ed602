/* normal_parts: the kinds of steps that a normalizer has, and what they read of it. */
#ifndef CONFIG_NORMAL_PARTS_H
#define CONFIG_NORMAL_PARTS_H

#include "config/document/member.h"
#include "config/tokenizer/normalizer/passage.h"

/* A kind of step. What is made of its members is its own: freed by `release`, or by free. */
struct normal_kind {
  struct member_type type;
  void *(*read)(const json_t *json, struct error *e); /* NULL: it has no members */
  void (*apply)(const void *made, struct passage *p); /* to a text that is not empty */
  void (*release)(void *made);
};

extern const struct normal_kind normal_kind_bert, normal_kind_bert_old, normal_kind_nfc,
    normal_kind_nfd, normal_kind_nfkc, normal_kind_nfkd, normal_kind_strip,
    normal_kind_strip_accents, normal_kind_nmt, normal_kind_lowercase, normal_kind_prepend,
    normal_kind_byte_level, normal_kind_replace, normal_kind_precompiled;

/* Cleared memory for what is made of a step's members. */
void *normal_make(size_t size, struct error *e);

#endif
