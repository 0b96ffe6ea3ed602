/* stack_answer: the sections of a response to a model's request: which there are, and where their
 * numbers lie. Sequences and their parts are those of stack_answer_sequences. */
#include "server/model/answer/stack_answer.h"

#include <stdio.h>

#include "core/base/size.h"
#include "server/attention/attention_trace.h"
#include "server/model/answer/stack_answer_fill.h"
#include "server/model/answer/stack_answer_parts.h"
#include "server/model/answer/stack_answer_sequences.h"
#include "server/model/answer/stack_answer_sparse.h"
#include "server/model/answer/stack_entities.h"
#include "server/model/answer/stack_spans.h"
#include "server/model/answer/stack_token_json.h"
#include "server/model/fields/stack_fields.h"
#include "server/text/json_string.h"
#include "server/tokenize/tokenize_answer.h"

static const size_t one = 1, zero = 0;

/* --- outputs --- */

/* Makes of a section with all rows one with the vectors of those that are kept. */
static void keep(const struct stack_request *r, struct answer_section *s) {
  const struct stack_kept *first = r->kept;
  s->padded_rows = r->most_kept;
  s->alike = false;
  s->padded = true;
  s->rows = (struct answer_sizes){s->items ? &first->count : &r->most_kept, sizeof *first};
  s->begin = (struct answer_sizes){s->items ? &first->first : &zero, sizeof *first};
}

/* Adds a vector of each row that is kept, and where the row is in its item. */
static void add_vectors(struct stack_listing *l) {
  const struct stack_request *r = l->r;
  const struct stack_run *run = r->main.run;
  struct answer_section *s = stack_answer_rows(l, &r->main, NULL, run->outputs, &run->output_size);
  s->name = "outputs";
  keep(r, s);
  s = stack_answer_rows(l, &r->main, NULL, NULL, &one);
  s->name = "positions";
  s->number = NUMBER_LENGTH;
  s->row_room = 0;
  s->data = r->positions;
  s->write = answer_write_integers;
  keep(r, s);
}

static void add_outputs(struct stack_listing *l) {
  const struct stack_run *run = l->r->main.run;
  if (stack_has_rows(run)) {
    stack_answer_rows(l, &l->r->main, NULL, run->outputs, &run->output_size)->name = "outputs";
    return;
  }
  struct answer_section *s = stack_listing_add(l, NULL, "outputs");
  s->batch = s->single = s->alike = true;
  s->rows = (struct answer_sizes){&run->geometry.items, 0};
  s->width = (struct answer_sizes){&run->output_size, 0};
  s->begin = (struct answer_sizes){&zero, 0};
  s->row_room = ROW_ROOM;
  s->data = run->outputs;
  s->write = answer_write_floats;
}

/* Writes a number of each row, the first one of a section with several. */
static char *write_column(const struct answer_rows *r, char *out) {
  const float *number = (const float *)r->section->data + answer_rows_index(r);
  for (size_t i = 0; i < r->count; i++) {
    if (i > 0) *out++ = ',';
    out = number_write(out, number[i * r->width]);
  }
  return out;
}

/* Adds the logits of each token as the first one, and as the last one of an answer. */
static void add_spans(struct stack_listing *l) {
  static const char *const names[] = {"start", "end"};
  const struct stack_run *run = l->r->main.run;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const float *first = run->outputs ? run->outputs + i : NULL;
    struct answer_section *s = stack_answer_rows(l, &l->r->main, NULL, first, &run->output_size);
    s->name = names[i];
    s->number = NUMBER_TOKEN; /* text in any case */
    s->write = write_column;
  }
}

/* --- scores --- */

/* Adds a section with a row of `width` numbers for each target. The run has numbers for all rows:
 * the rows of an item's targets lie together, but apart from the next item's, so that no such array
 * lies as it is sent. */
static struct answer_section *add_targets(struct stack_listing *l, const char *group,
                                          const char *name, const size_t *width, const void *data) {
  const struct stack_request *r = l->r;
  struct answer_section *s = stack_listing_add(l, group, name);
  s->batch = s->padded = true;
  s->alike = r->targets_alike;
  s->padded_rows = r->most_targets;
  s->padded_width = *width;
  s->items = r->main.run->geometry.items;
  s->rows =
      (struct answer_sizes){s->items ? &r->scored->count : &r->most_targets, sizeof *r->scored};
  s->width = (struct answer_sizes){width, 0};
  s->begin = (struct answer_sizes){s->items ? &r->scored->row : &zero, sizeof *r->scored};
  s->times = *width;
  s->row_room = ROW_ROOM;
  s->data = data;
  s->write = answer_write_floats;
  return s;
}

/* The same with numbers of a logit lens, where the targets of all items lie together. */
static struct answer_section *add_lens_targets(struct stack_listing *l, const void *data) {
  const struct stack_request *r = l->r;
  struct answer_section *s = add_targets(l, "lens", NULL, &r->logit_lens, data);
  s->begin = (struct answer_sizes){s->items ? &r->scored->first : &zero, sizeof *r->scored};
  return s;
}

/* Writes [{"token":3,"log_probability":-0.5},...] for each row. */
static char *write_tokens(const struct answer_rows *r, const int32_t *token, const float *log,
                          char *out) {
  size_t at = answer_rows_index(r);
  for (size_t row = 0; row < r->count; row++, at += r->width) {
    if (row > 0) *out++ = ',';
    out = stack_write_top(out, token + at, log + at, r->width);
  }
  return out;
}

static char *write_top(const struct answer_rows *r, char *out) {
  const struct stack_run *run = r->section->data;
  return write_tokens(r, run->top_tokens, run->top_log_probabilities, out);
}

static char *write_lens(const struct answer_rows *r, char *out) {
  const struct stack_lens *lens = r->section->data;
  return write_tokens(r, lens->token, lens->log_probability, out);
}

/* Adds the log probability of each target, and the most likely tokens in its place by the outputs.
 * In safetensors such tokens are two arrays, as those of add_lens. */
static void add_scores(struct stack_listing *l, enum answer_form form) {
  const struct stack_request *r = l->r;
  const struct stack_run *run = r->main.run;
  struct answer_section *s =
      add_targets(l, NULL, "log_probabilities", &one, run->log_probabilities);
  s->bare = true;
  s->row_room = 0;
  s->write = answer_write_bare;
  if (r->top > 0 && form == ANSWER_SAFETENSORS) {
    add_targets(l, "top", "token", &r->top, run->top_tokens)->number = NUMBER_TOKEN;
    add_targets(l, "top", "log_probability", &r->top, run->top_log_probabilities);
  } else if (r->top > 0) {
    s = add_targets(l, NULL, "top", &r->top, run);
    s->number = NUMBER_TOKEN;
    s->object_room = STACK_TOP_ROOM;
    s->row_room += r->top * STACK_TOP_ROOM;
    s->write = write_top;
  }
}

/* Adds the most likely tokens by each hidden state. */
static void add_lens(struct stack_listing *l, enum answer_form form) {
  const struct stack_request *r = l->r;
  const struct stack_side *main = &r->main;
  const struct stack_run *run = main->run;
  struct answer_section *s;
  for (size_t i = 0; r->logit_lens > 0 && i <= main->form->layers; i++) {
    static const struct stack_lens nothing = {0}; /* of a run that is not prepared */
    const struct stack_lens *lens = run->lens ? &run->lens[i] : &nothing;
    if (form == ANSWER_SAFETENSORS) {
      add_lens_targets(l, lens->token)->number = NUMBER_TOKEN;
      stack_listing_name(l, main, i, "", ".token");
      add_lens_targets(l, lens->log_probability);
      stack_listing_name(l, main, i, "", ".log_probability");
      continue;
    }
    s = add_lens_targets(l, lens);
    s->number = NUMBER_TOKEN;
    s->object_room = STACK_TOP_ROOM;
    s->row_room += r->logit_lens * STACK_TOP_ROOM;
    s->write = write_lens;
    stack_listing_name(l, main, i, "", "");
  }
}

/* Adds what a request is about, unless it generates. */
static void add_results(struct stack_listing *l, enum answer_form form, struct arena *a,
                        struct error *e) {
  if (l->r->fills_of)
    stack_answer_fill(l);
  else if (l->r->grouped)
    stack_entities_add(l, a, e);
  else if (l->r->windows)
    stack_spans_add(l, a, e);
  else if (stack_request_has_spans(l->r))
    add_spans(l);
  else if (l->r->scored)
    add_scores(l, form);
  else if (l->r->main.run->want_sparse)
    l->content->section[l->content->sections++] = stack_answer_sparse(l->r);
  else if (l->r->kept)
    add_vectors(l);
  else if (!l->r->generates)
    add_outputs(l);
  if (l->r->scored) add_lens(l, form);
}

/* --- the rest --- */

/* Adds the valid rows or targets of each item of a rectangle: the others are padding. */
static enum status add_lengths(struct stack_listing *l, const char *name, const int32_t *lens,
                               struct arena *arena, struct error *e) {
  enum { LENGTH_SIZE = 16 };
  const struct stack_request *r = l->r;
  const struct stack_side *reader = r->source.run ? &r->source : &r->main;
  struct answer_section *s = stack_listing_add(l, NULL, name);
  s->number = NUMBER_LENGTH;
  s->alike = true;
  s->rows = (struct answer_sizes){&reader->run->geometry.items, 0};
  s->width = (struct answer_sizes){&one, 0};
  s->begin = (struct answer_sizes){&zero, 0};
  s->data = lens;
  s->write = answer_write_integers;
  if (!r->unbatched) return STATUS_OK;
  char *alone = arena_alloc(arena, LENGTH_SIZE, 1, e);
  if (!alone) return e->status;
  snprintf(alone, LENGTH_SIZE, "%d", (int)lens[0]);
  s->instead = alone;
  s->items = 0;
  s->scalar = true;
  return STATUS_OK;
}

/* Adds the names of the classes as JSON. Safetensors has strings only in its metadata. */
static enum status add_labels(struct stack_listing *l, enum answer_form form, struct arena *a,
                              struct error *e) {
  enum { AROUND = 3 }; /* quotes and a comma */
  const struct whole *w = l->r->classes_of;
  size_t room = 3 + NUMBER_WRITE_MARGIN;
  for (size_t i = 0; i < w->classes; i++) room += AROUND + JSON_STRING_ROOM * strlen(w->label[i]);
  char *text = arena_alloc(a, room, 1, e), *out = text;
  if (!text) return e->status;
  *out++ = '[';
  for (size_t i = 0; i < w->classes; i++) {
    if (i > 0) *out++ = ',';
    out = json_string_write(w->label[i], strlen(w->label[i]), out);
  }
  *out++ = ']';
  *out = '\0';
  l->content->labels = text;
  if (form != ANSWER_SAFETENSORS)
    l->content->section[l->content->sections++] = answer_section_text("labels", text);
  return STATUS_OK;
}

/* --- all sections --- */

/* Adds the outputs that a v2 request names. */
static void add_v2(struct stack_listing *l) {
  const struct body_v2_asked *v2 = &l->r->v2;
  const struct stack_side *main = &l->r->main, *source = &l->r->source;
  l->content->id = v2->id;
  l->content->id_length = v2->id_length;
  for (size_t i = 0; i < v2->outputs; i++) {
    const enum stack_v2_output which = (enum stack_v2_output)v2->output[i].which;
    const struct stack_side *side = which == STACK_V2_ENCODER_ROWS && source->run ? source : main;
    if (which == STACK_V2_POOLER_OUTPUT || (which == STACK_V2_LOGITS && !main->run->want_logits))
      add_outputs(l); /* of a pooler or a classifier */
    else if (which == STACK_V2_LOGITS)
      stack_answer_rows(l, main, NULL, main->run->logits, &main->form->embedding.tokens);
    else
      stack_answer_rows(l, side, NULL, side->run->rows, &side->form->width);
    struct answer_section *s = &l->content->section[l->content->sections - 1];
    s->name = stack_output_name(which);
    s->binary = v2->output[i].binary;
  }
}

/* Adds what every other request gets. */
static enum status add_native(struct stack_listing *l, enum answer_form form, struct arena *arena,
                              struct error *e) {
  const struct stack_request *r = l->r;
  struct answer_content *c = l->content;
  const bool rectangles = form == ANSWER_SAFETENSORS || r->base64;
  if (r->generates && stack_answer_sequences(l, arena, e)) return e->status;
  add_results(l, form, arena, e);
  if (e->status) return e->status;
  if (r->classes_of && r->classes_of->label && !r->grouped && add_labels(l, form, arena, e))
    return e->status;
  if (stack_answer_parts(l, arena, e)) return e->status;

  if (r->tells_tokens) {
    struct answer_section *tokens = &c->section[c->sections];
    c->sections += TOKENIZE_SECTIONS;
    if (tokenize_answer_sections(r->tokenized, tokens, arena, e)) return e->status;
  }
  if (r->trace) c->section[c->sections++] = attention_trace_section(r->trace, arena, e);
  if (!rectangles || (r->generates && !r->source.run)) return e->status;
  if (add_lengths(l, "valid_lens", r->source.run ? r->source.lens : r->main.lens, arena, e))
    return e->status;
  if (r->kept) return add_lengths(l, "vector_lens", r->vector_lens, arena, e);
  return r->target_lens ? add_lengths(l, "target_lens", r->target_lens, arena, e) : STATUS_OK;
}

/* --- usage --- */

size_t stack_answer_given(const struct stack_request *r) {
  if (r->generates) return r->text_tokens;
  return r->main.run->geometry.q_rows + (r->source.run ? r->source.run->geometry.q_rows : 0);
}

size_t stack_answer_recalled(const struct stack_request *r) {
  size_t tokens = 0;
  for (size_t text = 0; text < r->texts; text++)
    tokens += r->generation.sequence[text * r->each].recalled;
  return tokens;
}

size_t stack_answer_generated(const void *request) {
  const struct stack_request *r = request;
  size_t tokens = 0;
  for (size_t i = 0; i < r->main.run->geometry.items; i++)
    if (i % r->each < r->returns) tokens += stack_sequence_count(&r->generation.sequence[i]);
  return tokens;
}

struct answer_usage stack_answer_usage(const struct stack_request *r) {
  const size_t tokens = stack_answer_given(r);
  if (!r->generates) return (struct answer_usage){.tokens = tokens};
  return (struct answer_usage){.tokens = tokens,
                               .cached = stack_answer_recalled(r),
                               .generated = stack_answer_generated,
                               .of = r};
}

void stack_answer_leave(struct stack_request *r) {
  if (r->main.run) stack_generation_end(&r->generation, r->main.run->geometry.items);
}

/* --- the plan --- */

/* An upper bound of the sections, of which `beside` are not parts of the model. */
static size_t count_sections(const struct stack_request *r, size_t beside) {
  enum { AN_ATTENTION = 3, OF_LENS = 2 };
  size_t count = beside;
  for (unsigned i = 0; i < STACK_SIDES; i++) {
    const struct stack_side *s = stack_request_side(r, i);
    if (s->run && s->run->wish) count += AN_ATTENTION * stack_form_attentions(s->form);
  }
  if (r->logit_lens > 0) count += OF_LENS * (r->main.form->layers + 1);
  return count;
}

enum status stack_answer_count(enum answer_form form, const struct stack_request *r,
                               struct arena *arena, size_t *bytes, struct error *e) {
  enum { BESIDE = 6 /* embeddings of both sides, and outputs */, FEW = 8 };
  struct answer_section few[FEW]; /* a small request takes no more memory for the count */
  struct answer_content content = {.base64 = r->base64, .section = few};
  struct stack_listing l = {.r = r, .content = &content};
  size_t sequences = 0;
  const size_t sections = count_sections(r, BESIDE);
  if (sections > FEW) content.section = arena_alloc(arena, sections, sizeof *content.section, e);
  if (!content.section) return e->status;
  if (form == ANSWER_V2) {
    add_v2(&l);
  } else {
    if (r->generates && stack_sequences_count(r, &sequences, arena, e)) return e->status;
    add_results(&l, form, arena, e);
    if (e->status || stack_answer_parts(&l, arena, e)) return e->status;
  }
  if (!size_add(answer_count(&content, form), sequences, bytes)) *bytes = SIZE_MAX;
  return STATUS_OK;
}

enum status stack_answer_plan(struct answer *a, enum answer_form form, const char *model,
                              const struct stack_request *r, const struct body_limits *limits,
                              struct arena *arena, struct error *e) {
  enum { BESIDE = 14 };
  const size_t sections = count_sections(r, BESIDE);
  struct answer_content *content = arena_alloc(arena, 1, sizeof *content, e);
  struct answer_section *section = arena_alloc(arena, sections, sizeof *section, e);
  struct stack_listing l = {.r = r,
                            .content = content,
                            .part = arena_alloc(arena, sections, sizeof *l.part, e)};
  *a = (struct answer){.form = form};
  if (e->status) return e->status;
  *content = (struct answer_content){.model = model,
                                     .unbatched = r->unbatched,
                                     .base64 = r->base64,
                                     .left = r->main.run->left,
                                     .section = section};
  if (form == ANSWER_V2)
    add_v2(&l);
  else if (add_native(&l, form, arena, e))
    return e->status;
  content->has_usage = form != ANSWER_V2;
  content->usage = stack_answer_usage(r);
  return answer_plan(a, form, content, limits->max_answer_bytes, arena, e);
}
