/* stack_tokenize: texts become tokens before anything else is checked. */
#include "server/stack/stack_tokenize.h"

#include "core/run/size.h"
#include "server/stack/stack_fields.h"

/* --- what goes with texts --- */

static enum status check_fields(const struct contract_reading *r, const struct whole *w) {
  static const enum stack_field others[] = {STACK_FIELD_TOKENS, STACK_FIELD_EMBEDDINGS,
                                            STACK_FIELD_VALID_LENS, STACK_FIELD_TOKEN_TYPES};
  if (!w->tokenizer)
    return error_at(r->e, "/text",
                    "this model has no tokenizer: it takes %s (a tokenizer is tokenizer.json, "
                    "vocab.json, vocab.txt or words.txt in the model's folder)",
                    w->vocabulary ? "tokens" : "embeddings");
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (stack_field_is_seen(r, others[i]))
      return error_at(r->e, stack_field_pointer(others[i]),
                      "there is text, too: %s does not go with it", stack_field_name(others[i]));
  return STATUS_OK;
}

/* What goes with texts alone. */
static enum status check_without(const struct contract_reading *r) {
  static const enum stack_field alone[] = {STACK_FIELD_SPECIAL_TOKENS, STACK_FIELD_TRUNCATE,
                                           STACK_FIELD_RETURN_TOKENS};
  for (size_t i = 0; i < sizeof alone / sizeof *alone; i++)
    if (stack_field_is_seen(r, alone[i]))
      return error_at(r->e, stack_field_pointer(alone[i]), "%s goes with \"text\"",
                      stack_field_name(alone[i]));
  return STATUS_OK;
}

/* --- tokens --- */

/* The tokens that a text may have at most; 0: any. */
static size_t longest(const struct stack_values *v, const struct whole *w) {
  return v->truncate == SIZE_MAX ? w->longest : v->truncate;
}

/* --- as arrays --- */

/* A list of integers for each item, or for the one alone. */
static struct tensor *make_tensor(const struct tokenize_texts *d, struct contract_reading *r) {
  const struct texts *t = r->texts;
  struct tensor *made = arena_alloc(r->arena, 1, sizeof *made, r->e);
  int32_t *data = arena_alloc(r->arena, d->tokens.count, sizeof *data, r->e);
  struct tensor_shape *shape = arena_alloc(r->arena, t->items, sizeof *shape, r->e);
  if (r->e->status) return NULL;
  for (size_t i = 0; i < t->items; i++)
    shape[i] = (struct tensor_shape){{d->first[i + 1] - d->first[i]}};
  *made = (struct tensor){.depth = t->alone ? 1 : 2,
                          .elements = t->alone ? d->tokens.count : t->items,
                          .count = d->tokens.count,
                          .data = data,
                          .ragged = t->alone ? NULL : shape,
                          .shaped = t->alone};
  return made;
}

static enum status give_tokens(const struct tokenize_texts *d, struct contract_reading *r) {
  struct tensor *made = make_tensor(d, r);
  if (!made) return r->e->status;
  for (size_t i = 0; i < d->tokens.count; i++) ((int32_t *)made->data)[i] = d->tokens.token[i].id;
  r->tensor[STACK_FIELD_TOKENS] = made;
  return STATUS_OK;
}

/* A model whose types are fewer than a pair's has one for all. */
static enum status give_types(const struct tokenize_texts *d, struct contract_reading *r,
                              const struct whole *w) {
  if (w->types < 2 || r->texts->of_item == 1) return STATUS_OK;
  struct tensor *made = make_tensor(d, r);
  if (!made) return r->e->status;
  for (size_t i = 0; i < d->tokens.count; i++) ((int32_t *)made->data)[i] = d->tokens.token[i].type;
  r->tensor[STACK_FIELD_TOKEN_TYPES] = made;
  return STATUS_OK;
}

enum status stack_tokenize(struct contract_reading *r, const struct whole *w,
                           struct stack_request *out) {
  if (!r->texts) return check_without(r);
  const struct stack_values *v = r->values;
  struct tokenize_texts *d = arena_alloc(r->arena, 1, sizeof *d, r->e);
  if (!d || check_fields(r, w)) return r->e->status;
  const struct tokenizer_ask ask = {v->special, v->tokens, longest(v, w), r->patience};
  const size_t said = v->truncate == SIZE_MAX ? 0 : v->truncate;
  if (tokenize_texts_check(w->tokenizer, r->texts, &ask, said, r->e) ||
      tokenize_texts(d, w->tokenizer, r->texts, &ask, r->arena, r->e) || give_tokens(d, r) ||
      give_types(d, r, w))
    return r->e->status;
  out->tokenized = d;
  out->tells_tokens = v->tokens;
  return STATUS_OK;
}
