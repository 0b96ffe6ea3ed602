/* tokenizer: encodes texts: passes them through the parts of a tokenizer. */
#include "config/tokenizer/tokenizer.h"

#include "config/tokenizer/pattern/unicode.h"
#include "config/tokenizer/tokenizer_parts.h"
#include "core/base/size.h"

void tokenizer_work_init(struct tokenizer_work *w, struct arena *a, struct error *e) {
  *w = (struct tokenizer_work){0};
  passage_init(&w->whole, a, e);
  passage_init(&w->part, a, e);
  for (size_t i = 0; i < 2; i++) tokens_init(&w->text[i], a, e);
}

/* --- places --- */

/* Whether a character of a piece is a blank: U+0120 is the blank of byte-level pieces. */
static bool is_blank(uint32_t c) { return c == 0x120 || unicode_is_space(c); }

/* Excludes the blanks at the ends of a token from its place in `text` ("trim_offsets"). The blanks
 * of its piece count, which may begin with a prepended one; each is a character of the text. A text
 * may begin with one prepended blank, which is kept if the postprocessor says so. */
static void trim_place(const struct tokenizer *t, const char *text,
                       const struct decoder_piece *piece, bool first, struct token *token) {
  size_t before = 0, after = 0, size;
  if (piece->raw) {
    while (before < piece->length && piece->bytes[before] == ' ') before++;
    while (after < piece->length && piece->bytes[piece->length - 1 - after] == ' ') after++;
  } else {
    for (size_t at = 0; at < piece->length && is_blank(unicode_read(piece->bytes + at, &size));
         at += size)
      before++;
    for (size_t at = piece->length;
         at > 0 && is_blank(unicode_read_before(piece->bytes, at, &size)); at -= size)
      after++;
  }
  if ((first || token->begin == 0) && before == 1 && postprocessor_leaves_first(t->postprocessor))
    before = 0;
  for (; before > 0 && token->begin < token->end; before--) {
    unicode_read(text + token->begin, &size);
    token->begin += (uint32_t)size;
  }
  uint32_t end = token->end;
  for (; after > 0 && end > 0; after--) {
    unicode_read_before(text, end, &size);
    end -= (uint32_t)size;
  }
  if (after == 0) token->end = end > token->begin ? end : token->begin;
}

/* --- one text --- */

/* A text that is being encoded. */
struct tokenizer_encoding {
  const struct tokenizer *t;
  struct tokenizer_work *w;
  struct tokens *out;
  const char *text; /* the original */
  bool traced;
  struct patience *patience;
};

/* Asks now and then; a step is a word, or a stretch between added tokens. */
static bool is_over(const struct tokenizer_encoding *c) {
  enum { STEPS = 1024 };
  return ++c->w->steps % STEPS == 0 && patience_ends(c->patience, c->out->e);
}

/* Appends the added token that a search has found in a passage. */
static enum status append_added(const struct tokenizer_encoding *c, const struct passage *p,
                                const struct added_search *s) {
  struct token token = {.id = s->token->id,
                        .begin = (uint32_t)s->begin,
                        .end = (uint32_t)s->end,
                        .special = s->token->special};
  if (c->traced) {
    passage_origin(p, token.begin, token.end, &token.begin, &token.end);
    const struct decoder_piece found = {p->now.bytes + s->begin, s->end - s->begin, false};
    if (postprocessor_trims(c->t->postprocessor))
      trim_place(c->t, c->text, &found, c->out->count == 0, &token);
  }
  tokens_add(c->out, token);
  return c->out->e->status;
}

/* Encodes a passage without added tokens. */
static enum status encode_words(const struct tokenizer_encoding *c, struct passage *p) {
  const size_t first = c->out->count;
  const bool trims = postprocessor_trims(c->t->postprocessor);
  if (c->t->pretokenizer && pretokenizer_apply(c->t->pretokenizer, p)) return p->e->status;
  c->w->word.out = c->out;
  c->w->word.patience = c->patience;
  for (size_t i = 0; i < p->pieces.count; i++) {
    const struct passage_piece *piece = &p->pieces.piece[i];
    if (subword_tokenize(c->t->subword_model, p->now.bytes + piece->begin,
                         piece->end - piece->begin, piece->begin, &c->w->word) ||
        is_over(c))
      return c->out->e->status;
  }
  for (size_t i = first; i < c->out->count && c->traced && !is_over(c); i++) {
    struct token *token = &c->out->token[i];
    struct decoder_piece piece;
    passage_origin(p, token->begin, token->end, &token->begin, &token->end);
    if (trims && tokenizer_find_piece(c->t, token->id, false, &piece))
      trim_place(c->t, c->text, &piece, i == 0, token);
  }
  return c->out->e->status;
}

/* Encodes a stretch of the changed text between added tokens. */
static enum status encode_within(const struct tokenizer_encoding *c, size_t begin, size_t end) {
  const struct passage_piece stretch = {(uint32_t)begin, (uint32_t)end};
  if (begin == end) return STATUS_OK;
  if (passage_begin_within(&c->w->part, &c->w->whole, &stretch)) return c->out->e->status;
  return encode_words(c, &c->w->part);
}

/* Encodes a stretch of the original between added tokens: once it is changed, it may have others.
 */
static enum status encode_stretch(const struct tokenizer_encoding *c,
                                  const struct tokenizer_text *text, size_t begin, size_t end) {
  struct passage *p = &c->w->whole;
  if (begin == end || is_over(c)) return c->out->e->status;
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
    if (encode_within(c, done, s.begin) || append_added(c, p, &s)) return c->out->e->status;
    done = s.end;
  }
  if (p->e->status) return p->e->status;
  return done == 0 ? encode_words(c, p) : encode_within(c, done, p->now.length);
}

static enum status encode_text(const struct tokenizer_encoding *c,
                               const struct tokenizer_text *text) {
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
    if (encode_stretch(c, text, done, s.begin)) return c->out->e->status;
    if (passage_begin(&c->w->whole, text->bytes, text->length, 0, c->traced) ||
        append_added(c, &c->w->whole, &s))
      return c->out->e->status;
    done = s.end;
  }
  return s.e->status ? s.e->status : encode_stretch(c, text, done, text->length);
}

/* --- truncation --- */

/* Truncates a text to `count` tokens, at its beginning or its end. */
static void truncate_one(const struct tokenizer *t, struct tokens *of, size_t count) {
  if (count >= of->count) return;
  if (t->left) of->token += of->count - count;
  of->count = count;
}

/* Truncates one text, or two together, to `most` tokens. */
static void truncate_texts(const struct tokenizer *t, struct tokens *first, struct tokens *second,
                           size_t most) {
  if (first->count + (second ? second->count : 0) <= most) return;
  if (!second) {
    truncate_one(t, first, most);
  } else if (t->strategy == TRUNCATE_LONGEST) {
    /* The longer one is truncated; if that is not enough, each to half. */
    struct tokens *shorter = first->count <= second->count ? first : second,
                  *longer = shorter == first ? second : first;
    const size_t half = size_min(shorter->count, most / 2);
    truncate_one(t, shorter, half);
    truncate_one(t, longer, most - half);
  } else {
    struct tokens *cut = t->strategy == TRUNCATE_FIRST ? first : second,
                  *other = cut == first ? second : first;
    truncate_one(t, cut, most - size_min(most, other->count));
    truncate_one(t, other, most - cut->count);
  }
}

enum status tokenizer_encode(const struct tokenizer *t, struct tokenizer_work *w,
                             const struct tokenizer_text *text, size_t texts,
                             const struct tokenizer_options *options, struct tokens *out) {
  const bool pair = texts == 2;
  for (size_t i = options->first_again ? 1 : 0; i < texts; i++) {
    const struct tokenizer_encoding c = {
        t, w, &w->text[i], text[i].bytes, options->traced, options->patience};
    if (encode_text(&c, &text[i])) return out->e->status;
  }
  struct tokens first = w->text[0], second = w->text[1];
  if (options->longest) {
    const size_t around = options->special ? tokenizer_special_count(t, pair) : 0;
    truncate_texts(t, &first, pair ? &second : NULL,
                   options->longest - size_min(options->longest, around));
  }
  return postprocessor_apply(t->postprocessor, &first, pair ? &second : NULL,
                             options->special && !t->bare, out);
}
