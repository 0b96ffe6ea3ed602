/* whole_plan_make: definition and config.json become settings, names of tensors become parts, and
 * both together become sizes. */
#include "config/build/whole_plan_make.h"

#include <string.h>

#include "config/build/head/whole_classifier.h"
#include "config/build/head/whole_heads.h"
#include "config/build/plan/whole_find.h"
#include "config/build/whole_adapter.h"
#include "config/build/whole_sizes.h"
#include "config/describe/whole_translate.h"

/* Plans a random model, whose sizes come from the definition alone. */
static enum status plan_random(struct whole_plan *p, struct error *e) {
  const struct whole_settings *s = &p->said;
  const char *missing = !s->has_kind     ? "kind"
                        : !s->width      ? "width"
                        : !s->vocabulary ? "vocabulary"
                                         : NULL;
  for (enum whole_side i = 0; i < WHOLE_SIDES && !missing; i++) {
    const struct whole_stack_sizes *of = &s->of[i];
    if (s->kind != MODEL_SEQ2SEQ && (s->kind == MODEL_DECODER) != (i == WHOLE_DECODER)) continue;
    missing = !of->layers         ? "layers"
              : !of->heads        ? "heads"
              : !of->forward_size ? "feed_forward"
                                  : NULL;
  }
  if (missing) return error_set(e, STATUS_CONFIG, "%s: required with random", missing);
  p->kind = s->kind;
  size_t row = 0;
  while (whole_family_at(row)->decodes != (p->kind == MODEL_DECODER)) row++;
  p->family = whole_plan_reader(p)->family = whole_family_at(row);
  must(strcmp(p->family->name, "plain") == 0);
  if (p->kind == MODEL_SEQ2SEQ) p->stack[WHOLE_DECODER].family = p->family->decoder;
  /* The head for masked tokens, without a transform. */
  static const struct whole_masked head = {.matrix = "output"};
  if (p->kind == MODEL_ENCODER && s->tie_output == TOGGLE_ON) p->masked = &head;
  /* Its special tokens have defaults. */
  struct whole_tokens *t = &p->said.token;
  if (!json_object_get(p->words.words, "begin")) t->begin = 1;
  if (!json_object_get(p->words.words, "pad")) t->pad = 0;
  if (!json_object_get(p->words.words, "end")) {
    t->ends = 1;
    t->end[0] = 2;
  }
  return whole_sizes_find(p, e);
}

static enum status check_token(const char *key, int64_t token, size_t vocabulary, struct error *e) {
  if (token < (int64_t)vocabulary) return STATUS_OK;
  return error_set(e, STATUS_CONFIG, "%s: %jd is outside the vocabulary of %zu", key,
                   (intmax_t)token, vocabulary);
}

/* Rejects a token outside the vocabulary of its stack. */
static enum status check_tokens(const struct whole_plan *p, const struct whole_tokens *t,
                                struct error *e) {
  const struct whole_stack *decoder = &p->stack[WHOLE_DECODER];
  const size_t tokens = whole_plan_reader(p)->form.embedding.tokens;
  const size_t chosen = decoder->family ? decoder->form.embedding.tokens : tokens;
  if (!tokens) return STATUS_OK;
  if (check_token("begin", t->begin, chosen, e) || check_token("pad", t->pad, tokens, e) ||
      check_token("forced_begin", t->forced_begin, chosen, e) ||
      check_token("forced_end", t->forced_end, chosen, e))
    return e->status;
  for (size_t i = 0; i < t->ends && !e->status; i++) check_token("end", t->end[i], chosen, e);
  return e->status;
}

/* Checks the tokens of a definition, and those in the file of a custom model. Files of Hugging Face
 * transformers name tokens outside the vocabulary that are never used: of these only the decoder
 * start token of an encoder-decoder model is checked. */
static enum status check_used_tokens(const struct whole_plan *p, const json_t *definition,
                                     struct error *e) {
  const struct whole_tokens begin = {p->said.token.begin, -1, -1, -1, 0, {0}};
  struct whole_settings own;
  if (!p->family->keys) return check_tokens(p, &p->said.token, e);
  if (p->kind == MODEL_SEQ2SEQ && check_tokens(p, &begin, e)) return e->status;
  if (whole_settings_read(&own, definition, e)) return e->status;
  return check_tokens(p, &own.token, e);
}

enum status whole_plan_from_source(struct whole_plan *p, const json_t *definition,
                                   struct error *e) {
  const struct whole_documents documents = {
      p->source.config, p->source.generation, p->source.fixed ? "static" : NULL,
      json_string_value(json_object_get(definition, "tower"))};
  if (whole_translate(&p->words, &documents, &p->notes, e)) return whole_plan_blame(p, e);
  if (whole_words_override(&p->words, definition, &p->notes, e) ||
      whole_settings_read(&p->said, p->words.words, e))
    return e->status;
  if (p->source.file
          ? whole_find_family(p, e) || whole_find_parts(p, e) || whole_heads_find(p, e) ||
                whole_classifier_find(p, e) || whole_sizes_find(p, e) || whole_find_check_rest(p, e)
          : plan_random(p, e))
    return whole_plan_blame(p, e);
  if (check_used_tokens(p, definition, e)) return whole_plan_blame(p, e);
  if (p->kind == MODEL_SEQ2SEQ && p->said.token.begin < 0)
    notes_add(&p->notes, "no decoder start token: /score and /generate are not available; set "
                         "\"begin\" in the definition");
  return STATUS_OK;
}

enum status whole_plan_make(struct whole_plan *p, const json_t *definition, const char *directory,
                            struct error *e) {
  struct whole_settings own;
  *p = (struct whole_plan){0};
  if (whole_settings_read(&own, definition, e) ||
      whole_source_open(&p->source, definition, directory, e))
    return e->status;
  if (whole_plan_from_source(p, definition, e)) return e->status;
  return whole_adapter_find(p, definition, directory, e);
}
