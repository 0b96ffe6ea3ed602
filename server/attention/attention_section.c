/* attention_section: the members of an answer: which there are, what shape they have, and how their
 * rows are written. */
#include "server/attention/attention_section.h"

#include <string.h>

#include "core/attention/measures.h"

enum { ROW_ROOM = 3 /* a comma, opened, closed */ };

/* --- of the batch --- */

/* The numbers of an item's rows of all heads begin here in their array. */
static size_t begin_of(const struct section *s, const struct call *c, size_t item) {
  const struct item *at = &c->item[item];
  if (s->width_of == WIDTH_KEYS) return at->weights_at;
  if (s->width_of == WIDTH_SEGMENTS) return at->segment_weights_at;
  return s->heads * at->q_row * s->width;
}

static struct array array_of(const struct section *s, const struct item *item) {
  const size_t width = section_width(s, item);
  struct array a = {.count = s->heads * item->q * width};
  if (s->per_head) a.dim[a.rank++] = s->heads;
  a.dim[a.rank++] = item->q;
  if (!s->is_integer) a.dim[a.rank++] = width;
  return a;
}

struct array section_array(const struct section *s, const struct call *c, size_t item) {
  struct array a = array_of(s, &c->item[item]);
  if (a.count) a.data = (const float *)s->data + begin_of(s, c, item);
  return a;
}

struct array section_whole(const struct section *s, const struct attention_request *d) {
  const struct call *c = &d->call;
  struct array a = array_of(s, c->items ? &c->item[0] : &d->none);
  a.data = s->data;
  if (d->unbatched) return a;
  memmove(a.dim + 1, a.dim, a.rank * sizeof *a.dim);
  a.dim[0] = c->items;
  a.rank++;
  a.count *= c->items;
  return a;
}

char *array_write_shape(char *out, const struct array *a) {
  *out++ = '[';
  for (size_t i = 0; i < a->rank; i++) {
    if (i > 0) *out++ = ',';
    out = number_write_integer(out, (int64_t)a->dim[i]);
  }
  *out++ = ']';
  return out;
}

/* Where the rows begin in their array. */
static size_t index_of(const struct rows *r) {
  const size_t row = r->head * r->call->item[r->item].q + r->first;
  return begin_of(r->section, r->call, r->item) + row * r->width;
}

static char *write_floats(const struct rows *r, char *out) {
  const float *row = r->width ? (const float *)r->section->data + index_of(r) : NULL;
  return number_write_rows(out, row, r->count, r->width);
}

static char *write_pointers(const struct rows *r, char *out) {
  const int32_t *pointer = (const int32_t *)r->section->data + index_of(r);
  for (size_t i = 0; i < r->count; i++) {
    if (i > 0) *out++ = ',';
    out = number_write_integer(out, pointer[i]);
  }
  return out;
}

/* --- of the whole layer --- */

/* The measures of a head, and what stands before each. */
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

static char *write_head(const struct call *c, const struct head_measures *head, char *out) {
  for (size_t i = 0; i < MEASURES; i++) {
    const double *value = (const double *)((const char *)head + measures[i].at);
    if (value == &head->michel && !c->gradients) continue;
    out = write_text(out, measures[i].open);
    bool means_nothing = value == &head->entropy && !c->measures->divergence;
    out = means_nothing ? write_text(out, "null") : write_measure(out, *value);
  }
  *out++ = '}';
  return out;
}

static char *write_heads(const struct rows *r, char *out) {
  for (size_t i = 0; i < r->count; i++) {
    if (i > 0) *out++ = ',';
    out = write_head(r->call, &r->call->measures->head[r->first + i], out);
  }
  return out;
}

static char *write_divergence(const struct rows *r, char *out) {
  const double *row = r->call->measures->divergence + r->first * r->width;
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

static char *write_ranking(const struct rows *r, char *out) {
  for (size_t i = 0; i < r->count; i++) {
    if (i > 0) *out++ = ',';
    out = number_write_integer(out, (int64_t)r->call->measures->ranking[r->first + i]);
  }
  return out;
}

/* --- which there are --- */

static struct section outputs_section(const struct model *m, const struct call *c) {
  return (struct section){.name = "outputs",
                          .batch = true,
                          .items = c->items,
                          .heads = 1,
                          .width = m->shape.output_size,
                          .row_room = ROW_ROOM,
                          .data = c->outputs,
                          .write = write_floats};
}

static struct section weights_section(const struct model *m, const struct call *c) {
  bool per_head = c->want == WEIGHTS_PER_HEAD;
  return (struct section){.name = "attention_weights",
                          .batch = true,
                          .per_head = per_head,
                          .items = c->items,
                          .heads = per_head ? m->shape.heads : 1,
                          .width_of = WIDTH_KEYS,
                          .row_room = ROW_ROOM,
                          .data = c->weights,
                          .write = write_floats};
}

static struct section segment_weights_section(const struct model *m, const struct call *c) {
  return (struct section){.name = "segment_weights",
                          .batch = true,
                          .per_head = true,
                          .items = c->items,
                          .heads = m->shape.heads,
                          .width_of = WIDTH_SEGMENTS,
                          .row_room = ROW_ROOM,
                          .data = c->segment_weights,
                          .write = write_floats};
}

static struct section pointers_section(const struct model *m, const struct call *c) {
  return (struct section){.name = "pointers",
                          .batch = true,
                          .per_head = true,
                          .items = c->items,
                          .heads = m->shape.heads,
                          .is_integer = true,
                          .width = 1,
                          .data = c->pointers,
                          .write = write_pointers};
}

/* A list of one row for each head. The number of rows measured stands before, in the object's
 * head. */
static struct section layer_section(const struct model *m, const char *name, size_t width,
                                    size_t row_room,
                                    char *(*write)(const struct rows *rows, char *out)) {
  return (struct section){.name = name,
                          .items = 1,
                          .heads = 1,
                          .rows = m->shape.heads,
                          .width = width,
                          .row_room = row_room,
                          .write = write};
}

static size_t measured_sections(const struct model *m, const struct call *c,
                                struct section *section) {
  section[0] = layer_section(m, "heads", MEASURES, object_room(), write_heads);
  if (c->measures->divergence)
    section[1] = layer_section(m, "divergence", m->shape.heads, ROW_ROOM, write_divergence);
  else
    section[1] = (struct section){.name = "divergence", .instead = "null"};
  section[2] = layer_section(m, "ranking", 1, 0, write_ranking);
  return 3;
}

size_t sections_of(const struct model *m, const struct call *c,
                   struct section section[SECTIONS_MAX]) {
  size_t n = 0;
  if (c->want_measures)
    n += measured_sections(m, c, section);
  else
    section[n++] = outputs_section(m, c);
  if (c->want != WEIGHTS_NONE) section[n++] = weights_section(m, c);
  if (c->want == WEIGHTS_PER_HEAD && c->segment_end) section[n++] = segment_weights_section(m, c);
  if (c->want_pointers) section[n++] = pointers_section(m, c);
  return n;
}
