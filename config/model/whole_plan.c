/* whole_plan: makes the plan of a whole model from its definition. */
#include "config/model/whole_plan.h"

#include <stdlib.h>
#include <string.h>

#include "config/document/text.h"
#include "config/model/whole_find.h"
#include "config/model/whole_rest.h"
#include "config/model/whole_sizes.h"

enum status whole_plan_blame(const struct whole_plan *p, struct error *e) {
  whole_words_blame(&p->words, e);
  return p->source.path ? text_before(e, "%.100s: ", text_tail(p->source.path)) : e->status;
}

/* What has no default, where there are no tensors to tell it. */
static enum status check_random(const struct whole_plan *p, struct error *e) {
  const struct whole_settings *s = &p->said;
  const char *missing = !s->has_kind       ? "kind"
                        : !s->layers       ? "layers"
                        : !s->width        ? "width"
                        : !s->heads        ? "heads"
                        : !s->forward_size ? "feed_forward"
                        : !s->vocabulary   ? "vocabulary"
                                           : NULL;
  return missing ? error_set(e, STATUS_CONFIG, "%s: required with random", missing) : STATUS_OK;
}

/* The tokens of a random model, where they are not said. */
static void settle_random_tokens(struct whole_plan *p) {
  struct whole_tokens *t = &p->said.token;
  if (!json_object_get(p->words.words, "begin")) t->begin = 1;
  if (!json_object_get(p->words.words, "pad")) t->pad = 0;
  if (!json_object_get(p->words.words, "end")) {
    t->ends = 1;
    t->end[0] = 2;
  }
}

static enum status plan_random(struct whole_plan *p, struct error *e) {
  if (check_random(p, e)) return e->status;
  p->kind = p->said.kind;
  size_t row = 0;
  while (whole_family_at(row)->decodes != (p->kind == MODEL_DECODER)) row++;
  p->family = whole_family_at(row);
  must(strcmp(p->family->name, "plain") == 0);
  settle_random_tokens(p);
  return whole_sizes_find(p, e);
}

static enum status plan_files(struct whole_plan *p, struct error *e) {
  if (whole_find_family(p, e) || whole_find_parts(p, e) || whole_sizes_find(p, e) ||
      whole_rest_check(p, e))
    return e->status;
  return STATUS_OK;
}

/* Tokens of a model of one's own must be in its vocabulary; the library's files name some that are
 * not, and never use them. */
static enum status check_tokens(const struct whole_plan *p, struct error *e) {
  const struct whole_tokens *t = &p->said.token;
  const int64_t vocabulary = (int64_t)p->form.embedding.tokens;
  const int64_t token[] = {t->begin, t->pad, t->forced_begin, t->forced_end};
  static const char *const key[] = {"begin", "pad", "forced_begin", "forced_end"};
  if (p->family->keys || !vocabulary) return STATUS_OK;
  for (size_t i = 0; i < 4; i++)
    if (token[i] >= vocabulary)
      return error_set(e, STATUS_CONFIG, "%s: %jd is outside the vocabulary of %jd", key[i],
                       (intmax_t)token[i], (intmax_t)vocabulary);
  for (size_t i = 0; i < t->ends; i++)
    if (t->end[i] >= vocabulary)
      return error_set(e, STATUS_CONFIG, "end: %jd is outside the vocabulary of %jd",
                       (intmax_t)t->end[i], (intmax_t)vocabulary);
  return STATUS_OK;
}

enum status whole_plan_settle(struct whole_plan *p, const json_t *definition, struct error *e) {
  if (whole_words_make(&p->words, p->source.config, p->source.generation, e))
    return whole_plan_blame(p, e);
  if (whole_words_override(&p->words, definition, &p->notes, e) ||
      whole_settings_read(&p->said, p->words.words, e))
    return e->status;
  if (p->source.file ? plan_files(p, e) : plan_random(p, e)) return whole_plan_blame(p, e);
  return check_tokens(p, e);
}

enum status whole_plan_make(struct whole_plan *p, const json_t *definition, const char *directory,
                            struct error *e) {
  struct whole_settings own;
  *p = (struct whole_plan){0};
  if (whole_settings_read(&own, definition, e) ||
      whole_source_open(&p->source, definition, directory, e))
    return e->status;
  return whole_plan_settle(p, definition, e);
}

void whole_plan_free(struct whole_plan *p) {
  whole_source_close(&p->source);
  whole_words_free(&p->words);
  free(p->layer);
  free(p->used);
  *p = (struct whole_plan){0};
}
