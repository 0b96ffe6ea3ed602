/* tokenizer: the way of a text through the parts of a tokenizer, and of tokens back. */
#include "config/tokenizer/tokenizer.h"

#include <string.h>

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

size_t tokenizer_truncation(const struct tokenizer *t) { return t->longest; }

size_t tokenizer_special_count(const struct tokenizer *t, bool pair) {
  return postprocessor_count(t->postprocessor, pair);
}

/* --- one text --- */

void tokenizer_work_init(struct tokenizer_work *w, struct arena *a, struct error *e) {
  *w = (struct tokenizer_work){0};
  passage_init(&w->whole, a, e);
  passage_init(&w->part, a, e);
  for (size_t i = 0; i < 2; i++) tokens_init(&w->text[i], a, e);
}

/* A text that is being cut into tokens. */
struct tokenizer_encoding {
  const struct tokenizer *t;
  struct tokenizer_work *w;
  struct tokens *out;
  const char *text; /* as it came */
  bool traced;
  struct patience *patience;
};

/* Asks now and then; a step is a word, or a stretch between added tokens. */
static bool is_unwanted(const struct tokenizer_encoding *c) {
  enum { STEPS = 1024 };
  return ++c->w->steps % STEPS == 0 && patience_ends(c->patience, c->out->e);
}

/* Tokens came from bytes of a passage: now they came from those of the original. */
static void place_token(const struct passage *p, struct token *token) {
  passage_origin(p, token->begin, token->end, &token->begin, &token->end);
}

static enum status put_added(const struct tokenizer_encoding *c, const struct passage *p,
                             const struct added_search *s) {
  struct token token = {.id = s->token->id,
                        .begin = (uint32_t)s->begin,
                        .end = (uint32_t)s->end,
                        .special = s->token->special};
  if (c->traced) {
    place_token(p, &token);
    if (postprocessor_trims(c->t->postprocessor))
      tokenizer_trim_added(c->t, c->text, p->now.bytes + s->begin, s->end - s->begin, c->out->count,
                           &token);
  }
  tokens_add(c->out, token);
  return c->out->e->status;
}

/* Words of a text that has no added token. */
static enum status cut_words(const struct tokenizer_encoding *c, struct passage *p) {
  const size_t first = c->out->count;
  if (c->t->pretokenizer && pretokenizer_apply(c->t->pretokenizer, p)) return p->e->status;
  c->w->word.out = c->out;
  c->w->word.patience = c->patience;
  for (size_t i = 0; i < p->pieces.count; i++) {
    const struct passage_piece *piece = &p->pieces.piece[i];
    if (subword_tokenize(c->t->subword_model, p->now.bytes + piece->begin,
                         piece->end - piece->begin, piece->begin, &c->w->word) ||
        is_unwanted(c))
      return c->out->e->status;
  }
  for (size_t i = first; i < c->out->count && c->traced && !is_unwanted(c); i++) {
    place_token(p, &c->out->token[i]);
    if (postprocessor_trims(c->t->postprocessor))
      tokenizer_trim(c->t, c->text, i, &c->out->token[i]);
  }
  return c->out->e->status;
}

/* Words of a stretch between added tokens. */
static enum status cut_within(const struct tokenizer_encoding *c, size_t begin, size_t end) {
  const struct passage_piece stretch = {(uint32_t)begin, (uint32_t)end};
  if (begin == end) return STATUS_OK;
  if (passage_begin_within(&c->w->part, &c->w->whole, &stretch)) return c->out->e->status;
  return cut_words(c, &c->w->part);
}

/* A stretch of the original between added tokens: it is changed, and then others may be in it. */
static enum status cut_changed(const struct tokenizer_encoding *c,
                               const struct tokenizer_text *text, size_t begin, size_t end) {
  struct passage *p = &c->w->whole;
  if (begin == end || is_unwanted(c)) return c->out->e->status;
  if (passage_begin(p, text->bytes + begin, end - begin, begin, c->traced) ||
      (c->t->normalizer && normalizer_apply(c->t->normalizer, p)))
    return p->e->status;
  struct added_search s = {.added = &c->t->added,
                           .changed = true,
                           .text = p->now.bytes,
                           .length = p->now.length,
                           .patience = c->patience,
                           .e = p->e};
  size_t done = 0;
  while (added_next(&s)) {
    if (cut_within(c, done, s.begin) || put_added(c, p, &s)) return c->out->e->status;
    done = s.end;
  }
  if (p->e->status) return p->e->status;
  return done == 0 ? cut_words(c, p) : cut_within(c, done, p->now.length);
}

static enum status cut_text(const struct tokenizer_encoding *c, const struct tokenizer_text *text) {
  struct added_search s = {.added = &c->t->added,
                           .text = text->bytes,
                           .length = text->length,
                           .patience = c->patience,
                           .e = c->out->e};
  size_t done = 0;
  c->out->count = 0;
  c->w->whole.patience = c->w->part.patience = c->patience;
  c->w->whole.watch.patience = c->w->part.watch.patience = c->patience;
  while (added_next(&s)) {
    if (cut_changed(c, text, done, s.begin)) return c->out->e->status;
    if (passage_begin(&c->w->whole, text->bytes, text->length, 0, c->traced) ||
        put_added(c, &c->w->whole, &s))
      return c->out->e->status;
    done = s.end;
  }
  return s.e->status ? s.e->status : cut_changed(c, text, done, text->length);
}

enum status tokenizer_encode(const struct tokenizer *t, struct tokenizer_work *w,
                             const struct tokenizer_text *text, size_t texts,
                             const struct tokenizer_options *ask, struct tokens *out) {
  const bool pair = texts == 2;
  for (size_t i = ask->first_again ? 1 : 0; i < texts; i++) {
    const struct tokenizer_encoding c = {t,           w,
                                         &w->text[i], text[i].bytes,
                                         ask->traced, ask->patience};
    if (cut_text(&c, &text[i])) return out->e->status;
  }
  struct tokens first = w->text[0], second = w->text[1];
  if (ask->longest) {
    const size_t around = ask->special ? postprocessor_count(t->postprocessor, pair) : 0;
    tokenizer_truncate(t, &first, pair ? &second : NULL,
                       ask->longest - size_min(ask->longest, around));
  }
  return postprocessor_apply(t->postprocessor, &first, pair ? &second : NULL, ask->special, out);
}

/* --- fewer tokens --- */

static void keep(const struct tokenizer *t, struct tokens *of, size_t count) {
  if (count >= of->count) return;
  if (t->left) of->token += of->count - count;
  of->count = count;
}

/* Of two texts the longer one is cut; if that is not enough, both to half. */
static void keep_both(const struct tokenizer *t, struct tokens *a, struct tokens *b, size_t most) {
  struct tokens *less = a->count <= b->count ? a : b, *more = less == a ? b : a;
  if (2 * less->count >= most) {
    keep(t, less, most / 2);
    keep(t, more, most - most / 2);
  } else {
    keep(t, more, most - less->count);
  }
}

void tokenizer_truncate(const struct tokenizer *t, struct tokens *first, struct tokens *second,
                        size_t most) {
  const size_t count = first->count + (second ? second->count : 0);
  if (count <= most) return;
  if (!second) {
    keep(t, first, most);
  } else if (t->where == CUT_LONGEST) {
    keep_both(t, first, second, most);
  } else {
    struct tokens *cut = t->where == CUT_FIRST ? first : second,
                  *other = cut == first ? second : first;
    keep(t, cut, most - size_min(most, other->count));
    keep(t, other, most - cut->count);
  }
}
