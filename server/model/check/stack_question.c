/* stack_question: questions and contexts become pairs, and long contexts windows. */
#include "server/model/check/stack_question.h"

#include <stdio.h>
#include <string.h>

#include "core/base/size.h"
#include "server/model/fields/stack_fields.h"

/* --- fields --- */

/* Rejects the fields of answers if there is no question; else those of what a response with answers
 * does not have: the tokens of its windows. */
static enum status check_fields(const struct contract_reading *r, bool question) {
  static const struct {
    enum stack_field field;
    bool answers; /* whether it is about answers */
  } fields[] = {{STACK_FIELD_RETURN_TOP, true},      {STACK_FIELD_MAX_ANSWER, true},
                {STACK_FIELD_STRIDE, true},          {STACK_FIELD_RETURN_TOKENS, false},
                {STACK_FIELD_RETURN_HIDDEN, false},  {STACK_FIELD_RETURN_ATTENTION, false},
                {STACK_FIELD_TRACE, false},          {STACK_FIELD_TRUNCATE, false},
                {STACK_FIELD_SPECIAL_TOKENS, false}, {STACK_FIELD_ENCODING_FORMAT, false}};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    const enum stack_field field = fields[i].field;
    if (fields[i].answers == question || !stack_field_is_seen(r, field)) continue;
    return error_at(r->e, stack_field_pointer(field), "%s %s", stack_field_name(field),
                    question ? "excludes \"question\": send the question and the context as a pair "
                               "in \"text\""
                             : "requires \"question\" and \"context\": the response to \"text\" or "
                               "\"tokens\" has logits");
  }
  return STATUS_OK;
}

enum status stack_question_check(const struct contract_reading *r) {
  const bool question = stack_field_is_seen(r, STACK_FIELD_QUESTION);
  const struct texts *t = r->texts, *c = r->second;
  if (!question && !c) return check_fields(r, false);
  if (!question || !c)
    return error_at(r->e, question ? "/context" : "/question", "the field \"%s\" is missing",
                    question ? "context" : "question");
  if (stack_field_is_seen(r, STACK_FIELD_TEXT))
    return error_at(r->e, "/text", "text excludes \"question\": send one of both");
  if (check_fields(r, true)) return r->e->status;
  if (t->alone != c->alone)
    return error_at(r->e, "/context", "expected %s, as \"question\" is",
                    t->alone ? "a string" : "a list of strings");
  if (t->items != c->items)
    return error_at(r->e, "/context", "%zu contexts for %zu questions", c->items, t->items);
  return STATUS_OK;
}

/* --- pairs --- */

enum status stack_question_pairs(struct contract_reading *r) {
  const struct texts *q = r->texts, *c = r->second;
  if (!c) return STATUS_OK;
  struct texts *t = arena_alloc(r->arena, 1, sizeof *t, r->e);
  char *bytes = arena_alloc(r->arena, q->length + c->length, 1, r->e);
  struct texts_part *part = arena_alloc(r->arena, TEXTS_PAIR * q->items, sizeof *part, r->e);
  if (r->e->status) return r->e->status;
  if (q->length) memcpy(bytes, q->bytes, q->length);
  if (c->length) memcpy(bytes + q->length, c->bytes, c->length);
  *t = (struct texts){.bytes = bytes,
                      .part = part,
                      .items = q->items,
                      .of_item = TEXTS_PAIR,
                      .alone = q->alone,
                      .length = q->length + c->length};
  for (size_t i = 0; i < q->items; i++) {
    *part++ = q->part[i];
    *part++ = (struct texts_part){q->length + c->part[i].at, c->part[i].length};
  }
  r->texts = t;
  return STATUS_OK;
}

/* Whether the tokenizer rejects the question alone. */
static bool is_refused(const struct contract_reading *r, const struct whole *w, size_t item) {
  const struct texts_part *part = &r->texts->part[TEXTS_PAIR * item];
  const struct tokenizer_text text = {r->texts->bytes + part->at, part->length};
  const struct tokenizer_options ask = {.patience = r->patience};
  struct error alone = {0};
  struct tokenizer_work work;
  struct tokens tokens;
  tokenizer_work_init(&work, r->arena, &alone);
  tokens_init(&tokens, r->arena, &alone);
  return tokenizer_encode(w->tokenizer, &work, &text, 1, &ask, &tokens) != STATUS_OK;
}

enum status stack_question_locate(const struct contract_reading *r, const struct whole *w) {
  struct error *e = r->e;
  size_t item = 0;
  if (strcmp(e->pointer, "/text") != 0 && sscanf(e->pointer, "/text/%zu", &item) != 1)
    return e->status;
  const char *field = is_refused(r, w, item) ? "/question" : "/context";
  if (r->texts->alone)
    snprintf(e->pointer, sizeof e->pointer, "%s", field);
  else
    snprintf(e->pointer, sizeof e->pointer, "%s/%zu", field, item);
  return e->status;
}

/* --- windows --- */

/* How a pair is cut: its tokens before the context, the context, and those after it. */
struct cut {
  size_t first, begin, end, last;
  size_t room, step, windows; /* context tokens of a window, between the beginnings of two, and how
                                 many there are */
};

static enum status refuse_item(const struct contract_reading *r, size_t item, const char *why,
                               size_t tokens, size_t longest) {
  char pointer[ERROR_POINTER_SIZE] = "/question";
  if (!r->texts->alone) snprintf(pointer, sizeof pointer, "/question/%zu", item);
  return error_at(r->e, pointer, why, tokens, longest);
}

/* Finds the windows of a pair. */
static enum status cut_pair(const struct contract_reading *r, const struct tokenize_texts *d,
                            size_t item, size_t longest, struct cut *c) {
  const struct stack_values *v = r->values;
  const struct token *token = d->tokens.token;
  *c = (struct cut){.first = d->first[item], .last = d->first[item + 1], .windows = 1};
  c->begin = c->end = c->last;
  for (size_t i = c->last; i-- > c->first;) {
    if (token[i].text == 0 || token_is_added(&token[i])) continue;
    if (c->end == c->last && c->begin == c->last) c->end = i + 1;
    c->begin = i;
  }
  const size_t around = c->last - c->first - (c->end - c->begin), count = c->end - c->begin;
  c->room = count;
  if (!longest) return STATUS_OK;
  if (around >= longest)
    return refuse_item(r, item,
                       "the question has %zu tokens with the special ones, and the model reads "
                       "%zu: no room is left for the context",
                       around, longest);
  if (count <= longest - around) return STATUS_OK;
  c->room = longest - around;
  const size_t stride =
      stack_field_is_seen(r, STACK_FIELD_STRIDE) ? v->stride : size_min(v->stride, c->room / 2);
  if (stride >= c->room)
    return error_at(r->e, "/stride",
                    "the stride is %zu, but must be smaller than a window, which has %zu tokens of "
                    "the context",
                    stride, c->room);
  c->step = c->room - stride;
  c->windows = 1 + (count - c->room + c->step - 1) / c->step;
  return STATUS_OK;
}

/* Copies tokens begin .. end - 1 of `from` behind those of `to`. */
static void append(struct tokens *to, const struct tokens *from, size_t begin, size_t end) {
  if (end > begin)
    memcpy(to->token + to->count, from->token + begin, (end - begin) * sizeof *to->token);
  to->count += end - begin;
}

/* Fills the windows, whose tokens become those of `d`. `rows`: tokens of all windows. */
static enum status fill(struct contract_reading *r, const struct cut *cut, size_t rows,
                        struct tokenize_texts *d, struct stack_windows *all) {
  struct tokens tokens = d->tokens;
  size_t *first = arena_alloc(r->arena, all->count + 1, sizeof *first, r->e), w = 0;
  tokens.token = arena_alloc(r->arena, rows, sizeof *tokens.token, r->e);
  all->window = arena_alloc(r->arena, all->count, sizeof *all->window, r->e);
  if (r->e->status) return r->e->status;
  tokens.count = 0;
  tokens.room = rows;
  for (size_t item = 0; item < r->texts->items; item++) {
    const struct cut *c = &cut[item];
    for (size_t i = 0; i < c->windows; i++, w++) {
      const size_t begin = c->begin + i * c->step, end = size_min(begin + c->room, c->end);
      first[w] = tokens.count;
      append(&tokens, &d->tokens, c->first, c->begin);
      all->window[w] = (struct stack_window){.item = item,
                                             .begin = tokens.count,
                                             .end = tokens.count + end - begin,
                                             .at = i * c->step};
      append(&tokens, &d->tokens, begin, end);
      append(&tokens, &d->tokens, c->end, c->last);
    }
  }
  first[w] = tokens.count;
  d->tokens = tokens;
  d->first = first;
  return STATUS_OK;
}

enum status stack_question_windows(struct contract_reading *r, const struct whole *w,
                                   const struct body_limits *limits, struct tokenize_texts *d,
                                   struct stack_request *out) {
  const struct stack_values *v = r->values;
  const size_t items = r->texts->items, longest = w->longest ? w->longest : w->positions;
  struct stack_windows *all = arena_alloc(r->arena, 1, sizeof *all, r->e);
  struct cut *cut = arena_alloc(r->arena, items, sizeof *cut, r->e);
  size_t rows = 0;
  if (r->e->status) return r->e->status;
  *all =
      (struct stack_windows){.top = v->top, .max_answer = v->max_answer, .alone = r->texts->alone};
  for (size_t i = 0; i < items; i++) {
    struct cut *c = &cut[i];
    if (cut_pair(r, d, i, longest, c)) return r->e->status;
    all->count += c->windows;
    if (all->count > limits->max_items)
      return error_limit(r->e, "max_items",
                         "more than %zu windows of contexts: send fewer contexts, or a smaller "
                         "\"stride\"",
                         limits->max_items);
    /* Windows that overlap have more tokens than the pair. */
    rows += c->windows * (c->last - c->first - (c->end - c->begin) + c->room);
  }
  if (fill(r, cut, rows, d, all)) return r->e->status;
  out->windows = all;
  return STATUS_OK;
}
