/* room: where the keys and values of a run that generates are.
 *
 * There is memory for as many texts as continue at the same time. When a sequence is over, its
 * memory goes to the next text that has not begun. Once all have begun, it goes back to the budget.
 * A sequence that is over keeps it for one more round: another one with its text may begin that
 * round with a copy of its rows. */
#include "core/base/size.h"
#include "core/generate/generate_parts.h"

/* --- preparing --- */

/* Of keys or values of an item in all heads: `rows` for the first of its members, and behind them
 * those for each of the others, which begin at row `common`. So that of member i every row lies i
 * times as many floats further on. */
struct places {
  size_t members, rows, common;
};

static size_t rows_between(const struct places *p) { return p->rows - p->common; }
static size_t rows_of_places(const struct places *p) {
  return p->members * rows_between(p) + p->common;
}

/* The kept rows of a member; none is there yet. */
static void place_kept(struct kept *k, const struct places *p, size_t member, size_t size,
                       float *room) {
  k->member_step = rows_between(p) * size;
  k->rows = (struct kept_rows){.row = room + member * k->member_step,
                               .row_step = size,
                               .head_step = rows_of_places(p) * size};
  k->count = 0;
  k->capacity = p->rows;
  k->lineage = NULL;
  atomic_init(&k->top, 0);
}

/* Those of all members, which lie side by side. */
static void place_pairs(struct kept_pair *pair, const struct layer_shape *a, const struct places *p,
                        float **room) {
  const size_t rows = a->kv_heads * rows_of_places(p);
  for (size_t i = 0; i < p->members; i++) {
    place_kept(&pair[i].key, p, i, a->key_head_size, *room);
    place_kept(&pair[i].value, p, i, a->value_head_size, *room + rows * a->key_head_size);
  }
  *room += rows * (a->key_head_size + a->value_head_size);
}

/* Numbers of a row in all layers. */
static size_t row_floats(const struct stack *s, const struct layer_shape *a) {
  return a->kv_heads * (a->key_head_size + a->value_head_size) * s->form.layers;
}

/* The sequences that share a room: the hypotheses of a beam search, which have the blocks of their
 * text in common, and space for one more (see struct kept_lineage). Others have a room each. */
static size_t members_of_room(const struct stack_generation *g) {
  return g->rounds->beams ? stack_each(g) : 1;
}

static struct places places_of(const struct stack_generation *g, size_t first) {
  const struct stack_advance *at = &g->rounds->advance[first];
  const size_t members = members_of_room(g);
  const bool many = members > 1;
  return (struct places){.members = members,
                         .rows = stack_kept_rows(g, first) + (many ? KERNEL_KEYS : 0),
                         .common = many ? at->text / KERNEL_KEYS * KERNEL_KEYS : 0};
}

/* Bytes of all keys and values of an item, and of those that lie with it. */
static size_t room_bytes(const struct stack *s, const struct stack_generation *g, size_t first) {
  const struct places places = places_of(g, first);
  return rows_of_places(&places) * row_floats(s, &s->form.self) * sizeof(float);
}

/* Says where the keys and values of an item lie, which begins. */
static void place_items(const struct stack *s, struct stack_generation *g, size_t first,
                        float *room) {
  const struct stack_advance *at = &g->rounds->advance[first];
  const struct places places = places_of(g, first);
  for (size_t l = 0; l < s->form.layers; l++) {
    struct kept_pair *pair = &g->rounds->kept[l][first];
    place_pairs(pair, &s->form.self, &places, &room);
    pair->key.count = pair->value.count = at->kept;
    pair->key.rows.turned = at->turned;
  }
}

/* Floats of the weights that one attention shows, of all its heads. */
static size_t shown_floats(const struct stack_preparing *p, size_t attention) {
  const struct stack_generation *g = p->r->generation;
  const bool across = stack_is_across(p->s, attention);
  size_t keys = 0;
  if (p->r->wish[attention].weights == STACK_WEIGHTS_NONE) return 0;
  for (size_t i = 0; i < p->r->geometry.items; i++)
    keys += across ? p->r->source->geometry.item[i / stack_each(g)].q : stack_kept_rows(g, i);
  return keys * (across ? p->s->form.cross.heads : p->s->form.self.heads);
}

/* Bytes that the run reserves after the rooms, at most: the logits of the items that continue at
 * the same time; for each row of a round the states between two layers, and queries and contexts of
 * an attention; the inside of a feed-forward; what is shown of each attention. Twice that covers
 * what is small beside these. */
static size_t bytes_of_rest(const struct stack_preparing *p, size_t at_once) {
  const struct stack_form *f = &p->s->form;
  const struct layer_shape *shapes[] = {&f->self, &f->cross};
  const size_t rows = rounds_rows(p->r->generation) + at_once;
  size_t heads = 0, row = 3 * f->width;
  for (size_t i = 0; i < 2; i++) {
    const struct layer_shape *a = shapes[i];
    heads += a->heads;
    row += a->heads * (a->head_size + a->value_head_size + (a->relative_buckets ? 2 : 0));
  }
  size_t floats = STACK_SHARED_ROWS * f->forward_size;
  for (size_t i = 0; p->r->wish && i < stack_form_attentions(f); i++) {
    floats += shown_floats(p, i);
    row += 2 * f->width; /* of its input, and of the state after it */
  }
  floats +=
      at_once * f->embedding.tokens + rows * row + p->r->geometry.items * heads * KERNEL_LANES_MAX;
  return 2 * floats * sizeof(float);
}

/* Reserves rooms for `count` texts: if these are all, for each what it needs; else for each what
 * the largest one needs. False: there is not enough memory for them, and for the rest of the run.
 */
static bool keep_texts(const struct stack_preparing *p, size_t count) {
  struct stack_generation *g = p->r->generation;
  struct stack_rounds *o = p->r->generation->rounds;
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

/* The memory for keys and values of a source. */
static void keep_source(const struct stack_preparing *p, size_t index) {
  struct stack_source *at = &p->r->generation->rounds->source[index];
  const size_t layers = p->s->form.layers, row = row_floats(p->s, &p->s->form.cross);
  *at = (struct stack_source){.rows = p->r->source->geometry.item[index].q};
  float *room = at->room = stack_alloc(p, at->rows, row * sizeof *room);
  if (!room) return;
  at->room_bytes = at->rows * row * sizeof *room;
  p->r->generation->kept_bytes += at->room_bytes;
  const struct places places = {.members = 1, .rows = at->rows};
  for (size_t l = 0; l < layers; l++)
    place_pairs(&p->r->generation->rounds->kept[layers + l][index], &p->s->form.cross, &places,
                &room);
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
  for (size_t i = 0; !p->e->status && i < sources; i++) keep_source(p, i);
  return p->e->status;
}

enum status room_prepare(const struct stack_preparing *p) {
  struct stack_generation *g = p->r->generation;
  const size_t items = p->r->geometry.items, step = members_of_room(g);
  size_t count = size_min(items / step, size_max(1, rounds_rows(g) / step));
  while (!keep_texts(p, count) && count > 1 && p->e->status != STATUS_OUT_OF_MEMORY) {
    count /= 2;
    *p->e = (struct error){0};
  }
  /* A prompt that has not begun has no memory yet, but sizes. */
  for (size_t i = 0; !p->e->status && i < items; i += step)
    place_items(p->s, g, i, g->rounds->rooms[0].floats);
  return p->e->status;
}

/* --- from text to text --- */

/* The memory of a sequence that is over goes to one that has not begun. */
static void pass_on(struct stack_rounds *o, struct stack_advance *at) {
  o->rooms[o->rooms_left++] = (struct stack_room){at->room, at->room_bytes};
  at->room = NULL;
}

/* If all texts that have begun are over, the next ones take their memory at once. They cannot copy
 * from them then. */
static void pass_on_all(struct stack_run *r) {
  struct stack_rounds *o = r->generation->rounds;
  if (o->begun == r->geometry.items) return;
  for (size_t i = 0; i < o->begun; i++)
    if (!r->generation->sequence[i].finish) return;
  for (size_t i = 0; i < o->begun; i++)
    if (o->advance[i].room) {
      pass_on(o, &o->advance[i]);
      o->leaving++;
    }
}

/* The first item with the text of this one that still has its rows; STACK_NO_TWIN: none. */
static size_t find_twin(const struct stack_rounds *o, size_t item) {
  const size_t first = o->advance[item].first;
  for (size_t i = first; first != STACK_NO_TWIN && i < item; i++)
    if (o->advance[i].room) return i;
  return STACK_NO_TWIN;
}

/* Lets texts begin while there is memory. If no other item has the rows of such a text any more, it
 * is computed instead of copied, once for all that begin now. */
void room_begin(const struct stack *s, struct stack_run *r) {
  struct stack_generation *g = r->generation;
  struct stack_rounds *o = g->rounds;
  pass_on_all(r);
  for (; o->begun < r->geometry.items && o->rooms_left > 0; o->begun += members_of_room(g)) {
    struct stack_advance *at = &o->advance[o->begun];
    const struct stack_room *room = &o->rooms[--o->rooms_left];
    at->room = room->floats;
    at->room_bytes = room->bytes;
    place_items(s, g, o->begun, room->floats);
    if (at->recalls > 0) at->copies = o->copied = o->number;
    at->twin = find_twin(o, o->begun);
    if (at->first != STACK_NO_TWIN) /* a copy was known if what is copied was */
      g->sequence[o->begun].recalled =
          at->twin == STACK_NO_TWIN ? 0 : g->sequence[at->twin].recalled;
  }
}

/* --- the step --- */

/* One unit: the arena is one thread's at a time. */
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

/* A source is needed as long as one of its sequences continues. */
static void release_sources(const struct stack_run *r) {
  const struct stack_rounds *o = r->generation->rounds;
  const size_t each = stack_each(r->generation);
  for (size_t i = 0; o->source && i < r->across.items; i++) {
    struct stack_source *at = &o->source[i];
    size_t left = 0;
    for (size_t j = i * each; j < (i + 1) * each; j++)
      left += o->advance[j].room || !r->generation->sequence[j].finish;
    if (left > 0 || !at->room) continue;
    arena_release(o->arena, at->room, at->room_bytes);
    at->room = NULL;
  }
}

static void release(const struct stack_step *step, const struct unit *u, void *scratch) {
  const struct stack_run *r = stack_run_of(u->run);
  (void)step, (void)scratch;
  struct stack_rounds *o = r->generation->rounds;
  for (size_t i = 0; i < r->geometry.items; i++) {
    struct stack_advance *at = &o->advance[i];
    if (!at->leaves) continue;
    if (o->begun < r->geometry.items)
      pass_on(o, at);
    else
      arena_release(o->arena, at->room, at->room_bytes);
    at->room = NULL;
  }
  for (; o->begun == r->geometry.items && o->rooms_left > 0; o->rooms_left--) {
    const struct stack_room *room = &o->rooms[o->rooms_left - 1];
    arena_release(o->arena, room->floats, room->bytes);
  }
  release_sources(r);
}

const struct stack_step stack_step_release = {
    .step = {.unit = release_unit, .work = release_work, .compute = stack_compute},
    .each = release};
