/* stack_languages: finds the tokens of languages, and puts them in their places. */
#include "server/model/check/stack_languages.h"

#include <stdio.h>
#include <string.h>

#include "config/tokenizer/tokenizer_languages.h"
#include "server/model/fields/stack_fields.h"

/* The language of this code; false: there is none. */
static bool find(const struct tokenizer *t, const struct contract_text *code,
                 struct tokenizer_language *out) {
  for (size_t at = 0; tokenizer_next_language(t, &at, out);)
    if (out->length == code->length && memcmp(out->code, code->bytes, out->length) == 0)
      return true;
  return false;
}

static bool has_any(const struct tokenizer *t) {
  struct tokenizer_language any;
  size_t at = 0;
  return tokenizer_next_language(t, &at, &any);
}

static enum status refuse(const struct contract_reading *r, const struct whole *w,
                          enum stack_field field) {
  if (!has_any(w->tokenizer))
    return error_at(r->e, stack_field_pointer(field), "this model has no tokens of languages");
  return error_at(r->e, stack_field_pointer(field),
                  "unknown language: GET /v1/models/NAME lists the \"languages\" of the model");
}

enum status stack_languages_find(struct contract_reading *r, const struct whole *w,
                                 struct contract_text *prompt) {
  struct stack_values *v = r->values;
  struct tokenizer_language source, target;
  if (stack_field_is_seen(r, STACK_FIELD_SOURCE_LANGUAGE)) {
    if (!find(w->tokenizer, &v->source_language, &source))
      return refuse(r, w, STACK_FIELD_SOURCE_LANGUAGE);
    if (source.before)
      return error_at(r->e, "/source_language", "this model does not name the source's language");
    if (!v->special)
      return error_at(r->e, "/source_language", "\"source_language\" requires special tokens");
  }
  if (!stack_field_is_seen(r, STACK_FIELD_TARGET_LANGUAGE)) return STATUS_OK;
  if (!find(w->tokenizer, &v->target_language, &target))
    return refuse(r, w, STACK_FIELD_TARGET_LANGUAGE);
  if (!target.before) {
    if (stack_field_is_seen(r, STACK_FIELD_TARGETS))
      return error_at(r->e, "/target_language",
                      "\"targets\" and \"target_language\" exclude each other: send one");
    v->choice.forced_begin = target.id;
    return STATUS_OK;
  }
  const size_t length = target.length + 4;
  char *code = arena_alloc(r->arena, length + 1, 1, r->e);
  if (!code) return r->e->status;
  snprintf(code, length + 1, ">>%.*s<<", (int)target.length, target.code);
  prompt->bytes = code;
  prompt->length = length;
  return STATUS_OK;
}

/* Is it the token of a language of a source? */
static bool is_source(const struct tokenizer *t, int32_t id) {
  struct tokenizer_language one;
  for (size_t at = 0; tokenizer_next_language(t, &at, &one);)
    if (one.id == id) return !one.before;
  return false;
}

enum status stack_languages_set(const struct contract_reading *r, const struct whole *w,
                                struct tokenize_texts *d) {
  const struct stack_values *v = r->values;
  struct tokenizer_language source;
  if (!stack_field_is_seen(r, STACK_FIELD_SOURCE_LANGUAGE)) return STATUS_OK;
  must(find(w->tokenizer, &v->source_language, &source));
  for (size_t i = 0; i < r->texts->items; i++) {
    struct token *first = &d->tokens.token[d->first[i]],
                 *last = &d->tokens.token[d->first[i + 1]] - 1;
    if (first <= last && is_source(w->tokenizer, first->id))
      first->id = source.id;
    else if (first <= last && is_source(w->tokenizer, last->id))
      last->id = source.id;
    else
      return error_at(r->e, "/source_language",
                      "the tokenizer of this model adds no language to a source");
  }
  return STATUS_OK;
}
