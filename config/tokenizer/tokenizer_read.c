/* tokenizer_read: makes a tokenizer of a document such as tokenizer.json. */
#include <stdlib.h>
#include <string.h>

#include "config/document/member.h"
#include "config/document/text.h"
#include "config/tokenizer/tokenizer_parts.h"

/* A member that is there; NULL: it is absent or null. */
static const json_t *member(const json_t *json, const char *key) {
  const json_t *value = json_object_get(json, key);
  return json_is_null(value) ? NULL : value;
}

/* Batches are not padded here, whatever the file says. */
static enum status check_members(const json_t *json, struct error *e) {
  if (!json_is_object(json)) return error_set(e, STATUS_CONFIG, "is not an object");
  member_known(json,
               "version truncation padding normalizer pre_tokenizer post_processor decoder model "
               "added_tokens ",
               e);
  if (!member(json, "model")) error_set(e, STATUS_CONFIG, "model: is missing");
  return e->status;
}

/* --- truncation --- */

static enum status read_where(struct tokenizer *t, const json_t *json, struct error *e) {
  static const char *const names[] = {"LongestFirst", "OnlyFirst", "OnlySecond"};
  const json_t *value = member(json, "strategy");
  const char *name = json_string_value(value);
  if (!value) return STATUS_OK;
  for (size_t i = 0; name && i < sizeof names / sizeof *names; i++) {
    if (strcmp(name, names[i]) != 0) continue;
    t->where = (enum tokenizer_strategy)i;
    return STATUS_OK;
  }
  return error_set(e, STATUS_CONFIG, "strategy: needs LongestFirst, OnlyFirst or OnlySecond");
}

static enum status read_truncation(struct tokenizer *t, const json_t *json, struct error *e) {
  const json_t *most = member(json, "max_length"), *side = member(json, "direction");
  const char *name = json_string_value(side);
  if (!json) return STATUS_OK;
  member_known(json, "max_length direction strategy stride ", e);
  if (e->status) return e->status;
  if (!json_is_integer(most) || json_integer_value(most) < 0)
    return error_set(e, STATUS_CONFIG, "max_length: needs a number of tokens");
  if (side && (!name || (strcmp(name, "Left") != 0 && strcmp(name, "Right") != 0)))
    return error_set(e, STATUS_CONFIG, "direction: needs Left or Right");
  t->longest = (size_t)json_integer_value(most);
  t->left = name && *name == 'L';
  return read_where(t, json, e);
}

/* --- the parts --- */

/* Are the words of a text its bytes as they are? Then the pieces are read as bytes, too. */
static bool is_raw(const struct tokenizer *t, const json_t *model) {
  const char *type = json_string_value(member(model, "type"));
  const bool merges = type ? strcmp(type, "BPE") == 0 : member(model, "merges") != NULL;
  return merges && t->pretokenizer && pretokenizer_writes_bytes(t->pretokenizer);
}

static enum status read_lexicon(struct tokenizer *t, const json_t *model, struct error *e) {
  t->raw = is_raw(t, model);
  if (t->raw) pretokenizer_leave_bytes(t->pretokenizer);
  t->subword_model = subword_new(model, t->raw, e);
  return e->status;
}

/* The part of the file that is at fault stands before what is wrong with it. */
static enum status within(const char *key, enum status status, struct error *e) {
  return status == STATUS_CONFIG ? text_before(e, "%s: ", key) : status;
}

static enum status read_parts(struct tokenizer *t, const json_t *json, struct error *e) {
  const json_t *normal = member(json, "normalizer"), *split = member(json, "pre_tokenizer");
  if (normal) t->normalizer = normalizer_new(normal, e);
  if (e->status) return within("normalizer", e->status, e);
  if (split) t->pretokenizer = pretokenizer_new(split, e);
  if (e->status) return within("pre_tokenizer", e->status, e);
  if (read_lexicon(t, member(json, "model"), e)) return within("model", e->status, e);
  t->postprocessor = postprocessor_new(member(json, "post_processor"), e);
  if (e->status) return within("post_processor", e->status, e);
  t->decoder = decoder_new(member(json, "decoder"), e);
  if (e->status) return within("decoder", e->status, e);
  if (added_init(&t->added, member(json, "added_tokens"), t->normalizer, t->subword_model, e))
    return within("added_tokens", e->status, e);
  return within("truncation", read_truncation(t, member(json, "truncation"), e), e);
}

/* --- what they must agree in --- */

static enum status check_frame(const struct tokenizer *t, struct error *e) {
  const int64_t last = postprocessor_last(t->postprocessor);
  if (last < 0 || (uint64_t)last < tokenizer_size(t)) return STATUS_OK;
  return error_set(e, STATUS_CONFIG, "post_processor: the id %lld is outside the vocabulary of %zu",
                   (long long)last, tokenizer_size(t));
}

struct tokenizer *tokenizer_new(const json_t *json, struct error *e) {
  struct tokenizer *t = NULL;
  if (check_members(json, e) == STATUS_OK) {
    t = calloc(1, sizeof *t);
    if (!t) error_no_memory(e);
  }
  if (t && read_parts(t, json, e) == STATUS_OK && check_frame(t, e) == STATUS_OK) {
    tokenizer_find_longest(t);
    return t;
  }
  text_plain(e);
  tokenizer_free(t);
  return NULL;
}

void tokenizer_free(struct tokenizer *t) {
  if (!t) return;
  added_done(&t->added);
  normalizer_free(t->normalizer);
  pretokenizer_free(t->pretokenizer);
  subword_free(t->subword_model);
  postprocessor_free(t->postprocessor);
  decoder_free(t->decoder);
  free(t);
}
