/* stack_answer_parts: the hidden states and the attention of a model as sections of a response. */
#include "server/model/answer/stack_answer_parts.h"

#include "core/base/size.h"
#include "server/model/answer/stack_answer_sequences.h"

static const char hidden[] = "hidden", attention[] = "attention", thumbnails[] = "thumbnails";
static const size_t zero = 0;

/* --- rows --- */

/* The arrays that the run shows of an attention or its layer; none if the run is not prepared. */
static const struct stack_shown *shown_at(const struct stack_run *run, size_t at) {
  static const struct stack_shown nothing = {0};
  return run->shown ? &run->shown[at] : &nothing;
}

/* Whether the side's items are generated sequences. */
static bool has_sequences(const struct stack_listing *l, const struct stack_side *side) {
  return l->r->generates && side == &l->r->main;
}

/* Adds a section with a list of rows for each item, padded with zeros in a rectangle. */
static struct answer_section *add_batch(struct stack_listing *l, const struct stack_side *side,
                                        const char *group, const void *data) {
  const struct geometry *g = &side->run->geometry;
  struct answer_section *s = stack_listing_add(l, group, NULL);
  s->batch = true;
  s->alike = side->rectangular;
  s->padded = !side->rectangular;
  s->padded_rows = side->widest;
  s->items = g->items;
  s->rows = ANSWER_OF_ITEMS(g, q, &side->widest);
  if (has_sequences(l, side)) stack_answer_tokens(l->r, s);
  s->row_room = ROW_ROOM;
  s->data = data;
  s->write = answer_write_floats;
  return s;
}

struct answer_section *stack_answer_rows(struct stack_listing *l, const struct stack_side *side,
                                         const char *group, const float *data,
                                         const size_t *width) {
  struct answer_section *s = add_batch(l, side, group, data);
  s->padded_width = *width;
  s->width = (struct answer_sizes){width, 0};
  s->begin = has_sequences(l, side) ? STACK_OF_SEQUENCES(l->r, row)
                                    : ANSWER_OF_ITEMS(&side->run->geometry, q_row, &zero);
  s->times = *width;
  return s;
}

/* --- hidden states and attention --- */

/* Adds the hidden states of a side. The inputs of a layer's attentions are before the layer's own
 * hidden state. */
static void add_hidden(struct stack_listing *l, const struct stack_side *side) {
  const struct stack_run *run = side->run;
  const size_t sorts = side->form->cross.heads ? 2 : 1, *width = &side->form->width;
  if (side->embedded) {
    stack_answer_rows(l, side, hidden, run->embedding, width);
    stack_listing_name(l, side, 0, "", "");
  }
  for (size_t place = 0; run->wish && place < stack_form_attentions(side->form); place++) {
    const size_t at = stack_side_in_order(side, place), layer = stack_side_layer(side, at);
    if (side->wish[at].input) {
      stack_answer_rows(l, side, hidden, shown_at(run, at)->input, width);
      stack_listing_name(l, side, layer, stack_side_ending(side, at), ".input");
    }
    if (place % sorts + 1 == sorts && side->wish[layer].hidden) {
      stack_answer_rows(l, side, hidden, shown_at(run, layer)->hidden, width);
      stack_listing_name(l, side, layer + 1, "", "");
    }
  }
}

static enum status add_weights(struct stack_listing *l, const struct stack_side *side, size_t at,
                               struct arena *a, struct error *e) {
  const struct stack_shown *shown = shown_at(side->run, at);
  const struct stack_side *source = &l->r->source;
  struct answer_section *s = add_batch(l, side, attention, shown->weights);
  s->per_head = side->wish[at].weights == STACK_WEIGHTS_PER_HEAD;
  if (s->per_head) s->heads = stack_side_shape(side, at)->heads;
  s->padded_width = side->widest;
  s->width = s->rows;
  s->begin = answer_of_list(&side->run->geometry, shown->weights_at, &zero);
  s->times = 1;
  if (!stack_side_is_across(side, at)) {
    if (has_sequences(l, side)) stack_answer_keys(l->r, s);
    return STATUS_OK;
  }
  /* The columns are the rows of each item's source. */
  if (l->r->generates) return stack_answer_sources(l->r, s, a, e);
  s->width = ANSWER_OF_ITEMS(&source->run->geometry, q, &source->widest);
  s->padded_width = source->widest;
  s->alike = s->alike && source->rectangular;
  s->padded = !s->alike;
  return STATUS_OK;
}

/* [items] the rows of each item's thumbnails, at most `most`. NULL with an error. */
static const size_t *make_sides(const struct stack_side *side, size_t most, struct arena *a,
                                struct error *e) {
  const struct geometry *g = &side->run->geometry;
  size_t *to = arena_alloc(a, g->items, sizeof *to, e);
  for (size_t i = 0; to && i < g->items; i++) to[i] = size_min(most, g->item[i].q);
  return to;
}

/* The rows and columns of thumbnails are lists of their own, made once: all thumbnails of a
 * response have the same maximum. */
static enum status add_thumbnails(struct stack_listing *l, const struct stack_side *side, size_t at,
                                  struct arena *a, struct error *e) {
  const struct stack_shown *shown = shown_at(side->run, at);
  const struct stack_side *keys = stack_side_is_across(side, at) ? &l->r->source : side;
  const size_t most = side->wish[at].thumbnail;
  struct answer_section *s = add_batch(l, side, thumbnails, shown->thumbnails);
  const struct geometry *g = &side->run->geometry;
  const unsigned of_rows = side == &l->r->main, of_keys = keys == &l->r->main;
  if (!l->side[of_rows] && !(l->side[of_rows] = make_sides(side, most, a, e))) return e->status;
  if (!l->side[of_keys] && !(l->side[of_keys] = make_sides(keys, most, a, e))) return e->status;
  s->number = NUMBER_BYTE;
  s->per_head = true;
  s->heads = stack_side_shape(side, at)->heads;
  s->padded_rows = size_min(most, side->widest);
  s->padded_width = size_min(most, keys->widest);
  s->alike = side->rectangular && keys->rectangular;
  s->padded = !s->alike;
  s->rows = answer_of_list(g, l->side[of_rows], &s->padded_rows);
  s->width = answer_of_list(g, l->side[of_keys], &s->padded_width);
  s->begin = answer_of_list(g, shown->thumbnails_at, &zero);
  s->times = 1;
  return STATUS_OK;
}

static enum status add_attention(struct stack_listing *l, const struct stack_side *side,
                                 struct arena *a, struct error *e) {
  for (size_t i = 0; side->run->wish && i < stack_form_attentions(side->form); i++) {
    const size_t at = stack_side_in_order(side, i);
    const bool picture = side->wish[at].weights == STACK_WEIGHTS_THUMBNAILS;
    /* Sequences have their thumbnails in themselves. */
    if (side->wish[at].weights == STACK_WEIGHTS_NONE || (picture && has_sequences(l, side)))
      continue;
    if ((picture ? add_thumbnails : add_weights)(l, side, at, a, e)) return e->status;
    stack_listing_name(l, side, stack_side_layer(side, at), stack_side_ending(side, at), "");
  }
  return STATUS_OK;
}

/* Adds the hidden states or the attention of main. Sequences have these in themselves, except
 * arrays in base64, which are sections for the sequences that are returned. */
static enum status add_main(struct stack_listing *l, bool attentions, struct arena *a,
                            struct error *e) {
  const struct stack_request *r = l->r;
  const size_t first = l->content->sections;
  if (r->generates && !r->base64) return STATUS_OK;
  if (!attentions)
    add_hidden(l, &r->main);
  else if (add_attention(l, &r->main, a, e))
    return e->status;
  if (!r->generates) return STATUS_OK;
  return stack_answer_returned(r, &l->content->section[first], l->content->sections - first, a, e);
}

/* Groups are not interrupted: the hidden states of both sides are before the attention of both. */
enum status stack_answer_parts(struct stack_listing *l, struct arena *a, struct error *e) {
  const struct stack_request *r = l->r;
  if (r->source.run) add_hidden(l, &r->source);
  if (add_main(l, false, a, e)) return e->status;
  if (r->source.run && add_attention(l, &r->source, a, e)) return e->status;
  return add_main(l, true, a, e);
}
