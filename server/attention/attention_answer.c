/* attention_answer: which sections an answer has, where their numbers lie, and how measures of
 * heads are written. */
#include "server/attention/attention_answer.h"

#include "core/attention/measures.h"
#include "server/attention/attention_fields.h"
#include "server/attention/attention_trace.h"

/* --- of the whole layer --- */

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

static size_t object_room(void) {
  size_t room = ROW_ROOM;
  for (size_t i = 0; i < MEASURES; i++) room += strlen(measures[i].open);
  return room;
}

static char *write_measure(char *out, double value) { return number_write(out, (float)value); }

static char *write_head_measures(const struct call *c, const struct head_measures *head,
                                 char *out) {
  for (size_t i = 0; i < MEASURES; i++) {
    const double *value = (const double *)((const char *)head + measures[i].at);
    if (value == &head->michel && !c->gradients) continue;
    out = answer_write_text(out, measures[i].open);
    bool means_nothing = value == &head->entropy && !c->measures->divergence;
    out = means_nothing ? answer_write_text(out, "null") : write_measure(out, *value);
  }
  *out++ = '}';
  return out;
}

static char *write_heads(const struct answer_rows *r, char *out) {
  const struct call *c = r->section->data;
  for (size_t i = 0; i < r->count; i++) {
    if (i > 0) *out++ = ',';
    out = write_head_measures(c, &c->measures->head[r->first + i], out);
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
      out = write_measure(out, row[j]);
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

/* A list of one row for each head. The number of rows measured comes before all sections. */
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
  static const size_t one = 1, numbers = MEASURES;
  const struct measures *measured = c->measures;
  to->rows = &measured->rows;
  to->section[to->sections++] = layer_section(m, "heads", &numbers, object_room(), c, write_heads);
  to->section[to->sections++] =
      measured->divergence ? layer_section(m, "divergence", &m->shape.heads, ROW_ROOM,
                                           measured->divergence, write_divergence)
                           : (struct answer_section){.name = "divergence", .instead = "null"};
  to->section[to->sections++] =
      layer_section(m, "ranking", &one, 0, measured->ranking, write_ranking);
}

/* --- of the batch --- */

static const size_t zero = 0;

/* An empty batch whose shape was given has what each item would have. */
#define OF_ITEMS(r, member) ANSWER_OF_ITEMS(&(r)->asked.geometry, member, &(r)->none.member)

static struct answer_section outputs_section(const struct model *m,
                                             const struct attention_request *r) {
  return (struct answer_section){.name = "outputs",
                                 .batch = true,
                                 .alike = r->rectangular,
                                 .items = r->asked.geometry.items,
                                 .heads = 1,
                                 .rows = OF_ITEMS(r, q),
                                 .width = {&m->shape.output_size, 0},
                                 .begin = OF_ITEMS(r, q_row),
                                 .times = m->shape.output_size,
                                 .row_room = ROW_ROOM,
                                 .data = r->asked.call.outputs,
                                 .write = answer_write_floats};
}

static struct answer_section weights_section(const struct model *m,
                                             const struct attention_request *r) {
  const bool per_head = r->asked.call.want == WEIGHTS_PER_HEAD;
  return (struct answer_section){.name = "attention_weights",
                                 .batch = true,
                                 .per_head = per_head,
                                 .alike = r->rectangular,
                                 .items = r->asked.geometry.items,
                                 .heads = per_head ? m->shape.heads : 1,
                                 .rows = OF_ITEMS(r, q),
                                 .width = OF_ITEMS(r, k),
                                 .begin = answer_of_list(&r->asked.geometry,
                                                         r->asked.call.weights_at, &zero),
                                 .times = 1,
                                 .row_room = ROW_ROOM,
                                 .data = r->asked.call.weights,
                                 .write = answer_write_floats};
}

static struct answer_section segment_weights_section(const struct model *m,
                                                     const struct attention_request *r) {
  return (struct answer_section){.name = "segment_weights",
                                 .batch = true,
                                 .per_head = true,
                                 .alike = r->rectangular && attention_request_segments_agree(r),
                                 .items = r->asked.geometry.items,
                                 .heads = m->shape.heads,
                                 .rows = OF_ITEMS(r, q),
                                 .width = OF_ITEMS(r, segments),
                                 .begin = answer_of_list(&r->asked.geometry,
                                                         r->asked.call.segment_weights_at, &zero),
                                 .times = 1,
                                 .row_room = ROW_ROOM,
                                 .data = r->asked.call.segment_weights,
                                 .write = answer_write_floats};
}

static struct answer_section pointers_section(const struct model *m,
                                              const struct attention_request *r) {
  static const size_t one = 1;
  return (struct answer_section){.name = "pointers",
                                 .batch = true,
                                 .per_head = true,
                                 .number = NUMBER_INTEGER,
                                 .alike = r->rectangular,
                                 .items = r->asked.geometry.items,
                                 .heads = m->shape.heads,
                                 .rows = OF_ITEMS(r, q),
                                 .width = {&one, 0},
                                 .begin = OF_ITEMS(r, q_row),
                                 .times = m->shape.heads,
                                 .data = r->asked.call.pointers,
                                 .write = answer_write_integers};
}

/* --- which there are --- */

static void add_native(struct answer_content *to, const struct model *m,
                       const struct attention_request *r, struct arena *a, struct error *e) {
  const struct call *c = &r->asked.call;
  if (c->want_measures)
    add_measures(to, m, c);
  else
    to->section[to->sections++] = outputs_section(m, r);
  if (c->want != WEIGHTS_NONE) to->section[to->sections++] = weights_section(m, r);
  if (c->want == WEIGHTS_PER_HEAD && r->asked.geometry.segment_end)
    to->section[to->sections++] = segment_weights_section(m, r);
  if (c->want_pointers) to->section[to->sections++] = pointers_section(m, r);
  if (c->trace) to->section[to->sections++] = attention_trace_section(c->trace, a, e);
}

static void add_v2(struct answer_content *to, const struct model *m,
                   const struct attention_request *r) {
  to->id = r->v2.id;
  to->id_length = r->v2.id_length;
  for (size_t i = 0; i < r->v2.outputs; i++) {
    struct answer_section *s = &to->section[to->sections++];
    *s = r->v2.output[i].which == OUTPUT_WEIGHTS ? weights_section(m, r) : outputs_section(m, r);
    s->binary = r->v2.output[i].binary;
  }
}

enum status attention_answer_plan(struct answer *a, enum answer_form form, const struct model *m,
                                  const struct attention_request *r,
                                  const struct body_limits *limits, struct arena *arena,
                                  struct error *e) {
  enum { SECTIONS_MAX = 7 };
  struct answer_content *content = arena_alloc(arena, 1, sizeof *content, e);
  struct answer_section *section = arena_alloc(arena, SECTIONS_MAX, sizeof *section, e);
  *a = (struct answer){.form = form};
  if (!content || !section) return e->status;
  *content = (struct answer_content){.model = m->name,
                                     .unbatched = r->unbatched,
                                     .base64 = r->base64,
                                     .left = r->asked.call.left,
                                     .section = section};
  if (form == ANSWER_V2)
    add_v2(content, m, r);
  else
    add_native(content, m, r, arena, e);
  if (e->status) return e->status;
  return answer_plan(a, form, content, limits->max_answer_bytes, arena, e);
}
