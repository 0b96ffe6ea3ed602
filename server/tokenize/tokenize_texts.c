/* tokenize_texts: all texts of a request, one after the other. */
#include "server/tokenize/tokenize_texts.h"

#include <stdio.h>

#include "core/run/clock.h"

/* An error about one text says which. */
static enum status locate(struct error *e, const struct texts *t, size_t item) {
  if (e->status != STATUS_INVALID_REQUEST || *e->pointer) return e->status;
  if (t->alone)
    snprintf(e->pointer, sizeof e->pointer, "/text");
  else
    snprintf(e->pointer, sizeof e->pointer, "/text/%zu", item);
  return e->status;
}

enum status tokenize_texts_check(const struct tokenizer *t, const struct texts *texts,
                                 const struct tokenizer_ask *ask, size_t said, struct error *e) {
  const size_t around = ask->special ? tokenizer_frame(t, texts->of_item == TEXTS_PAIR) : 0;
  if (said == 0 || said >= around) return STATUS_OK;
  return error_at(e, "/truncate", "%zu tokens stand around each %s here: no fewer are left", around,
                  texts->of_item == TEXTS_PAIR ? "pair" : "text");
}

enum status tokenize_texts(struct tokenize_texts *d, const struct tokenizer *t,
                           const struct texts *texts, const struct tokenizer_ask *ask,
                           struct arena *a, struct error *e) {
  const uint64_t begun = clock_now();
  struct tokenizer_work work;
  *d = (struct tokenize_texts){.tokenizer = t,
                               .texts = texts,
                               .first = arena_alloc(a, texts->items + 1, sizeof *d->first, e)};
  tokens_init(&d->tokens, a, e);
  tokenizer_work_init(&work, a, e);
  if (!d->first) return e->status;
  for (size_t i = 0; i < texts->items; i++) {
    struct tokenizer_text text[2];
    const unsigned there = texts_of(texts, i);
    for (size_t j = 0; j < there; j++) {
      const struct texts_part *part = &texts->part[i * texts->of_item + j];
      text[j] = (struct tokenizer_text){texts->bytes + part->at, part->length};
    }
    d->first[i] = d->tokens.count;
    if (patience_ends(ask->patience, e)) return e->status;
    if (tokenizer_cut(t, &work, text, there, ask, &d->tokens)) return locate(e, texts, i);
  }
  d->first[texts->items] = d->tokens.count;
  d->ns = clock_now() - begun;
  return STATUS_OK;
}
