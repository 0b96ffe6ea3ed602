/* stack_tokenize: texts become tokens before anything else is checked. */
#include "server/model/check/stack_tokenize.h"

#include <string.h>

#include "core/base/size.h"
#include "server/model/check/stack_languages.h"
#include "server/model/check/stack_limits.h"
#include "server/model/check/stack_question.h"
#include "server/model/fields/stack_fields.h"

/* --- prompts --- */

const char *const stack_tokenize_prompts[WHOLE_TEXTS][4] = {
    [WHOLE_TEXT_DOCUMENT] = {"document", "passage", "corpus", NULL},
    [WHOLE_TEXT_QUERY] = {"query", NULL}};

void stack_tokenize_first(struct contract_text *prompt, const struct whole *w,
                          const char *const *names) {
  const json_t *text = NULL;
  while (*names && !text) text = json_object_get(w->prompts, *names++);
  stack_fields_prompt(prompt, text ? text : w->prompt);
}

enum status stack_tokenize_prompt(const struct whole *w, const struct contract_text *name,
                                  struct contract_text *prompt, struct error *e) {
  const json_t *text = w->prompt;
  if (name->length)
    text = strlen(name->bytes) == name->length ? json_object_get(w->prompts, name->bytes) : NULL;
  stack_fields_prompt(prompt, text);
  if (text || !name->length) return STATUS_OK;
  if (!w->prompts) return error_at(e, "/prompt_name", "this model has no prompts");
  return error_at(e, "/prompt_name",
                  "unknown prompt name: GET /v1/models/NAME lists the \"prompts\" of the model");
}

/* --- late interaction --- */

/* Whether queries become other tokens than documents. */
static bool tells_roles(const struct whole *w, const struct stack_values *v) {
  return w->interacts && v->pool == STACK_POOL_MULTI_VECTOR;
}

enum whole_text stack_tokenize_role(const struct stack_values *v, const struct texts *texts,
                                    size_t item) {
  return tokenize_kind_of(texts, item) == TOKENIZE_OF_QUERY ? WHOLE_TEXT_QUERY : v->role;
}

/* How texts become tokens after this prompt. */
static struct tokenize_form form_of(const struct whole *w, const struct stack_values *v,
                                    enum whole_text role, const struct contract_text *prompt) {
  const struct whole_text_form *text = &w->text[role];
  const bool told = tells_roles(w, v);
  const size_t longest = told && text->longest ? text->longest : w->longest;
  struct tokenize_form form = {.prompt = {prompt->bytes, prompt->length},
                               .longest = v->truncate != SIZE_MAX ? v->truncate
                                          : w->positions          ? size_min(longest, w->positions)
                                                                  : longest};
  if (!told || !v->special) return form;
  form.marked = text->marker >= 0;
  form.marker = (int32_t)text->marker;
  form.filled = text->filled;
  form.filler = text->filler;
  return form;
}

/* --- fields --- */

/* Checks the fields next to texts, and finds the prompt: the model's default if the request neither
 * has nor names one. */
static enum status check_fields(const struct contract_reading *r, const struct whole *w,
                                struct contract_text *prompt) {
  static const enum stack_field others[] = {STACK_FIELD_TOKENS, STACK_FIELD_EMBEDDINGS,
                                            STACK_FIELD_VALID_LENS, STACK_FIELD_TOKEN_TYPES};
  const struct stack_values *v = r->values;
  const enum stack_field sent = r->second ? STACK_FIELD_QUESTION : STACK_FIELD_TEXT;
  if (!w->tokenizer)
    return error_at(r->e, stack_field_pointer(sent),
                    "this model has no tokenizer: send %s (a tokenizer is tokenizer.json, a "
                    "sentencepiece model, vocab.json with merges.txt, vocab.txt or words.txt in "
                    "the model's folder)",
                    w->vocabulary ? "tokens" : "embeddings");
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (stack_field_is_seen(r, others[i]))
      return error_at(r->e, stack_field_pointer(others[i]), "%s excludes \"%s\": send one of both",
                      stack_field_name(others[i]), stack_field_name(sent));
  if (stack_field_is_seen(r, STACK_FIELD_ROLE) && !tells_roles(w, v))
    return error_at(r->e, "/role", "%s",
                    w->interacts ? "\"role\" requires \"pool\": \"multi_vector\""
                                 : "this model embeds queries and documents in the same way");
  *prompt = v->prompt;
  if (tells_roles(w, v) && !stack_field_is_seen(r, STACK_FIELD_PROMPT))
    stack_tokenize_first(prompt, w, stack_tokenize_prompts[v->role]);
  if (!v->prompt_name.length) return STATUS_OK;
  if (stack_field_is_seen(r, STACK_FIELD_PROMPT))
    return error_at(r->e, "/prompt_name",
                    "\"prompt\" and \"prompt_name\" exclude each other: send one");
  return stack_tokenize_prompt(w, &v->prompt_name, prompt, r->e);
}

/* Rejects the fields that a request without texts cannot have. */
static enum status check_without_texts(const struct contract_reading *r) {
  static const enum stack_field alone[] = {STACK_FIELD_ROLE,
                                           STACK_FIELD_SPECIAL_TOKENS,
                                           STACK_FIELD_TRUNCATE,
                                           STACK_FIELD_RETURN_TOKENS,
                                           STACK_FIELD_PROMPT,
                                           STACK_FIELD_PROMPT_NAME,
                                           STACK_FIELD_SOURCE_LANGUAGE,
                                           STACK_FIELD_TARGET_LANGUAGE};
  for (size_t i = 0; i < sizeof alone / sizeof *alone; i++)
    if (stack_field_is_seen(r, alone[i]))
      return error_at(r->e, stack_field_pointer(alone[i]), "%s requires texts, not tokens",
                      stack_field_name(alone[i]));
  if (stack_field_is_seen(r, STACK_FIELD_GROUP))
    return error_at(
        r->e, "/group",
        "\"group\" requires \"text\", not tokens: entities are parts of a text, and its "
        "words show which tokens belong together");
  return STATUS_OK;
}

/* --- tokens --- */

/* Adds the field to the reading: for each token its id, or its type. It has a list of integers for
 * each of `items`, or for the only one. */
static enum status add_tensor(const struct tokenize_texts *d, size_t items, bool alone,
                              struct contract_reading *r, enum stack_field field) {
  struct tensor *made = arena_alloc(r->arena, 1, sizeof *made, r->e);
  int32_t *data = arena_alloc(r->arena, d->tokens.count, sizeof *data, r->e);
  struct tensor_shape *shape = arena_alloc(r->arena, items, sizeof *shape, r->e);
  if (r->e->status) return r->e->status;
  for (size_t i = 0; i < items; i++)
    shape[i] = (struct tensor_shape){{d->first[i + 1] - d->first[i]}};
  for (size_t i = 0; i < d->tokens.count; i++) {
    const struct token *token = &d->tokens.token[i];
    data[i] = field == STACK_FIELD_TOKENS ? token->id : token->type;
  }
  *made = (struct tensor){.depth = alone ? 1 : 2,
                          .elements = alone ? d->tokens.count : items,
                          .count = d->tokens.count,
                          .data = data,
                          .ragged = alone ? NULL : shape,
                          .shaped = alone};
  r->tensor[field] = made;
  return STATUS_OK;
}

enum status stack_tokenize(struct contract_reading *r, const struct whole *w,
                           const struct body_terms *terms, const struct body_limits *limits,
                           struct stack_request *out) {
  if (terms->ask == ASK_QUESTION && stack_question_check(r)) return r->e->status;
  if (!r->texts) return check_without_texts(r);
  const struct stack_values *v = r->values;
  const struct stack_form *source = v->source.stack ? v->source.form : NULL;
  const struct stack_form *f = source ? source : v->main.form;
  struct contract_text prompt;
  struct tokenize_texts *d = arena_alloc(r->arena, 1, sizeof *d, r->e);
  const bool grouped = stack_field_is_seen(r, STACK_FIELD_GROUP);
  if (!d || check_fields(r, w, &prompt) || stack_languages_find(r, w, &prompt) ||
      stack_question_pairs(r))
    return r->e->status;
  if (grouped && r->texts->of_item > 1)
    return error_at(
        r->e, "/group",
        "\"group\" requires single texts, not pairs: the offsets of an entity are those "
        "of one text");
  struct tokenize_ask ask = {
      .of_each = {.special = v->special,
                  .traced = v->tokens || grouped || r->second,
                  .patience = r->patience},
      .form = {[TOKENIZE_OF_TEXT] = form_of(w, v, v->role, &prompt),
               [TOKENIZE_OF_QUERY] = form_of(w, v, WHOLE_TEXT_QUERY, &v->query_prompt)},
      .counts_prompts = w->prompt_left_out && stack_vectors_are_of_all(stack_pool_vectors(v->pool)),
      .most_tokens = r->second ? 0 : w->positions,
      .most_pairs =
          r->second ? SIZE_MAX : limits->max_pairs / size_max(1, f->layers * f->kind->self.heads)};
  if (r->second) ask.form[TOKENIZE_OF_TEXT].longest = 0; /* any */
  const size_t said = v->truncate == SIZE_MAX || r->second ? 0 : v->truncate;
  if (tokenize_texts_check(w->tokenizer, r->texts, &ask, said, r->e) ||
      tokenize_texts(d, w->tokenizer, r->texts, &ask, r->arena, r->e))
    return r->second ? stack_question_locate(r, w) : r->e->status;
  if (d->too_many_pairs)
    return stack_limits_refuse_pairs(source, v->main.form, terms->ablation, 0, limits->max_pairs,
                                     r->e);
  if (stack_languages_set(r, w, d)) return r->e->status;
  out->tokenized = d;
  out->tells_tokens = v->tokens;
  if (r->second && stack_question_windows(r, w, limits, d, out)) return r->e->status;
  const size_t items = out->windows ? out->windows->count : r->texts->items;
  const bool alone = r->texts->alone && !out->windows;
  if (add_tensor(d, items, alone, r, STACK_FIELD_TOKENS)) return r->e->status;
  /* A model with one token type has it for both texts of a pair. */
  const bool typed = w->types > 1 && r->texts->of_item > 1;
  return typed ? add_tensor(d, items, alone, r, STACK_FIELD_TOKEN_TYPES) : STATUS_OK;
}
