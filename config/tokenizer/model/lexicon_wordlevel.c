/* lexicon_wordlevel: words that are pieces as they are. */
#include "config/tokenizer/model/lexicon_parts.h"

static enum status read(struct lexicon *l, const json_t *json, struct error *e) {
  if (lexicon_read_object(l, json, e)) return e->status;
  return lexicon_read_unknown(l, json, true, e);
}

static enum status cut(const struct lexicon *l, const char *word, size_t length, size_t at,
                       struct lexicon_work *w) {
  int32_t id = vocabulary_find(&l->vocabulary, word, length);
  if (id < 0) id = l->unknown;
  if (id < 0) return lexicon_refuse(w, word, length, at);
  lexicon_put(w, id, at, at + length);
  return w->out->e->status;
}

const struct lexicon_kind lexicon_wordlevel = {{"WordLevel", "vocab unk_token "}, read, cut};
