/* stack_answer_sequences: the sequences of a response, each an object in the list of its text.
 *
 * The response is planned in rows. A sequence has one for each of its parts, which are hidden
 * states and attention of the passes that chose its tokens; the first row also has the tokens and
 * what belongs to each. */
#include "server/model/answer/stack_answer_sequences.h"

#include <stdio.h>

#include "core/base/size.h"
#include "server/model/answer/stack_detokenizer.h"
#include "server/text/base64.h"

static const size_t zero = 0;

/* --- the parts of a sequence --- */

enum stack_part_kind {
  STACK_PART_EMBEDDING,
  STACK_PART_INPUT,
  STACK_PART_HIDDEN,
  STACK_PART_WEIGHTS,
  STACK_PART_THUMBNAILS
};

struct stack_part {
  enum stack_part_kind kind;
  size_t attention;  /* or the layer, for a hidden state */
  const char *group; /* the object that it is a member of, like its neighbors of the same group */
  char name[STACK_PART_NAME_SIZE];
};

struct stack_sequences {
  const struct stack_request *of;
  struct stack_part *part; /* [parts] of each sequence */
  size_t parts;
  size_t each, rows; /* rows of each sequence, at least one; rows of each text */
  size_t steps;      /* of the longest search, at most */
  size_t numbers;    /* of the largest part */
};

static void add_part(struct stack_sequences *l, enum stack_part_kind kind, size_t attention,
                     size_t number, const char *ending, const char *after) {
  struct stack_part *to = &l->part[l->parts++];
  *to = (struct stack_part){.kind = kind, .attention = attention};
  to->group = kind < STACK_PART_WEIGHTS    ? "hidden"
              : kind == STACK_PART_WEIGHTS ? "attention"
                                           : "thumbnails";
  snprintf(to->name, sizeof to->name, "%.12s.%zu%s%s", l->of->main.form->name, number, ending,
           after);
}

static void add_attention(struct stack_sequences *l, bool thumbnails) {
  const struct stack_side *s = &l->of->main;
  for (size_t place = 0; s->run->wish && place < stack_form_attentions(s->form); place++) {
    const size_t at = stack_side_in_order(s, place);
    const enum stack_weights weights = s->wish[at].weights;
    if (weights != STACK_WEIGHTS_NONE && (weights == STACK_WEIGHTS_THUMBNAILS) == thumbnails)
      add_part(l, thumbnails ? STACK_PART_THUMBNAILS : STACK_PART_WEIGHTS, at,
               stack_side_layer(s, at), stack_side_ending(s, at), "");
  }
}

/* Lists the parts of each sequence, those of a group together. Arrays of floats in base64 are not
 * among them: they are sections of their own. NULL without memory. */
static struct stack_sequences *list_parts(const struct stack_request *r, struct arena *a,
                                          struct error *e) {
  enum { AN_ATTENTION = 3 }; /* parts of one */
  const struct stack_side *s = &r->main;
  const size_t attentions = s->run->wish ? stack_form_attentions(s->form) : 0;
  const size_t sorts = s->form->cross.heads ? 2 : 1;
  struct stack_sequences *l = arena_alloc(a, 1, sizeof *l, e);
  struct stack_part *part =
      arena_alloc(a, s->embedded + AN_ATTENTION * attentions, sizeof *part, e);
  if (!l || !part) return NULL;
  *l = (struct stack_sequences){.of = r, .part = part};
  if (s->embedded && !r->base64) add_part(l, STACK_PART_EMBEDDING, 0, 0, "", "");
  for (size_t place = 0; place < attentions && !r->base64; place++) {
    const size_t at = stack_side_in_order(s, place), layer = stack_side_layer(s, at);
    if (s->wish[at].input)
      add_part(l, STACK_PART_INPUT, at, layer, stack_side_ending(s, at), ".input");
    if (place % sorts + 1 == sorts && s->wish[layer].hidden)
      add_part(l, STACK_PART_HIDDEN, layer, layer + 1, "", "");
  }
  if (!r->base64) add_attention(l, false);
  add_attention(l, true);
  l->each = size_max(l->parts, 1);
  l->rows = r->returns * l->each;
  return l;
}

static const struct stack_wish *wish_of(const struct stack_request *r, const struct stack_part *p) {
  return &r->main.wish[p->attention];
}

static size_t heads_of(const struct stack_request *r, const struct stack_part *p) {
  if (wish_of(r, p)->weights == STACK_WEIGHTS_AVERAGE) return 1;
  return stack_side_shape(&r->main, p->attention)->heads;
}

/* The rows or columns of a thumbnail of `count` rows or keys. */
static size_t side(const struct stack_request *r, const struct stack_part *p, size_t count) {
  return size_min(count, wish_of(r, p)->thumbnail);
}

/* The keys of each row of weights: the number that there is room for, and the number after `count`
 * tokens. A source has all its keys from the beginning. */
static size_t keys_of(const struct stack_request *r, const struct stack_part *p, size_t item) {
  if (stack_side_is_across(&r->main, p->attention)) return stack_request_source_rows(r, item);
  return r->generation.sequence[item].keys;
}

static size_t keys_seen(const struct stack_request *r, const struct stack_part *p, size_t item,
                        size_t count) {
  const size_t keys = keys_of(r, p, item);
  if (stack_side_is_across(&r->main, p->attention)) return keys;
  return keys - (r->generation.sequence[item].most - count);
}

/* --- parts as text --- */

static const char THUMBNAIL_SHAPE[] = "{\"shape\":", THUMBNAIL_BYTES[] = ",\"base64\":\"",
                  THUMBNAIL_END[] = "\"}";

/* Writes rows [count, width], each `step` numbers after the one before. Rows that follow each other
 * are written together, which is faster. */
static char *write_rows(const float *rows, size_t count, size_t width, size_t step, char *out) {
  *out++ = '[';
  if (step == width) out = number_write_rows(out, rows, count, width);
  for (size_t t = 0; t < count && step != width; t++) {
    if (t > 0) *out++ = ',';
    out = number_write_rows(out, rows + t * step, 1, width);
  }
  *out++ = ']';
  return out;
}

static char *write_weights(const struct stack_request *r, const struct stack_part *p, size_t item,
                           char *out) {
  const struct stack_sequence *q = &r->generation.sequence[item];
  const struct stack_shown *shown = &r->main.run->shown[p->attention];
  const bool average = wish_of(r, p)->weights == STACK_WEIGHTS_AVERAGE;
  const size_t count = stack_sequence_count(q), room = keys_of(r, p, item),
               keys = keys_seen(r, p, item, count);
  const float *plane = shown->weights + shown->weights_at[item];
  if (average) return write_rows(plane, count, keys, room, out);
  *out++ = '[';
  for (size_t head = 0; head < heads_of(r, p); head++) {
    if (head > 0) *out++ = ',';
    out = write_rows(plane + head * q->most * room, count, keys, room, out);
  }
  *out++ = ']';
  return out;
}

static char *write_thumbnails(const struct stack_request *r, const struct stack_part *p,
                              size_t item, char *out) {
  const struct stack_sequence *q = &r->generation.sequence[item];
  const struct stack_shown *shown = &r->main.run->shown[p->attention];
  const size_t count = stack_sequence_count(q), keys = keys_seen(r, p, item, count);
  const struct answer_array a = {.rank = 3,
                                 .dim = {heads_of(r, p), side(r, p, count), side(r, p, keys)}};
  out = answer_write_text(out, THUMBNAIL_SHAPE);
  out = answer_write_shape(out, &a);
  out = answer_write_text(out, THUMBNAIL_BYTES);
  out = base64_write(out, shown->thumbnails + shown->thumbnails_at[item],
                     a.dim[0] * a.dim[1] * a.dim[2]);
  return answer_write_text(out, THUMBNAIL_END);
}

static char *write_value(const struct stack_request *r, const struct stack_part *p, size_t item,
                         char *out) {
  const struct stack_sequence *q = &r->generation.sequence[item];
  const struct stack_run *run = r->main.run;
  const struct stack_shown *shown = run->shown ? &run->shown[p->attention] : NULL;
  const size_t d = r->main.form->width;
  if (p->kind == STACK_PART_WEIGHTS) return write_weights(r, p, item, out);
  if (p->kind == STACK_PART_THUMBNAILS) return write_thumbnails(r, p, item, out);
  const float *rows = p->kind == STACK_PART_EMBEDDING ? run->embedding
                      : p->kind == STACK_PART_INPUT   ? shown->input
                                                      : shown->hidden;
  return write_rows(rows + q->row * d, stack_sequence_count(q), d, d, out);
}

/* Whether both parts are members of one group. */
static bool are_together(const struct stack_sequences *l, size_t part, size_t other) {
  return other < l->parts && l->part[part].group == l->part[other].group;
}

static char *write_part(const struct stack_sequences *l, size_t part, size_t item, char *out) {
  const struct stack_part *p = &l->part[part];
  if (part == 0 || !are_together(l, part, part - 1)) {
    *out++ = '"';
    out = answer_write_text(out, p->group);
    out = answer_write_text(out, "\":{");
  }
  *out++ = '"';
  out = answer_write_text(out, p->name);
  out = answer_write_text(out, "\":");
  out = write_value(l->of, p, item, out);
  if (!are_together(l, part, part + 1)) *out++ = '}';
  return out;
}

/* The most numbers of a part, in lists; and the most bytes of its thumbnails in base64. */
static size_t part_numbers(const struct stack_request *r, const struct stack_part *p, size_t item) {
  const size_t most = r->generation.sequence[item].most;
  if (p->kind == STACK_PART_THUMBNAILS) return 0;
  if (p->kind != STACK_PART_WEIGHTS) return most * r->main.form->width;
  return heads_of(r, p) * most * keys_of(r, p, item);
}

static size_t part_base64(const struct stack_request *r, const struct stack_part *p, size_t item) {
  const size_t rows = side(r, p, r->generation.sequence[item].most);
  if (p->kind != STACK_PART_THUMBNAILS) return 0;
  return base64_length(heads_of(r, p) * rows * side(r, p, keys_of(r, p, item)));
}

/* The most bytes of a part without its numbers: names; brackets and commas of rows and heads, or an
 * object of base64. */
static size_t part_room(const struct stack_request *r, const struct stack_part *p, size_t item) {
  const size_t most = r->generation.sequence[item].most;
  const size_t names = STACK_PART_NAME_SIZE + sizeof ",\"thumbnails\":{\"\":}";
  if (p->kind == STACK_PART_THUMBNAILS)
    return names + sizeof THUMBNAIL_SHAPE + sizeof THUMBNAIL_BYTES + sizeof THUMBNAIL_END +
           SHAPE_ROOM + part_base64(r, p, item);
  return names + ROW_ROOM * (p->kind == STACK_PART_WEIGHTS ? heads_of(r, p) : 1) * (most + 1);
}

/* --- sequences as text --- */

enum {
  AROUND_ROOM = 96,                             /* names, score and finish of a sequence */
  TOKEN_ROOM = sizeof "-2147483648,",           /* a token */
  PLACE_ROOM = TOKEN_ROOM + NUMBER_TEXT_MAX + 4 /* and its log probability */
};

/* The most bytes of a sequence of `most` tokens, each with the most likely ones in its place;
 * SIZE_MAX: an overflow. */
static size_t sequence_room(const struct stack_request *r, size_t most) {
  const size_t text =
      r->detokenizer ? stack_detokenizer_room(r->detokenizer, most, r->tells_tokens) : 0;
  size_t room;
  if (!size_mul(most, PLACE_ROOM + r->top * STACK_TOP_ROOM, &room) ||
      !size_add(room, AROUND_ROOM, &room) || !size_add(room, text, &room))
    return SIZE_MAX;
  return room;
}

/* Writes the object without its end: its parts may follow. */
static char *write_sequence(const struct stack_request *r, size_t index, char *out) {
  const struct stack_generation *g = &r->generation;
  const struct stack_sequence *q = &g->sequence[index];
  const size_t count = stack_sequence_count(q), top = g->top_count;
  out = answer_write_text(out, "{\"tokens\":[");
  for (size_t t = 0; t < count; t++) {
    if (t > 0) *out++ = ',';
    out = number_write_integer(out, q->token[t]);
  }
  out = answer_write_text(out, "]");
  if (r->detokenizer) out = stack_detokenizer_write(r->detokenizer, index, out);
  out = answer_write_text(out, ",\"score\":");
  out = number_write(out, (float)q->score);
  out = answer_write_text(out, ",\"finish\":\"");
  out = answer_write_text(out, stack_finish_name(q->finish));
  out = answer_write_text(out, "\",\"log_probabilities\":");
  out = number_write_rows(out, q->log_probability, 1, count);
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

static char *write_sequences(const struct answer_rows *r, char *out) {
  const struct stack_sequences *l = r->section->data;
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

/* The rows of a text's sequences: a search may find fewer than were asked for. */
static size_t rows_there(const struct answer_section *s, size_t item) {
  const struct stack_sequences *l = s->data;
  const struct stack_sequence *q = &l->of->generation.sequence[item * l->of->each];
  size_t found = 0;
  while (found < l->of->returns && stack_sequence_count(&q[found]) > 0) found++;
  return found * l->each;
}

/* --- the sections --- */

/* Writes a row for each step of a search: the beams after it. */
static char *write_steps(const struct answer_rows *r, char *out) {
  const struct stack_sequences *l = r->section->data;
  const struct stack_search *search = &l->of->generation.search[r->item];
  for (size_t step = r->first; step < r->first + r->count; step++) {
    if (step > r->first) *out++ = ',';
    out = stack_write_beams(out, search->beam + step * l->of->each, search->count[step]);
  }
  return out;
}

static size_t steps_there(const struct answer_section *s, size_t item) {
  const struct stack_sequences *l = s->data;
  return l->of->generation.search[item].steps;
}

static void add_search(struct stack_listing *l, struct stack_sequences *listed) {
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

enum status stack_answer_sequences(struct stack_listing *l, struct arena *a, struct error *e) {
  const struct stack_generation *g = &l->r->generation;
  struct stack_sequences *listed = list_parts(l->r, a, e);
  size_t row_room = 0;
  if (!listed) return e->status;
  /* The room of a row: a whole sequence, and beside it the largest part. */
  for (size_t i = 0; i < l->r->main.run->geometry.items; i++) {
    size_t room = 0;
    for (size_t p = 0; p < listed->parts; p++) {
      room = size_max(room, part_room(l->r, &listed->part[p], i));
      listed->numbers = size_max(listed->numbers, part_numbers(l->r, &listed->part[p], i));
    }
    if (!size_add(room, sequence_room(l->r, g->sequence[i].most), &room)) room = SIZE_MAX;
    row_room = size_max(row_room, room);
  }
  struct answer_section *s = stack_listing_add(l, NULL, "sequences");
  s->number = NUMBER_TOKEN; /* text in any case */
  s->batch = true;
  s->items = l->r->texts;
  s->rows = (struct answer_sizes){&listed->rows, 0};
  s->there = rows_there;
  s->row_room = row_room;
  s->width = (struct answer_sizes){&listed->numbers, 0};
  s->begin = (struct answer_sizes){&zero, 0};
  s->data = listed;
  s->write = write_sequences;
  if (l->r->search) add_search(l, listed);
  return STATUS_OK;
}

/* Adds `times` things of so many bytes, or of bytes that have overflowed. */
static void add_bytes(size_t *sum, size_t bytes, size_t times) {
  if (bytes == SIZE_MAX || !size_mul(bytes, times, &bytes) || !size_add(*sum, bytes, sum))
    *sum = SIZE_MAX;
}

enum status stack_sequences_count(const struct stack_request *r, size_t *bytes, struct arena *a,
                                  struct error *e) {
  const struct stack_sequences *l = list_parts(r, a, e);
  if (!l) return e->status;
  for (size_t text = 0; text < r->texts; text++) {
    const size_t item = text * r->each, most = r->generation.sequence[item].most;
    add_bytes(bytes, sequence_room(r, most), r->returns);
    if (r->search) add_bytes(bytes, STACK_BEAM_ROOM * r->each, most);
    for (size_t p = 0; p < l->parts; p++) {
      add_bytes(bytes, part_numbers(r, &l->part[p], item), NUMBER_ROOM * r->returns);
      add_bytes(bytes, part_base64(r, &l->part[p], item), r->returns);
    }
  }
  return STATUS_OK;
}

/* --- arrays next to them --- */

/* The largest of the sizes of all sequences. */
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

/* Replaces sizes of all sequences by those of the returned ones. An error goes to `e`. */
static void select_returned(const struct stack_request *r, struct answer_sizes *sizes,
                            struct arena *a, struct error *e) {
  if (!sizes->first) return; /* places that are known when the run is prepared */
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
    select_returned(r, &s[i].rows, a, e);
    select_returned(r, &s[i].width, a, e);
    select_returned(r, &s[i].begin, a, e);
  }
  return e->status;
}
