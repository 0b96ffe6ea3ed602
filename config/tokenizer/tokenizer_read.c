/* tokenizer_read: makes a tokenizer from a document such as tokenizer.json. */
#include <stdlib.h>
#include <string.h>

#include "config/document/member.h"
#include "config/document/text.h"
#include "config/tokenizer/model/byte_level.h"
#include "config/tokenizer/tokenizer_parts.h"
#include "core/base/size.h"

const char *tokenizer_kind(const struct tokenizer *t) { return subword_kind(t->subword_model); }

size_t tokenizer_size(const struct tokenizer *t) {
  return size_max(subword_vocabulary(t->subword_model)->size, t->added.ids);
}

size_t tokenizer_bytes(const struct tokenizer *t) {
  return sizeof *t + subword_bytes(t->subword_model) + added_bytes(&t->added);
}

size_t tokenizer_truncation(const struct tokenizer *t) { return t->truncation; }

void tokenizer_leave_bare(struct tokenizer *t) { t->bare = true; }

size_t tokenizer_special_count(const struct tokenizer *t, bool pair) {
  return t->bare ? 0 : postprocessor_count(t->postprocessor, pair);
}

/* --- parts --- */

/* A member; NULL: it is absent or null. */
static const json_t *member(const json_t *json, const char *key) {
  const json_t *value = json_object_get(json, key);
  return json_is_null(value) ? NULL : value;
}

static enum status read_truncation(struct tokenizer *t, const json_t *json, struct error *e) {
  static const char *const names[] = {"LongestFirst", "OnlyFirst", "OnlySecond"};
  enum { NAMES = sizeof names / sizeof *names };
  const json_t *most = member(json, "max_length"), *side = member(json, "direction"),
               *strategy = member(json, "strategy");
  const char *direction = json_string_value(side), *name = json_string_value(strategy);
  size_t which = 0;
  if (!json) return STATUS_OK;
  member_known(json, "max_length direction strategy stride ", e);
  if (e->status) return e->status;
  if (!json_is_integer(most) || json_integer_value(most) < 0)
    return error_set(e, STATUS_CONFIG, "max_length: needs a number of tokens");
  if (side && (!direction || (strcmp(direction, "Left") != 0 && strcmp(direction, "Right") != 0)))
    return error_set(e, STATUS_CONFIG, "direction: needs Left or Right");
  while (strategy && which < NAMES && !(name && strcmp(name, names[which]) == 0)) which++;
  if (which == NAMES)
    return error_set(e, STATUS_CONFIG, "strategy: needs LongestFirst, OnlyFirst or OnlySecond");
  t->truncation = (size_t)json_integer_value(most);
  t->left = direction && *direction == 'L';
  t->strategy = (enum tokenizer_strategy)which;
  return STATUS_OK;
}

/* Puts the part of the file before a mistake in it. */
static enum status within(const char *key, enum status status, struct error *e) {
  return status == STATUS_CONFIG ? text_before(e, "%s: ", key) : status;
}

/* Reads the normalizer, the pre-tokenizer, the model and the decoder. */
static enum status read_parts(struct tokenizer *t, const json_t *json, struct error *e) {
  const json_t *normalizer = member(json, "normalizer"), *model = member(json, "model"),
               *pretokenizer = member(json, "pre_tokenizer");
  if (normalizer) t->normalizer = normalizer_new(normalizer, e);
  if (e->status) return within("normalizer", e->status, e);
  if (pretokenizer) t->pretokenizer = pretokenizer_new(pretokenizer, e);
  if (e->status) return within("pre_tokenizer", e->status, e);

  /* If the pre-tokenizer of a BPE writes bytes as characters, words stay bytes instead, and the
   * pieces are read as bytes. */
  const char *type = json_string_value(member(model, "type"));
  const bool bpe = type ? strcmp(type, "BPE") == 0 : member(model, "merges") != NULL;
  t->raw = bpe && t->pretokenizer && pretokenizer_writes_bytes(t->pretokenizer);
  if (t->raw) pretokenizer_leave_bytes(t->pretokenizer);
  t->subword_model = subword_new(model, t->raw, e);
  if (e->status) return within("model", e->status, e);
  t->decoder = decoder_new(member(json, "decoder"), e);
  return within("decoder", e->status, e);
}

/* The same from a model of sentencepiece. */
static enum status read_sentence(struct tokenizer *t, const struct tokenizer_sentence *s,
                                 struct error *e) {
  t->normalizer = normalizer_new(member(s->json, "normalizer"), e);
  if (e->status || normalizer_add_sentence(t->normalizer, s->model, s->first, e)) return e->status;
  t->subword_model = subword_new_sentence(s->model, s->id, s->vocabulary, e);
  if (!t->subword_model) return e->status;
  t->decoder = decoder_new_sentence(s->target ? s->target : s->model, e);
  return e->status;
}

/* Reads what is around the words. */
static enum status read_rest(struct tokenizer *t, const json_t *json, bool searched,
                             struct error *e) {
  t->postprocessor = postprocessor_new(member(json, "post_processor"), e);
  if (e->status) return within("post_processor", e->status, e);
  if (added_init(&t->added, member(json, "added_tokens"), t->normalizer, t->subword_model, searched,
                 e))
    return within("added_tokens", e->status, e);
  if (read_truncation(t, member(json, "truncation"), e)) return within("truncation", e->status, e);

  const int64_t last = postprocessor_last(t->postprocessor);
  if (last < 0 || (uint64_t)last < tokenizer_size(t)) return STATUS_OK;
  return error_set(e, STATUS_CONFIG, "post_processor: the id %lld is outside the vocabulary of %zu",
                   (long long)last, tokenizer_size(t));
}

/* The tokenizer whose parts were read, unless that has failed. */
static struct tokenizer *complete(struct tokenizer *t, struct error *e) {
  if (e->status) {
    text_plain(e);
    tokenizer_free(t);
    return NULL;
  }
  size_t longest = 0;
  for (int64_t id = 0; (size_t)id < tokenizer_size(t); id++) {
    struct decoder_piece piece;
    if (!tokenizer_find_piece(t, id, true, &piece)) continue;
    /* A decoder that only reads bytes gets them; any other gets the characters of the file. */
    const bool written = piece.raw && !decoder_reads_bytes(t->decoder);
    longest = size_max(longest, piece.length * (written ? BYTE_LEVEL_BYTES_MAX : 1));
    t->piece_max = size_max(t->piece_max, tokenizer_piece_room(t, id));
  }
  t->text_max = decoder_room(t->decoder, longest);
  return t;
}

static struct tokenizer *allocate(struct error *e) {
  struct tokenizer *t = e->status ? NULL : calloc(1, sizeof *t);
  if (!t && !e->status) error_no_memory(e);
  return t;
}

struct tokenizer *tokenizer_new(const json_t *json, struct error *e) {
  if (!json_is_object(json)) {
    error_set(e, STATUS_CONFIG, "is not an object");
  } else { /* "padding" is ignored: texts of a batch are not padded */
    member_known(json,
                 "version truncation padding normalizer pre_tokenizer post_processor decoder model "
                 "added_tokens ",
                 e);
    if (!member(json, "model")) error_set(e, STATUS_CONFIG, "model: is missing");
  }
  struct tokenizer *t = allocate(e);
  if (t && read_parts(t, json, e) == STATUS_OK) read_rest(t, json, true, e);
  return complete(t, e);
}

struct tokenizer *tokenizer_new_sentence(const struct tokenizer_sentence *s, struct error *e) {
  struct tokenizer *t = allocate(e);
  if (t && read_sentence(t, s, e) == STATUS_OK) read_rest(t, s->json, s->searched, e);
  return complete(t, e);
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
