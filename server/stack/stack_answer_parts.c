/* stack_answer_parts: what is shown of the passes that chose a sequence's tokens, as text. */
#include "server/stack/stack_answer_parts.h"

#include <stdio.h>

#include "core/run/size.h"
#include "server/text/base64.h"

static const char hidden[] = "hidden", attention[] = "attention", thumbnails[] = "thumbnails";
static const char PICTURE_SHAPE[] = "{\"shape\":", PICTURE_BYTES[] = ",\"base64\":\"",
                  PICTURE_END[] = "\"}";

/* --- the list --- */

size_t stack_parts_most(const struct stack_request *r) {
  enum { A_LAYER = 3 };
  return r->run->embedded + (r->run->wish ? A_LAYER * r->form->layers : 0);
}

struct parts {
  const struct stack_request *r;
  struct stack_part *part;
  size_t count;
};

static void add_part(struct parts *p, enum stack_part_kind kind, size_t layer, size_t number,
                     const char *behind) {
  struct stack_part *to = &p->part[p->count++];
  *to = (struct stack_part){.kind = kind, .layer = layer};
  to->group = kind < STACK_PART_WEIGHTS    ? hidden
              : kind == STACK_PART_WEIGHTS ? attention
                                           : thumbnails;
  snprintf(to->name, sizeof to->name, "%.12s.%zu%s", p->r->form->name, number, behind);
}

static void list_hidden(struct parts *p) {
  const struct stack_wish *wish = p->r->run->wish;
  if (p->r->run->embedded) add_part(p, STACK_PART_EMBEDDING, 0, 0, "");
  for (size_t l = 0; wish && l < p->r->form->layers; l++) {
    if (wish[l].input) add_part(p, STACK_PART_INPUT, l, l, ".self.input");
    if (wish[l].hidden) add_part(p, STACK_PART_HIDDEN, l, l + 1, "");
  }
}

static void list_attention(struct parts *p, bool pictures) {
  const struct stack_wish *wish = p->r->run->wish;
  for (size_t l = 0; wish && l < p->r->form->layers; l++)
    if (wish[l].weights != STACK_WEIGHTS_NONE &&
        (wish[l].weights == STACK_WEIGHTS_THUMBNAILS) == pictures)
      add_part(p, pictures ? STACK_PART_THUMBNAILS : STACK_PART_WEIGHTS, l, l, ".self");
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

static size_t heads_of(const struct stack_request *r, const struct stack_part *p) {
  return r->run->wish[p->layer].weights == STACK_WEIGHTS_AVERAGE ? 1 : r->form->self.heads;
}

static size_t side(const struct stack_request *r, const struct stack_part *p, size_t count) {
  return size_min(count, r->run->wish[p->layer].thumbnail);
}

size_t stack_part_numbers(const struct stack_request *r, const struct stack_part *p, size_t item) {
  const struct stack_sequence *q = &r->generation.sequence[item];
  if (p->kind == STACK_PART_THUMBNAILS) return 0;
  if (p->kind == STACK_PART_WEIGHTS) return heads_of(r, p) * q->most * q->keys;
  return q->most * r->form->width;
}

/* Brackets and commas of rows, and of heads; or an object of base64. */
size_t stack_part_room(const struct stack_request *r, const struct stack_part *p, size_t item) {
  const struct stack_sequence *q = &r->generation.sequence[item];
  const size_t names = STACK_PART_NAME_SIZE + sizeof ",\"thumbnails\":{\"\":}";
  if (p->kind == STACK_PART_THUMBNAILS)
    return names + sizeof PICTURE_SHAPE + sizeof PICTURE_BYTES + sizeof PICTURE_END + SHAPE_ROOM +
           base64_length(heads_of(r, p) * side(r, p, q->most) * side(r, p, q->keys));
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
  const struct stack_shown *shown = &r->run->shown[p->layer];
  const bool average = r->run->wish[p->layer].weights == STACK_WEIGHTS_AVERAGE;
  const size_t count = stack_sequence_count(q), keys = q->keys - (q->most - count);
  const float *plane = shown->weights + shown->weights_at[item];
  if (average) return write_plane(plane, count, keys, q->keys, out);
  *out++ = '[';
  for (size_t head = 0; head < r->form->self.heads; head++) {
    if (head > 0) *out++ = ',';
    out = write_plane(plane + head * q->most * q->keys, count, keys, q->keys, out);
  }
  *out++ = ']';
  return out;
}

static char *write_thumbnails(const struct stack_request *r, const struct stack_part *p,
                              size_t item, char *out) {
  const struct stack_sequence *q = &r->generation.sequence[item];
  const struct stack_shown *shown = &r->run->shown[p->layer];
  const size_t count = stack_sequence_count(q), keys = q->keys - (q->most - count);
  const struct answer_array a = {.rank = 3,
                                 .dim = {r->form->self.heads, side(r, p, count), side(r, p, keys)}};
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
  const struct stack_shown *shown = r->run->shown ? &r->run->shown[p->layer] : NULL;
  const size_t d = r->form->width, count = stack_sequence_count(q);
  switch (p->kind) {
  case STACK_PART_EMBEDDING:
    return write_rows(r->run->embedding + q->row * d, count, d, out);
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
