/* stack_ablation_answer: the sections of the answer: how much is lost without each head, and the
 * heads in that order. */
#include "server/model/answer/stack_ablation_answer.h"

#include <stdio.h>

#include "server/model/answer/stack_answer.h"
#include "server/number/number.h"

static const size_t one = 1, zero = 0;

/* --- names --- */

static const struct stack_side *side_of(const struct stack_request *r,
                                        const struct stack_cut *cut) {
  return cut->of_source ? &r->source : &r->main;
}

static void make_name(const struct stack_request *r, const struct stack_cut *cut,
                      char name[STACK_ABLATION_NAME_ROOM]) {
  const struct stack_side *s = side_of(r, cut);
  snprintf(name, STACK_ABLATION_NAME_ROOM, "%.12s.%zu%s", s->form->name, cut->layer,
           stack_side_ending(s, cut->attention));
}

char *stack_ablation_write_name(const struct stack_request *r, const struct stack_cut *cut,
                                char *out) {
  char name[STACK_ABLATION_NAME_ROOM];
  make_name(r, cut, name);
  *out++ = '"';
  out = answer_write_text(out, name);
  *out++ = '"';
  return out;
}

/* --- what is written --- */

static char *write_full(const struct answer_rows *r, char *out) {
  const struct stack_request *of = r->section->data;
  return number_write(out, (float)of->ablation.full);
}

/* What is lost without the heads of an attention, which lie side by side. */
static char *write_losses(const struct answer_rows *r, char *out) {
  const struct stack_cut *cut = r->section->data;
  for (size_t i = r->first; i < r->first + r->count; i++) {
    if (i > r->first) *out++ = ',';
    out = number_write(out, (float)cut[i].loss);
  }
  return out;
}

/* ["decoder.0.self",3],... */
static char *write_ranking(const struct answer_rows *r, char *out) {
  const struct stack_request *of = r->section->data;
  for (size_t i = r->first; i < r->first + r->count; i++) {
    const struct stack_cut *cut = &of->ablation.cut[of->ablation.ranking[i]];
    if (i > r->first) *out++ = ',';
    *out++ = '[';
    out = stack_ablation_write_name(of, cut, out);
    *out++ = ',';
    out = number_write_integer(out, (int64_t)cut->head);
    *out++ = ']';
  }
  return out;
}

/* Where the client of a stream has left, not all is computed: those heads have no rank. */
static size_t count_ranked(const struct answer_section *s, size_t item) {
  const struct stack_request *of = s->data;
  (void)item;
  return atomic_load_explicit(&of->ablation.done, memory_order_acquire);
}

/* --- the list --- */

struct listing {
  const struct stack_request *r;
  struct answer_content *content;
  char (*name)[STACK_ABLATION_NAME_ROOM]; /* [attentions] */
  size_t names;
};

static struct answer_section *add(struct listing *l, const char *name, const void *data,
                                  char *(*write)(const struct answer_rows *, char *)) {
  struct answer_section *s = &l->content->section[l->content->sections++];
  *s = (struct answer_section){.name = name,
                               .bare = true,
                               .items = 1,
                               .heads = 1,
                               .rows = {&one, 0},
                               .width = {&one, 0},
                               .begin = {&zero, 0},
                               .data = data,
                               .write = write};
  return s;
}

/* The heads of an attention, if they are measured. */
static void add_attention(struct listing *l, const struct stack_side *s, size_t attention) {
  const struct stack_ablation *w = &l->r->ablation;
  const bool of_source = s != &l->r->main;
  size_t i = 0;
  if (!s->wish[attention].ablation) return;
  while (w->cut[i].of_source != of_source || w->cut[i].attention != attention) i++;
  make_name(l->r, &w->cut[i], l->name[l->names]);
  struct answer_section *section = add(l, l->name[l->names++], &w->cut[i], write_losses);
  section->group = "heads";
  section->rows = (struct answer_sizes){&stack_side_shape(s, attention)->heads, 0};
}

static void add_all(struct listing *l) {
  const struct stack_request *r = l->r;
  const bool logs = r->ablation.measure == STACK_MEASURE_LOGS;
  l->content->section[l->content->sections++] =
      answer_section_text("measure", logs ? "\"log_probability\"" : "\"outputs\"");
  if (logs) add(l, "log_probability", r, write_full)->single = true;
  for (unsigned n = 0; n < STACK_SIDES; n++) {
    const struct stack_side *s = stack_request_side(r, n);
    for (size_t i = 0; s->stack && i < stack_form_attentions(s->form); i++)
      add_attention(l, s, stack_side_in_order(s, i));
  }
  struct answer_section *ranking = add(l, "ranking", r, write_ranking);
  ranking->there = count_ranked;
  ranking->rows = (struct answer_sizes){&r->ablation.cuts, 0};
  ranking->row_room = STACK_ABLATION_NAME_ROOM + COUNT_ROOM + ROW_ROOM;
}

enum status stack_ablation_answer_plan(struct answer *a, const char *model,
                                       const struct stack_request *r,
                                       const struct body_limits *limits, struct arena *arena,
                                       struct error *e) {
  enum { BESIDE = 3 };
  size_t attentions = 0;
  for (unsigned n = 0; n < STACK_SIDES; n++)
    if (stack_request_side(r, n)->stack)
      attentions += stack_form_attentions(stack_request_side(r, n)->form);
  struct answer_content *content = arena_alloc(arena, 1, sizeof *content, e);
  struct answer_section *section = arena_alloc(arena, attentions + BESIDE, sizeof *section, e);
  struct listing l = {.r = r,
                      .content = content,
                      .name = arena_alloc(arena, attentions, sizeof *l.name, e)};
  *a = (struct answer){.form = ANSWER_JSON};
  if (e->status) return e->status;
  *content = (struct answer_content){.model = model, .section = section};
  add_all(&l);
  content->has_usage = true;
  content->usage = stack_answer_usage(r);
  return answer_plan(a, ANSWER_JSON, content, limits->max_answer_bytes, arena, e);
}
