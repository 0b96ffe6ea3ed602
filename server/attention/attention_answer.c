/* attention_answer: which sections a response has, where their numbers are, and how measures of
 * heads are written. */
#include "server/attention/attention_answer.h"

#include "core/attention/measures.h"
#include "server/attention/attention_fields.h"
#include "server/attention/attention_trace.h"

/* --- the format --- */

static bool segments_agree(const struct attention_request *r) {
  const struct geometry *g = &r->asked.geometry;
  for (size_t i = 1; i < g->items; i++)
    if (g->item[i].segments != g->item[0].segments) return false;
  return true;
}

bool attention_request_has_binary(const struct attention_request *r) {
  const struct call *c = &r->asked.call;
  const bool segments = r->asked.geometry.segment_end && c->want == WEIGHTS_PER_HEAD;
  return !c->want_measures && !c->trace && r->rectangular && (!segments || segments_agree(r));
}

const char *attention_request_why_json(const struct attention_request *r) {
  if (r->asked.call.trace) return attention_traced_is_json;
  return "the items of the batch differ in shape, so that the response can only be JSON: accept "
         "application/json, or send items of one shape (with valid_lens) and equally many segments";
}

static const size_t zero = 0, one = 1;

/* --- measures of the layer --- */

/* The measures of a head, and the text before each. */
static const struct {
  const char *open;
  size_t at; /* in struct head_measures */
} measures[] = {
    {"{\"confidence\":", offsetof(struct head_measures, confidence)},
    {",\"entropy\":", offsetof(struct head_measures, entropy)},
    {",\"distance\":", offsetof(struct head_measures, distance)},
    {",\"norm\":", offsetof(struct head_measures, norm)},
    {",\"share\":", offsetof(struct head_measures, share)},
    {",\"delta\":", offsetof(struct head_measures, delta)},
    {",\"michel\":", offsetof(struct head_measures, michel)},
};
enum { MEASURES = sizeof measures / sizeof *measures };

static char *write_heads(const struct answer_rows *r, char *out) {
  const struct call *c = r->section->data;
  for (size_t i = 0; i < r->count; i++) {
    const struct head_measures *head = &c->measures->head[r->first + i];
    if (i > 0) *out++ = ',';
    for (size_t n = 0; n < MEASURES; n++) {
      const double *value = (const double *)((const char *)head + measures[n].at);
      if (value == &head->michel && !c->gradients) continue;
      out = answer_write_text(out, measures[n].open);
      const bool undefined = value == &head->entropy && !c->measures->divergence;
      out = undefined ? answer_write_text(out, "null") : number_write(out, (float)*value);
    }
    *out++ = '}';
  }
  return out;
}

static char *write_divergence(const struct answer_rows *r, char *out) {
  const double *row = (const double *)r->section->data + r->first * r->width;
  for (size_t i = 0; i < r->count; i++, row += r->width) {
    if (i > 0) *out++ = ',';
    *out++ = '[';
    for (size_t j = 0; j < r->width; j++) {
      if (j > 0) *out++ = ',';
      out = number_write(out, (float)row[j]);
    }
    *out++ = ']';
  }
  return out;
}

static char *write_ranking(const struct answer_rows *r, char *out) {
  const size_t *ranking = r->section->data;
  for (size_t i = 0; i < r->count; i++) {
    if (i > 0) *out++ = ',';
    out = number_write_integer(out, (int64_t)ranking[r->first + i]);
  }
  return out;
}

/* A list with one row for each head. */
static struct answer_section layer_section(const struct model *m, const char *name,
                                           const size_t *width, size_t row_room, const void *data,
                                           char *(*write)(const struct answer_rows *, char *)) {
  return (struct answer_section){.name = name,
                                 .items = 1,
                                 .heads = 1,
                                 .rows = {&m->shape.heads, 0},
                                 .width = {width, 0},
                                 .row_room = row_room,
                                 .data = data,
                                 .write = write};
}

static void add_measures(struct answer_content *to, const struct model *m, const struct call *c) {
  static const size_t numbers = MEASURES;
  static const struct measures unknown = {0}; /* of a call that is not prepared */
  const struct measures *measured = c->measures ? c->measures : &unknown;
  const bool compared = c->measures ? measured->divergence != NULL : !m->shape.sigmoid;
  size_t room = ROW_ROOM;
  for (size_t i = 0; i < MEASURES; i++) room += strlen(measures[i].open);
  to->rows = &measured->rows;
  to->section[to->sections++] = layer_section(m, "heads", &numbers, room, c, write_heads);
  to->section[to->sections++] =
      compared ? layer_section(m, "divergence", &m->shape.heads, ROW_ROOM, measured->divergence,
                               write_divergence)
               : (struct answer_section){.name = "divergence", .instead = "null"};
  to->section[to->sections++] =
      layer_section(m, "ranking", &one, 0, measured->ranking, write_ranking);
}

/* --- rows of the batch --- */

/* A size or offset of each item; of `none` in an empty batch. */
#define OF_ITEMS(r, member) ANSWER_OF_ITEMS(&(r)->asked.geometry, member, &(r)->none.member)

/* Rows of floats for each query and, with `heads`, each head. */
static struct answer_section batch_section(const struct attention_request *r, const char *name,
                                           size_t heads) {
  return (struct answer_section){.name = name,
                                 .batch = true,
                                 .per_head = heads > 0,
                                 .alike = r->rectangular,
                                 .items = r->asked.geometry.items,
                                 .heads = heads > 0 ? heads : 1,
                                 .rows = OF_ITEMS(r, q),
                                 .times = 1,
                                 .row_room = ROW_ROOM,
                                 .write = answer_write_floats};
}

static struct answer_section outputs_section(const struct model *m,
                                             const struct attention_request *r) {
  struct answer_section s = batch_section(r, "outputs", 0);
  s.width = (struct answer_sizes){&m->shape.output_size, 0};
  s.begin = OF_ITEMS(r, q_row);
  s.times = m->shape.output_size;
  s.data = r->asked.call.outputs;
  return s;
}

static struct answer_section weights_section(const struct model *m,
                                             const struct attention_request *r) {
  const struct call *c = &r->asked.call;
  struct answer_section s =
      batch_section(r, "attention_weights", c->want == WEIGHTS_PER_HEAD ? m->shape.heads : 0);
  s.width = OF_ITEMS(r, k);
  s.begin = answer_of_list(&r->asked.geometry, c->weights_at, &zero);
  s.data = c->weights;
  return s;
}

/* --- the response --- */

enum { SECTIONS_MAX = 7 };

/* Adds all sections except the trace. */
static void add_sections(struct answer_content *to, enum answer_form form, const struct model *m,
                         const struct attention_request *r) {
  const struct call *c = &r->asked.call;
  if (form == ANSWER_V2) {
    for (size_t i = 0; i < r->v2.outputs; i++) {
      struct answer_section *s = &to->section[to->sections++];
      *s = r->v2.output[i].which == OUTPUT_WEIGHTS ? weights_section(m, r) : outputs_section(m, r);
      s->binary = r->v2.output[i].binary;
    }
    return;
  }
  if (c->want_measures)
    add_measures(to, m, c);
  else
    to->section[to->sections++] = outputs_section(m, r);
  if (c->want != WEIGHTS_NONE) to->section[to->sections++] = weights_section(m, r);
  if (c->want == WEIGHTS_PER_HEAD && r->asked.geometry.segment_end) {
    struct answer_section *s = &to->section[to->sections++];
    *s = batch_section(r, "segment_weights", m->shape.heads);
    s->alike = r->rectangular && segments_agree(r);
    s->width = OF_ITEMS(r, segments);
    s->begin = answer_of_list(&r->asked.geometry, c->segment_weights_at, &zero);
    s->data = c->segment_weights;
  }
  if (c->want_pointers) {
    struct answer_section *s = &to->section[to->sections++];
    *s = batch_section(r, "pointers", m->shape.heads);
    s->number = NUMBER_INTEGER;
    s->width = (struct answer_sizes){&one, 0};
    s->begin = OF_ITEMS(r, q_row);
    s->times = m->shape.heads;
    s->row_room = 0;
    s->data = c->pointers;
    s->write = answer_write_integers;
  }
}

size_t attention_answer_count(enum answer_form form, const struct model *m,
                              const struct attention_request *r) {
  const struct trace *t = r->asked.call.trace;
  struct answer_section section[SECTIONS_MAX];
  struct answer_content content = {.base64 = r->base64, .section = section};
  add_sections(&content, form, m, r);
  size_t bytes = answer_count(&content, form);
  if (t && !attention_traced_count(r->asked.geometry.item[t->item].k, &m->shape, &bytes))
    return SIZE_MAX;
  return bytes;
}

enum status attention_answer_plan(struct answer *a, enum answer_form form, const struct model *m,
                                  const struct attention_request *r,
                                  const struct body_limits *limits, struct arena *arena,
                                  struct error *e) {
  const struct trace *t = r->asked.call.trace;
  struct answer_content *content = arena_alloc(arena, 1, sizeof *content, e);
  struct answer_section *section = arena_alloc(arena, SECTIONS_MAX, sizeof *section, e);
  *a = (struct answer){.form = form};
  if (!content || !section) return e->status;
  *content = (struct answer_content){.model = m->name,
                                     .unbatched = r->unbatched,
                                     .base64 = r->base64,
                                     .left = r->asked.call.left,
                                     .section = section};
  content->id = r->v2.id;
  content->id_length = r->v2.id_length;
  add_sections(content, form, m, r);
  if (t) section[content->sections++] = attention_trace_section(t, arena, e);
  if (e->status) return e->status;
  return answer_plan(a, form, content, limits->max_answer_bytes, arena, e);
}
