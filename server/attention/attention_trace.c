/* attention_trace: a trace in the answer: how its numbers are written. */
#include "server/attention/attention_trace.h"

/* A member: a list of numbers, or of rows of them. */
struct attention_trace_part {
  size_t rows, width;
  const float *data;
  bool nested;         /* each row is a list */
  const uint8_t *seen; /* [rows] null where it is 0; NULL: none is */
};

static const char *const names[] = {"query",   "keys",   "products", "scores",
                                    "weights", "values", "context"};
enum { PARTS = sizeof names / sizeof *names };

static char *write_part(const struct answer_rows *r, char *out) {
  const struct attention_trace_part *part =
      (const struct attention_trace_part *)r->section->data + r->item;
  if (part->nested)
    return number_write_rows(out, part->data + r->first * part->width, r->count, part->width);
  for (size_t i = r->first; i < r->first + r->count; i++) {
    if (i > r->first) *out++ = ',';
    const bool hidden = part->seen && !part->seen[i];
    out = hidden ? answer_write_text(out, "null") : number_write(out, part->data[i]);
  }
  return out;
}

static void set_parts(const struct trace *t, struct attention_trace_part part[PARTS]) {
  const struct attention_trace_part all[PARTS] = {
      {t->size, 1, t->query, .nested = false},
      {t->keys, t->size, t->key, .nested = true},
      {t->keys, 1, t->product, .seen = t->seen},
      {t->keys, 1, t->score, .seen = t->seen},
      {t->keys, 1, t->weight, .nested = false},
      {t->keys, t->value_size, t->value, .nested = true},
      {t->value_size, 1, t->context, .nested = false}};
  memcpy(part, all, sizeof all);
}

struct answer_section attention_trace_section(const struct trace *t, struct arena *a,
                                              struct error *e) {
  struct attention_trace_part *part = arena_alloc(a, PARTS, sizeof *part, e);
  if (!part) return (struct answer_section){.name = "trace"};
  set_parts(t, part);
  return (struct answer_section){.name = "trace",
                                 .members = names,
                                 .items = PARTS,
                                 .heads = 1,
                                 .rows = {&part->rows, sizeof *part},
                                 .width = {&part->width, sizeof *part},
                                 .row_room = ROW_ROOM,
                                 .data = part,
                                 .write = write_part};
}
