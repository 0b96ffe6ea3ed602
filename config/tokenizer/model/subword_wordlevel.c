/* subword_wordlevel: words that are pieces as they are. */
#include "config/tokenizer/model/subword_parts.h"

static enum status read(struct subword_model *l, const json_t *json, struct error *e) {
  if (subword_read_object(l, json, e)) return e->status;
  return subword_read_unknown(l, json, true, e);
}

static enum status cut(const struct subword_model *l, const char *word, size_t length, size_t at,
                       struct subword_work *w) {
  int32_t id = vocabulary_find(&l->vocabulary, word, length);
  if (id < 0) id = l->unknown;
  if (id < 0) return subword_refuse(w, word, length, at);
  subword_append(w, id, at, at + length);
  return w->out->e->status;
}

const struct subword_kind subword_wordlevel = {{"WordLevel", "vocab unk_token "}, read, cut};
