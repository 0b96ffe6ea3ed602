/* room: the memory of the keys and values of a generating run.
 *
 * There is memory for as many prompts as continue at the same time. When a sequence is over, its
 * memory goes to the next prompt that has not begun; once all have begun, back to the budget. A
 * sequence that is over keeps its memory for one more round: another one with its prompt may begin
 * that round with a copy of its rows. */
#include "core/base/size.h"
#include "core/generate/generate_parts.h"

/* --- preparing --- */

/* The keys or values of an item in a head: `rows` of the first member, and after them those of each
 * other member that differ: from row `common` on. So every row of member i lies i times as many
 * floats further on. */
struct places {
  size_t members, rows, common;
};

static size_t rows_of_places(const struct places *p) {
  return p->members * (p->rows - p->common) + p->common;
}

/* Sets the places of the keys and values of all members; none is there yet. Returns the end of the
 * memory. */
static float *place_pairs(struct kept_pair *pair, const struct layer_shape *a,
                          const struct places *p, float *room) {
  const size_t rows = a->kv_heads * rows_of_places(p);
  for (size_t role = 0; role < 2; role++) { /* keys, values */
    const size_t size = role == 0 ? a->key_head_size : a->value_head_size;
    for (size_t i = 0; i < p->members; i++) {
      struct kept *k = role == 0 ? &pair[i].key : &pair[i].value;
      k->member_step = (p->rows - p->common) * size;
      k->rows = (struct kept_rows){.row = room + i * k->member_step,
                                   .row_step = size,
                                   .head_step = rows_of_places(p) * size};
      k->count = 0;
      k->capacity = p->rows;
      k->lineage = NULL;
      atomic_init(&k->top, 0);
    }
    room += rows * size;
  }
  return room;
}

/* Numbers of a row in all layers. */
static size_t row_floats(const struct stack *s, const struct layer_shape *a) {
  return a->kv_heads * (a->key_head_size + a->value_head_size) * s->form.layers;
}

size_t stack_kept_bytes(const struct stack *s) {
  return row_floats(s, &s->form.kind->self) * sizeof(float);
}

/* The sequences that share a room: the hypotheses of a beam search, which have the blocks of their
 * prompt in common, and space for one more (see struct kept_lineage). Others have a room each. */
static size_t members_of_room(const struct stack_generation *g) {
  return g->rounds->beams ? stack_each(g) : 1;
}

static struct places places_of(const struct stack_generation *g, size_t first) {
  const struct stack_sequence *at = &g->sequence[first];
  const size_t members = members_of_room(g);
  const bool many = members > 1;
  return (struct places){.members = members,
                         .rows = stack_kept_rows(g, first) + (many ? KERNEL_KEYS : 0),
                         .common = many ? at->text / KERNEL_KEYS * KERNEL_KEYS : 0};
}

static size_t room_bytes(const struct stack *s, const struct stack_generation *g, size_t first) {
  const struct places places = places_of(g, first);
  return rows_of_places(&places) * stack_kept_bytes(s);
}

/* Places an item, which begins, and the other members of its room. */
static void place_items(const struct stack *s, struct stack_generation *g, size_t first,
                        float *room) {
  const struct stack_sequence *at = &g->sequence[first];
  const struct places places = places_of(g, first);
  for (size_t l = 0; l < s->form.layers; l++) {
    struct kept_pair *pair = &g->rounds->kept[l][first];
    room = place_pairs(pair, &s->form.kind->self, &places, room);
    pair->key.count = pair->value.count = at->kept;
    pair->key.rows.turned = at->turned;
  }
}

/* Bytes that the run reserves after the rooms, at most: the logits of the items that continue at
 * the same time; for each row of a round the states between two layers, and queries and contexts of
 * an attention; the numbers inside a feed-forward; what is shown of each attention. Twice that
 * covers smaller things. */
static size_t bytes_of_rest(const struct stack_preparing *p, size_t at_once) {
  const struct stack_form *f = &p->s->form;
  const struct stack_generation *g = p->r->generation;
  const struct layer_shape *shapes[] = {&f->kind->self, &f->cross};
  const size_t rows = rounds_rows(g) + at_once, items = p->r->geometry.items;
  size_t heads = 0, row = 3 * f->width;
  for (size_t i = 0; i < 2; i++) {
    const struct layer_shape *a = shapes[i];
    heads += a->heads;
    row += a->heads * (a->head_size + a->value_head_size + (layer_is_relative(a) ? 2 : 0));
  }
  size_t floats = SHARED_ROWS * f->forward_size;
  for (size_t i = 0; p->r->wish && i < stack_form_attentions(f); i++) {
    const bool across = stack_is_across(p->s, i);
    size_t keys = 0; /* of a row of weights, of all items */
    for (size_t j = 0; p->r->wish[i].weights != STACK_WEIGHTS_NONE && j < items; j++)
      keys += across ? p->r->source->geometry.item[j / stack_each(g)].q : stack_kept_rows(g, j);
    floats += keys * (across ? f->cross.heads : f->kind->self.heads);
    row += 2 * f->width; /* of its input, and of the state after it */
  }
  floats += at_once * f->embedding.tokens + rows * row + items * heads * KERNEL_LANES_MAX;
  return 2 * floats * sizeof(float);
}

/* Reserves rooms for `count` prompts: if these are all, of the size that each needs; else of the
 * size that the largest one needs. False: there is not enough memory for them and the rest of the
 * run. */
static bool reserve_rooms(const struct stack_preparing *p, size_t count) {
  struct stack_generation *g = p->r->generation;
  struct stack_rounds *o = g->rounds;
  const size_t items = p->r->geometry.items, step = members_of_room(g);
  size_t largest = 0, got = 0;
  for (size_t i = 0; i < items; i += step) largest = size_max(largest, room_bytes(p->s, g, i));
  o->rooms = stack_alloc(p, count, sizeof *o->rooms);
  for (size_t i = count; i-- > 0 && !p->e->status; got += !p->e->status) {
    const size_t bytes = count * step < items ? largest : room_bytes(p->s, g, i * step);
    o->rooms[got] = (struct stack_room){.floats = stack_alloc(p, bytes, 1), .bytes = bytes};
  }
  const size_t rest = bytes_of_rest(p, count * step);
  void *probe = count > 1 ? stack_alloc(p, rest, 1) : NULL;
  if (probe) arena_release(p->a, probe, rest);
  for (size_t i = 0; i < got && p->e->status; i++)
    arena_release(p->a, o->rooms[i].floats, o->rooms[i].bytes);
  for (size_t i = 0; i < got && !p->e->status; i++) g->kept_bytes += o->rooms[i].bytes;
  o->at_once = count * step;
  o->rooms_left = count;
  return !p->e->status;
}

enum status room_prepare_sources(const struct stack_preparing *p) {
  const struct stack_run *r = p->r;
  struct stack_rounds *o = r->generation->rounds;
  const size_t numbers = stack_form_attentions(&p->s->form);
  const size_t sources = r->source ? r->source->geometry.items : 0;
  r->generation->kept_bytes = 0;
  o->kept = stack_alloc(p, numbers, sizeof *o->kept);
  for (size_t i = 0; !p->e->status && i < numbers; i++) {
    const size_t count = stack_is_across(p->s, i) ? sources : r->geometry.items;
    o->kept[i] = stack_alloc(p, count, sizeof **o->kept);
  }
  if (r->source) o->source = stack_alloc(p, sources, sizeof *o->source);
  const size_t layers = p->s->form.layers, row = row_floats(p->s, &p->s->form.cross);
  for (size_t i = 0; !p->e->status && i < sources; i++) {
    const size_t rows = r->source->geometry.item[i].q;
    float *room = stack_alloc(p, rows, row * sizeof *room);
    if (!room) break;
    o->source[i] =
        (struct stack_source){.rows = rows, .room = room, .room_bytes = rows * row * sizeof *room};
    r->generation->kept_bytes += o->source[i].room_bytes;
    const struct places places = {.members = 1, .rows = rows};
    for (size_t l = 0; l < layers; l++)
      room = place_pairs(&o->kept[layers + l][i], &p->s->form.cross, &places, room);
  }
  return p->e->status;
}

enum status room_prepare(const struct stack_preparing *p) {
  struct stack_generation *g = p->r->generation;
  const size_t items = p->r->geometry.items, step = members_of_room(g);
  size_t count = size_min(items / step, size_max(1, rounds_rows(g) / step));
  while (!reserve_rooms(p, count) && count > 1 && p->e->status != STATUS_OUT_OF_MEMORY) {
    count /= 2;
    *p->e = (struct error){0};
  }
  /* A prompt that has not begun has no memory yet, but sizes. */
  for (size_t i = 0; !p->e->status && i < items; i += step)
    place_items(p->s, g, i, g->rounds->rooms[0].floats);
  return p->e->status;
}

/* --- from prompt to prompt --- */

/* Frees the room of a sequence that is over for one that has not begun. */
static void free_room(struct stack_rounds *o, struct stack_sequence *at) {
  o->rooms[o->rooms_left++] = (struct stack_room){at->room, at->room_bytes};
  at->room = NULL;
}

/* If all prompts that have begun are over, the next ones get their memory at once, and cannot copy
 * from them then. */
static void free_rooms_of_all(struct stack_run *r) {
  struct stack_rounds *o = r->generation->rounds;
  if (o->begun == r->geometry.items) return;
  for (size_t i = 0; i < o->begun; i++)
    if (!r->generation->sequence[i].finish) return;
  for (size_t i = 0; i < o->begun; i++) {
    struct stack_sequence *at = &r->generation->sequence[i];
    if (!at->room) continue;
    free_room(o, at);
    o->leaving++;
  }
}

void room_begin(const struct stack *s, struct stack_run *r) {
  struct stack_generation *g = r->generation;
  struct stack_rounds *o = g->rounds;
  free_rooms_of_all(r);
  for (; o->begun < r->geometry.items && o->rooms_left > 0; o->begun += members_of_room(g)) {
    const size_t item = o->begun;
    struct stack_sequence *at = &g->sequence[item];
    const struct stack_room *room = &o->rooms[--o->rooms_left];
    at->room = room->floats;
    at->room_bytes = room->bytes;
    place_items(s, g, item, room->floats);
    if (at->recalls > 0) at->copies = o->copied = o->number;
    at->twin = STACK_NO_TWIN;
    if (at->first == STACK_NO_TWIN) continue;
    /* The first item with this prompt that still has its rows. If there is none, the prompt is
     * computed, once for all that begin now. */
    for (size_t i = item; i-- > at->first;)
      if (g->sequence[i].room) at->twin = i;
    at->recalled = at->twin == STACK_NO_TWIN ? 0 : g->sequence[at->twin].recalled;
  }
}

/* --- the step: one unit, since the arena is one thread's at a time --- */

static bool release_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct stack_rounds *o = stack_run_of(u->run)->generation->rounds;
  (void)step;
  if (o->leaving == 0 || at->item > 0) return false;
  u->item = at->item++;
  return true;
}

static double release_work(const struct step *step, const struct unit *u) {
  (void)step, (void)u;
  return 0;
}

static void release(const struct stack_step *step, const struct unit *u, void *scratch) {
  const struct stack_run *r = stack_run_of(u->run);
  struct stack_rounds *o = r->generation->rounds;
  const size_t each = stack_each(r->generation);
  (void)step, (void)scratch;
  for (size_t i = 0; i < r->geometry.items; i++) {
    struct stack_sequence *at = &r->generation->sequence[i];
    if (!at->leaves) continue;
    if (o->begun < r->geometry.items)
      free_room(o, at);
    else
      arena_release(o->arena, at->room, at->room_bytes);
    at->room = NULL;
  }
  for (; o->begun == r->geometry.items && o->rooms_left > 0; o->rooms_left--) {
    const struct stack_room *room = &o->rooms[o->rooms_left - 1];
    arena_release(o->arena, room->floats, room->bytes);
  }
  /* A source is needed as long as one of its sequences continues. */
  for (size_t i = 0; o->source && i < r->across.items; i++) {
    struct stack_source *at = &o->source[i];
    bool needed = false;
    for (size_t j = i * each; j < (i + 1) * each; j++)
      needed |= r->generation->sequence[j].room || !r->generation->sequence[j].finish;
    if (needed || !at->room) continue;
    arena_release(o->arena, at->room, at->room_bytes);
    at->room = NULL;
  }
}

const struct stack_step stack_step_release = {
    .step = {.unit = release_unit, .work = release_work, .compute = stack_compute},
    .each = release};
