/* stack_ablation_answer: the response to an ablation of heads, and its events: how much is lost
 * without each head, and the heads in that order. */
#include "server/model/answer/stack_ablation_answer.h"

#include <stdio.h>
#include <string.h>

#include "core/base/size.h"
#include "server/model/answer/stack_answer.h"
#include "server/model/answer/stack_stream.h"
#include "server/number/number.h"

enum {
  NAME_SIZE = 48, /* of an attention's name with quotes */
  HEAD_ROOM = 96 + NAME_SIZE + NUMBER_WRITE_MARGIN,
  HELD_MOST =
      STACK_PROBLEM_MOST + STACK_AROUND_PROBLEM /* bytes of an event, except the response's */
};

_Static_assert((int)HEAD_ROOM <= (int)HELD_MOST, "the event of a head fits");

static const size_t one = 1, zero = 0;

/* Writes the name of a head's attention, "decoder.0.self", which ends with a null byte, and returns
 * the place of that. */
static char *write_name(const struct stack_request *r, const struct stack_cut *cut, char *out) {
  const struct stack_side *s = cut->of_source ? &r->source : &r->main;
  return out + snprintf(out, NAME_SIZE, "%.12s.%zu%s", s->form->name, cut->layer,
                        stack_side_ending(s, cut->attention));
}

/* Heads that were measured. The numbers of so many may be read. */
static size_t count_measured(const struct stack_request *r) {
  return atomic_load_explicit(&r->ablation.done, memory_order_acquire);
}

/* --- sections --- */

static char *write_full(const struct answer_rows *r, char *out) {
  const struct stack_request *of = r->section->data;
  return number_write(out, (float)of->ablation.full);
}

/* Writes the losses of an attention's heads, which lie next to each other. */
static char *write_losses(const struct answer_rows *r, char *out) {
  const struct stack_cut *cut = r->section->data;
  for (size_t i = r->first; i < r->first + r->count; i++) {
    if (i > r->first) *out++ = ',';
    out = number_write(out, (float)cut[i].loss);
  }
  return out;
}

/* Writes ["decoder.0.self",3],... */
static char *write_ranking(const struct answer_rows *r, char *out) {
  const struct stack_request *of = r->section->data;
  for (size_t i = r->first; i < r->first + r->count; i++) {
    const struct stack_cut *cut = &of->ablation.cut[of->ablation.ranking[i]];
    out = answer_write_text(out, i > r->first ? ",[\"" : "[\"");
    out = answer_write_text(write_name(of, cut, out), "\",");
    out = number_write_integer(out, (int64_t)cut->head);
    *out++ = ']';
  }
  return out;
}

/* Heads with a rank: fewer than all if the client of a stream has left. */
static size_t count_ranked(const struct answer_section *s, size_t item) {
  (void)item;
  return count_measured(s->data);
}

static struct answer_section *add(struct answer_content *c, const char *name, const void *data,
                                  char *(*write)(const struct answer_rows *, char *)) {
  struct answer_section *s = &c->section[c->sections++];
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

enum status stack_ablation_answer_plan(struct answer *a, const char *model,
                                       const struct stack_request *r,
                                       const struct body_limits *limits, struct arena *arena,
                                       struct error *e) {
  enum { BESIDE = 3 };
  const struct stack_ablation *w = &r->ablation;
  const bool logs = w->measure == STACK_MEASURE_LOGS;
  size_t attentions = 0;
  for (unsigned n = 0; n < STACK_SIDES; n++) {
    const struct stack_side *s = stack_request_side(r, n);
    attentions += s->stack ? stack_form_attentions(s->form) : 0;
  }
  struct answer_content *content = arena_alloc(arena, 1, sizeof *content, e);
  struct answer_section *section = arena_alloc(arena, attentions + BESIDE, sizeof *section, e);
  char(*name)[NAME_SIZE] = arena_alloc(arena, attentions, sizeof *name, e);
  *a = (struct answer){.form = ANSWER_JSON};
  if (e->status) return e->status;
  *content = (struct answer_content){.model = model, .section = section};
  section[content->sections++] =
      answer_section_text("measure", logs ? "\"log_probability\"" : "\"outputs\"");
  if (logs) add(content, "log_probability", r, write_full)->single = true;

  /* The heads of each attention that is measured. */
  for (unsigned n = 0; n < STACK_SIDES; n++) {
    const struct stack_side *s = stack_request_side(r, n);
    const bool of_source = s != &r->main;
    for (size_t place = 0; s->stack && place < stack_form_attentions(s->form); place++) {
      const size_t at = stack_side_in_order(s, place);
      size_t i = 0;
      if (!s->wish[at].ablation) continue;
      while (w->cut[i].of_source != of_source || w->cut[i].attention != at) i++;
      write_name(r, &w->cut[i], *name);
      struct answer_section *heads = add(content, *name++, &w->cut[i], write_losses);
      heads->group = "heads";
      heads->rows = (struct answer_sizes){&stack_side_shape(s, at)->heads, 0};
    }
  }
  struct answer_section *ranking = add(content, "ranking", r, write_ranking);
  ranking->there = count_ranked;
  ranking->rows = (struct answer_sizes){&w->cuts, 0};
  ranking->row_room = NAME_SIZE + COUNT_ROOM + ROW_ROOM;
  content->has_usage = true;
  content->usage = stack_answer_usage(r);
  return answer_plan(a, ANSWER_JSON, content, limits->max_answer_bytes, arena, e);
}

/* --- events --- */

enum status stack_ablation_stream_init(struct stack_ablation_stream *s,
                                       const struct stack_request *of, const struct answer *answer,
                                       struct arena *a, struct error *e) {
  *s = (struct stack_ablation_stream){.of = of,
                                      .answer = answer,
                                      .held = arena_alloc(a, HELD_MOST, 1, e)};
  return e->status;
}

bool stack_ablation_stream_has_begun(const struct stack_ablation_stream *s) {
  return count_measured(s->of) > 0;
}

static char *write_head(const struct stack_ablation_stream *s, const struct stack_cut *cut,
                        char *out) {
  out = answer_write_text(out, "data: {\"attention\":\"");
  out = answer_write_text(write_name(s->of, cut, out), "\",\"head\":");
  out = number_write_integer(out, (int64_t)cut->head);
  out = answer_write_text(out, ",\"loss\":");
  out = number_write(out, (float)cut->loss);
  return answer_write_text(out, "}\n\n");
}

/* Sets s->text to the next part of the events: a head; then an error, or the response as one event,
 * whose pieces are between "data: " and two line ends. False: there is none, or none yet. */
static bool next_part(struct stack_ablation_stream *s, bool done, const char *problem) {
  const struct answer *a = s->answer;
  s->text = s->held;
  if (s->sent < count_measured(s->of)) {
    s->left = (size_t)(write_head(s, &s->of->ablation.cut[s->sent++], s->held) - s->held);
    return true;
  }
  if (!done || s->part > (problem ? 0 : a->pieces + 1)) return false;
  const size_t part = s->part++;
  if (problem) {
    must(strlen(problem) + STACK_AROUND_PROBLEM <= HELD_MOST);
    s->left = (size_t)(stack_events.problem(problem, s->held) - s->held);
  } else if (part > 0 && part <= a->pieces) {
    s->text = a->piece[part - 1].iov_base;
    s->left = a->piece[part - 1].iov_len;
  } else {
    s->text = part == 0 ? "data: " : "\n\n";
    s->left = strlen(s->text);
  }
  return true;
}

size_t stack_ablation_stream_write(struct stack_ablation_stream *s, bool done, const char *problem,
                                   char *out, size_t room) {
  size_t bytes = 0;
  while (bytes < room && (s->left > 0 || next_part(s, done, problem))) {
    const size_t n = size_min(room - bytes, s->left);
    if (n > 0) memcpy(out + bytes, s->text, n);
    s->text += n;
    s->left -= n;
    bytes += n;
  }
  return bytes;
}
