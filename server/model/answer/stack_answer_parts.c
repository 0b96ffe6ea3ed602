/* stack_answer_parts: what is shown of the passes that chose a sequence's tokens, as text. */
#include "server/model/answer/stack_answer_parts.h"

#include <stdio.h>

#include "core/base/size.h"
#include "server/text/base64.h"

static const char hidden[] = "hidden", attention_group[] = "attention", thumbnails[] = "thumbnails";
static const char PICTURE_SHAPE[] = "{\"shape\":", PICTURE_BYTES[] = ",\"base64\":\"",
                  PICTURE_END[] = "\"}";

/* --- the list --- */

size_t stack_parts_most(const struct stack_request *r) {
  enum { AN_ATTENTION = 3 };
  return r->main.embedded +
         (r->main.run->wish ? AN_ATTENTION * stack_form_attentions(r->main.form) : 0);
}

struct parts {
  const struct stack_request *r;
  struct stack_part *part;
  size_t count;
};

static void add_part(struct parts *p, enum stack_part_kind kind, size_t attention, size_t number,
                     const char *ending, const char *behind) {
  struct stack_part *to = &p->part[p->count++];
  *to = (struct stack_part){.kind = kind, .attention = attention};
  to->group = kind < STACK_PART_WEIGHTS    ? hidden
              : kind == STACK_PART_WEIGHTS ? attention_group
                                           : thumbnails;
  snprintf(to->name, sizeof to->name, "%.12s.%zu%s%s", p->r->main.form->name, number, ending,
           behind);
}

/* Of a layer the inputs of its attentions stand in front of what it gives. */
static void list_hidden(struct parts *p) {
  const struct stack_side *s = &p->r->main;
  const size_t sorts = s->form->cross.heads ? 2 : 1;
  if (s->embedded) add_part(p, STACK_PART_EMBEDDING, 0, 0, "", "");
  for (size_t place = 0; s->run->wish && place < stack_form_attentions(s->form); place++) {
    const size_t at = stack_side_in_order(s, place), layer = stack_side_layer(s, at);
    if (s->wish[at].input)
      add_part(p, STACK_PART_INPUT, at, layer, stack_side_ending(s, at), ".input");
    if (place % sorts + 1 == sorts && s->wish[layer].hidden)
      add_part(p, STACK_PART_HIDDEN, layer, layer + 1, "", "");
  }
}

static void list_attention(struct parts *p, bool pictures) {
  const struct stack_side *s = &p->r->main;
  for (size_t place = 0; s->run->wish && place < stack_form_attentions(s->form); place++) {
    const size_t at = stack_side_in_order(s, place);
    const enum stack_weights weights = s->wish[at].weights;
    if (weights != STACK_WEIGHTS_NONE && (weights == STACK_WEIGHTS_THUMBNAILS) == pictures)
      add_part(p, pictures ? STACK_PART_THUMBNAILS : STACK_PART_WEIGHTS, at,
               stack_side_layer(s, at), stack_side_ending(s, at), "");
  }
}

size_t stack_parts_list(const struct stack_request *r, struct stack_part *part) {
  struct parts p = {.r = r, .part = part};
  if (!r->base64) {
    list_hidden(&p);
    list_attention(&p, false);
  }
  list_attention(&p, true);
  return p.count;
}

/* --- of one sequence --- */

static const struct stack_wish *wish_of(const struct stack_request *r, const struct stack_part *p) {
  return &r->main.wish[p->attention];
}

static size_t heads_of(const struct stack_request *r, const struct stack_part *p) {
  if (wish_of(r, p)->weights == STACK_WEIGHTS_AVERAGE) return 1;
  return stack_side_shape(&r->main, p->attention)->heads;
}

static size_t side(const struct stack_request *r, const struct stack_part *p, size_t count) {
  return size_min(count, wish_of(r, p)->thumbnail);
}

/* Of a row of weights: the keys that there is room for, and those that there are once so many
 * tokens have come. A source is there from the beginning. */
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

size_t stack_part_numbers(const struct stack_request *r, const struct stack_part *p, size_t item) {
  const struct stack_sequence *q = &r->generation.sequence[item];
  if (p->kind == STACK_PART_THUMBNAILS) return 0;
  if (p->kind == STACK_PART_WEIGHTS) return heads_of(r, p) * q->most * keys_of(r, p, item);
  return q->most * r->main.form->width;
}

/* Brackets and commas of rows, and of heads; or an object of base64. */
size_t stack_part_room(const struct stack_request *r, const struct stack_part *p, size_t item) {
  const struct stack_sequence *q = &r->generation.sequence[item];
  const size_t names = STACK_PART_NAME_SIZE + sizeof ",\"thumbnails\":{\"\":}";
  if (p->kind == STACK_PART_THUMBNAILS)
    return names + sizeof PICTURE_SHAPE + sizeof PICTURE_BYTES + sizeof PICTURE_END + SHAPE_ROOM +
           base64_length(heads_of(r, p) * side(r, p, q->most) * side(r, p, keys_of(r, p, item)));
  const size_t heads = p->kind == STACK_PART_WEIGHTS ? heads_of(r, p) : 1;
  return names + ROW_ROOM * heads * (q->most + 1);
}

/* --- as text --- */

static char *write_rows(const float *rows, size_t count, size_t width, char *out) {
  *out++ = '[';
  out = number_write_rows(out, rows, count, width);
  *out++ = ']';
  return out;
}

/* Rows [count, keys] of a plane whose rows are further apart. */
static char *write_plane(const float *rows, size_t count, size_t keys, size_t row_step, char *out) {
  *out++ = '[';
  for (size_t t = 0; t < count; t++) {
    if (t > 0) *out++ = ',';
    out = number_write_rows(out, rows + t * row_step, 1, keys);
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
  if (average) return write_plane(plane, count, keys, room, out);
  *out++ = '[';
  for (size_t head = 0; head < heads_of(r, p); head++) {
    if (head > 0) *out++ = ',';
    out = write_plane(plane + head * q->most * room, count, keys, room, out);
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
  out = answer_write_text(out, PICTURE_SHAPE);
  out = answer_write_shape(out, &a);
  out = answer_write_text(out, PICTURE_BYTES);
  out = base64_write(out, shown->thumbnails + shown->thumbnails_at[item],
                     a.dim[0] * a.dim[1] * a.dim[2]);
  return answer_write_text(out, PICTURE_END);
}

char *stack_part_write(const struct stack_request *r, const struct stack_part *p, size_t item,
                       char *out) {
  const struct stack_sequence *q = &r->generation.sequence[item];
  const struct stack_run *run = r->main.run;
  const struct stack_shown *shown = run->shown ? &run->shown[p->attention] : NULL;
  const size_t d = r->main.form->width, count = stack_sequence_count(q);
  switch (p->kind) {
  case STACK_PART_EMBEDDING:
    return write_rows(run->embedding + q->row * d, count, d, out);
  case STACK_PART_INPUT:
    return write_rows(shown->input + q->row * d, count, d, out);
  case STACK_PART_HIDDEN:
    return write_rows(shown->hidden + q->row * d, count, d, out);
  case STACK_PART_WEIGHTS:
    return write_weights(r, p, item, out);
  case STACK_PART_THUMBNAILS:
    break;
  }
  return write_thumbnails(r, p, item, out);
}
