/* stack_answer_sequences: the sequences of an answer, each an object in the list of its text.
 *
 * To the plan of the answer a sequence is as many rows as it shows parts, which are written one by
 * one; the first one is behind its tokens and what belongs to each. */
#include "server/model/answer/stack_answer_sequences.h"

#include "core/base/size.h"
#include "server/model/answer/stack_answer.h"
#include "server/model/answer/stack_answer_parts.h"
#include "server/model/answer/stack_detokenizer.h"
#include "server/model/answer/stack_words.h"

static const size_t zero = 0;

struct stack_listed {
  const struct stack_request *of;
  size_t parts;
  struct stack_part *part; /* [parts] of each sequence */
  size_t each, rows;       /* of each sequence, at least one; of each text */
  size_t steps;            /* of a search, at most */
  size_t numbers;          /* of a part, at most */
};

enum {
  AROUND_ROOM = 96,                             /* the names of a sequence and its own numbers */
  TOKEN_ROOM = sizeof "-2147483648,",           /* of its tokens */
  PLACE_ROOM = TOKEN_ROOM + NUMBER_TEXT_MAX + 4 /* of a token with all but the likeliest */
};

size_t stack_sequence_room(const struct stack_request *r, size_t most, size_t top) {
  const size_t text =
      r->detokenizer ? stack_detokenizer_room(r->detokenizer, most, r->tells_tokens) : 0;
  size_t room;
  if (!size_mul(most, PLACE_ROOM + top * STACK_TOP_ROOM, &room) ||
      !size_add(room, AROUND_ROOM, &room) || !size_add(room, text, &room))
    return SIZE_MAX;
  return room;
}

static char *write_tokens(const struct stack_sequence *q, size_t count, char *out) {
  out = answer_write_text(out, "{\"tokens\":[");
  for (size_t t = 0; t < count; t++) {
    if (t > 0) *out++ = ',';
    out = number_write_integer(out, q->token[t]);
  }
  return answer_write_text(out, "]");
}

static char *write_logs(const struct stack_sequence *q, size_t count, char *out) {
  out = answer_write_text(out, ",\"log_probabilities\":");
  out = number_write_rows(out, q->log_probability, 1, count);
  return out;
}

/* The object, but for its end. */
static char *write_sequence(const struct stack_request *r, size_t index, char *out) {
  const struct stack_generation *g = &r->generation;
  const struct stack_sequence *q = &g->sequence[index];
  const size_t count = stack_sequence_count(q), top = g->top_count;
  out = write_tokens(q, count, out);
  if (r->detokenizer) out = stack_detokenizer_write(r->detokenizer, index, out);
  out = answer_write_text(out, ",\"score\":");
  out = number_write(out, (float)q->score);
  out = answer_write_text(out, ",\"finish\":\"");
  out = answer_write_text(out, stack_finish_name(q->finish));
  out = answer_write_text(out, "\"");
  out = write_logs(q, count, out);
  if (top > 0) {
    out = answer_write_text(out, ",\"top\":[");
    for (size_t t = 0; t < count; t++) {
      if (t > 0) *out++ = ',';
      out = stack_write_top(out, q->top_token + t * top, q->top_log_probability + t * top, top);
    }
    *out++ = ']';
  }
  return out;
}

/* Are both parts members of one group? */
static bool are_together(const struct stack_listed *l, size_t part, size_t other) {
  return other < l->parts && l->part[part].group == l->part[other].group;
}

static char *write_part(const struct stack_listed *l, size_t part, size_t item, char *out) {
  const struct stack_part *p = &l->part[part];
  if (part == 0 || !are_together(l, part, part - 1)) {
    *out++ = '"';
    out = answer_write_text(out, p->group);
    out = answer_write_text(out, "\":{");
  }
  *out++ = '"';
  out = answer_write_text(out, p->name);
  out = answer_write_text(out, "\":");
  out = stack_part_write(l->of, p, item, out);
  if (!are_together(l, part, part + 1)) *out++ = '}';
  return out;
}

static char *write_sequences(const struct answer_rows *r, char *out) {
  const struct stack_listed *l = r->section->data;
  for (size_t i = r->first; i < r->first + r->count; i++) {
    const size_t item = r->item * l->of->each + i / l->each, part = i % l->each;
    if (i > r->first) *out++ = ',';
    if (part == 0) out = write_sequence(l->of, item, out);
    if (part == 0 && l->parts > 0) *out++ = ',';
    if (l->parts > 0) out = write_part(l, part, item, out);
    if (part + 1 == l->each) *out++ = '}';
  }
  return out;
}

/* A search may find fewer than are asked for. */
static size_t rows_there(const struct answer_section *s, size_t item) {
  const struct stack_listed *l = s->data;
  const struct stack_sequence *q = &l->of->generation.sequence[item * l->of->each];
  size_t found = 0;
  while (found < l->of->returns && stack_sequence_count(&q[found]) > 0) found++;
  return found * l->each;
}

/* --- the section --- */

/* Each step is a row: the ways that went on from it. */
static char *write_steps(const struct answer_rows *r, char *out) {
  const struct stack_listed *l = r->section->data;
  const struct stack_search *search = &l->of->generation.search[r->item];
  for (size_t step = r->first; step < r->first + r->count; step++) {
    if (step > r->first) *out++ = ',';
    out = stack_write_beams(out, search->beam + step * l->of->each, search->count[step]);
  }
  return out;
}

static size_t steps_there(const struct answer_section *s, size_t item) {
  const struct stack_listed *l = s->data;
  return l->of->generation.search[item].steps;
}

static void add_search(struct stack_listing *l, struct stack_listed *listed) {
  struct answer_section *s = stack_listing_add(l, NULL, "search");
  const struct stack_sequence *q = l->r->generation.sequence;
  for (size_t i = 0; i < l->r->texts; i++)
    listed->steps = size_max(listed->steps, q[i * l->r->each].most);
  s->number = NUMBER_TOKEN; /* text in any case */
  s->batch = true;
  s->items = l->r->texts;
  s->rows = (struct answer_sizes){&listed->steps, 0};
  s->there = steps_there;
  s->width = (struct answer_sizes){&l->r->each, 0};
  s->row_room = ROW_ROOM + l->r->each * STACK_BEAM_ROOM;
  s->begin = (struct answer_sizes){&zero, 0};
  s->data = listed;
  s->write = write_steps;
}

static struct stack_listed *list_parts(const struct stack_request *r, struct arena *a,
                                       struct error *e) {
  struct stack_listed *l = arena_alloc(a, 1, sizeof *l, e);
  struct stack_part *part = arena_alloc(a, stack_parts_most(r), sizeof *part, e);
  if (!l || !part) return NULL;
  const size_t parts = stack_parts_list(r, part);
  *l = (struct stack_listed){.of = r, .parts = parts, .part = part, .each = size_max(parts, 1)};
  l->rows = r->returns * l->each;
  return l;
}

/* The bytes that a row may need beside the numbers of a part. */
static size_t row_room(struct stack_listed *l) {
  const struct stack_generation *g = &l->of->generation;
  size_t room = 0;
  for (size_t i = 0; i < l->of->main.run->geometry.items; i++) {
    size_t part = 0;
    for (size_t p = 0; p < l->parts; p++) {
      part = size_max(part, stack_part_room(l->of, &l->part[p], i));
      l->numbers = size_max(l->numbers, stack_part_numbers(l->of, &l->part[p], i));
    }
    if (!size_add(part, stack_sequence_room(l->of, g->sequence[i].most, g->top_count), &part))
      return SIZE_MAX;
    room = size_max(room, part);
  }
  return room;
}

enum status stack_answer_sequences(struct stack_listing *l, struct arena *a, struct error *e) {
  struct stack_listed *listed = list_parts(l->r, a, e);
  if (!listed) return e->status;
  struct answer_section *s = stack_listing_add(l, NULL, "sequences");
  s->number = NUMBER_TOKEN; /* text in any case */
  s->batch = true;
  s->items = l->r->texts;
  s->rows = (struct answer_sizes){&listed->rows, 0};
  s->there = rows_there;
  s->row_room = row_room(listed);
  s->width = (struct answer_sizes){&listed->numbers, 0};
  s->begin = (struct answer_sizes){&zero, 0};
  s->data = listed;
  s->write = write_sequences;
  if (l->r->search) add_search(l, listed);
  return STATUS_OK;
}

/* --- arrays beside it --- */

static size_t most_of(const struct stack_request *r, struct answer_sizes sizes) {
  size_t most = 0;
  for (size_t i = 0; i < r->main.run->geometry.items; i++)
    most = size_max(most, answer_size(sizes, i));
  return most;
}

void stack_answer_tokens(const struct stack_request *r, struct answer_section *s) {
  s->several = s->padded = true;
  s->alike = false;
  s->rows = STACK_OF_SEQUENCES(r, most);
  s->padded_rows = most_of(r, s->rows);
}

void stack_answer_keys(const struct stack_request *r, struct answer_section *s) {
  s->width = STACK_OF_SEQUENCES(r, keys);
  s->padded_width = most_of(r, s->width);
}

enum status stack_answer_sources(const struct stack_request *r, struct answer_section *s,
                                 struct arena *a, struct error *e) {
  const size_t items = r->main.run->geometry.items;
  size_t *rows = arena_alloc(a, items, sizeof *rows, e);
  for (size_t i = 0; rows && i < items; i++) rows[i] = stack_request_source_rows(r, i);
  s->width = (struct answer_sizes){items ? rows : &zero, sizeof *rows};
  if (rows) s->padded_width = most_of(r, s->width);
  return e->status;
}

static void keep_returned(const struct stack_request *r, struct answer_sizes *sizes,
                          struct arena *a, struct error *e) {
  size_t *kept = arena_alloc(a, r->texts * r->returns, sizeof *kept, e);
  for (size_t i = 0; kept && i < r->texts * r->returns; i++)
    kept[i] = answer_size(*sizes, i / r->returns * r->each + i % r->returns);
  if (kept && r->texts > 0) *sizes = (struct answer_sizes){kept, sizeof *kept};
}

enum status stack_answer_returned(const struct stack_request *r, struct answer_section *s,
                                  size_t sections, struct arena *a, struct error *e) {
  if (r->returns == r->each) return STATUS_OK;
  for (size_t i = 0; i < sections; i++) {
    s[i].items = r->texts * r->returns;
    keep_returned(r, &s[i].rows, a, e);
    keep_returned(r, &s[i].width, a, e);
    keep_returned(r, &s[i].begin, a, e);
  }
  return e->status;
}

/* Of the sequences that are shown. */
size_t stack_answer_generated(const void *request) {
  const struct stack_request *r = request;
  size_t tokens = 0;
  for (size_t i = 0; i < r->main.run->geometry.items; i++)
    if (i % r->each < r->returns) tokens += stack_sequence_count(&r->generation.sequence[i]);
  return tokens;
}
