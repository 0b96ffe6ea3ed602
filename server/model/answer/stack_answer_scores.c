/* stack_answer_scores: the sections of the targets: how likely each is, the likeliest tokens, and
 * those that a logit lens shows of each hidden state.
 *
 * The run has numbers for each row, but only the rows that have a target are shown: those of an
 * item lie together, and apart from the next item's. So none of these arrays lies as it is sent. */
#include "server/model/answer/stack_answer_scores.h"

static const size_t one = 1, zero = 0;

/* Rows for the targets of each item, of `width` numbers in the run. */
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

/* --- the likeliest tokens --- */

/* [[{"token":3,"log_probability":-0.5},...],...]: a row of these for each target. */
static char *write_top(const struct answer_rows *r, char *out) {
  const struct stack_run *run = r->section->data;
  size_t at = answer_rows_index(r);
  for (size_t row = 0; row < r->count; row++, at += r->width) {
    if (row > 0) *out++ = ',';
    out = stack_write_top(out, run->top_tokens + at, run->top_log_probabilities + at, r->width);
  }
  return out;
}

/* The same of one hidden state. */
static char *write_lens(const struct answer_rows *r, char *out) {
  const struct stack_lens *lens = r->section->data;
  size_t at = answer_rows_index(r);
  for (size_t row = 0; row < r->count; row++, at += r->width) {
    if (row > 0) *out++ = ',';
    out = stack_write_top(out, lens->token + at, lens->log_probability + at, r->width);
  }
  return out;
}

/* As bytes these are two arrays. */
static void add_top(struct stack_listing *l, enum answer_form form) {
  const size_t *width = &l->r->top;
  const struct stack_run *run = l->r->main.run;
  struct answer_section *s;
  if (form == ANSWER_SAFETENSORS) {
    add_targets(l, "top", "token", width, run->top_tokens)->number = NUMBER_TOKEN;
    add_targets(l, "top", "log_probability", width, run->top_log_probabilities);
    return;
  }
  s = add_targets(l, NULL, "top", width, run);
  s->number = NUMBER_TOKEN;
  s->row_room += *width * STACK_TOP_ROOM;
  s->write = write_top;
}

/* Of a lens the targets of all items lie together. */
static struct answer_section *add_seen(struct stack_listing *l, const void *data) {
  const struct stack_request *r = l->r;
  struct answer_section *s = add_targets(l, "lens", NULL, &r->logit_lens, data);
  s->begin = (struct answer_sizes){s->items ? &r->scored->first : &zero, sizeof *r->scored};
  return s;
}

/* Under the names of the hidden states, the embedding's the first. As bytes two arrays each. */
static void add_lens(struct stack_listing *l, enum answer_form form) {
  const struct stack_side *main = &l->r->main;
  for (size_t i = 0; i <= main->form->layers; i++) {
    const struct stack_lens *lens = &main->run->lens[i];
    if (form == ANSWER_SAFETENSORS) {
      add_seen(l, lens->token)->number = NUMBER_TOKEN;
      stack_listing_name(l, main, i, "", ".token");
      add_seen(l, lens->log_probability);
      stack_listing_name(l, main, i, "", ".log_probability");
      continue;
    }
    struct answer_section *s = add_seen(l, lens);
    s->number = NUMBER_TOKEN;
    s->row_room += l->r->logit_lens * STACK_TOP_ROOM;
    s->write = write_lens;
    stack_listing_name(l, main, i, "", "");
  }
}

/* --- all of them --- */

void stack_answer_scores(struct stack_listing *l, enum answer_form form) {
  struct answer_section *s =
      add_targets(l, NULL, "log_probabilities", &one, l->r->main.run->log_probabilities);
  s->bare = true;
  s->row_room = 0;
  s->write = answer_write_bare;
  if (l->r->top > 0) add_top(l, form);
  if (l->r->logit_lens > 0) add_lens(l, form);
}
