/* ranking: a query and documents become pairs of texts, or texts; their scores or vectors become an
 * order. */
#include "server/dialect/ranking.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/size.h"
#include "server/dialect/dialect_answer.h"
#include "server/text/json_string.h"

/* --- what was read --- */

uint64_t ranking_plan_cost(const struct contract_reading *r) {
  const struct ranking_values *v = r->values;
  const uint64_t items = r->texts ? r->texts->items : 0;
  enum { COPY_NS = 1 }; /* of a byte's token, to each document */
  return dialect_plan_cost(r) + (CONTRACT_TEXT_NS + COPY_NS * items) * v->query.length;
}

static enum status check_read(const struct contract_reading *read, const char *documents) {
  const struct ranking_values *v = read->values;
  if (!v->query.bytes) return error_at(read->e, "/query", "the field \"query\" is missing");
  if (!read->texts)
    return error_at(read->e, documents, "the field \"%s\" is missing", documents + 1);
  if (read->texts->items == 0) return error_at(read->e, documents, "the list is empty");
  return STATUS_OK;
}

/* --- what is asked --- */

/* All bytes, the query behind the documents. NULL without memory. */
static struct texts *copy_texts(const struct contract_reading *read, size_t parts) {
  const struct ranking_values *v = read->values;
  const struct texts *d = read->texts;
  struct texts *t = arena_alloc(read->arena, 1, sizeof *t, read->e);
  char *bytes = arena_alloc(read->arena, d->length + v->query.length, 1, read->e);
  struct texts_part *part = arena_alloc(read->arena, parts, sizeof *part, read->e);
  if (read->e->status) return NULL;
  if (d->length) memcpy(bytes, d->bytes, d->length);
  memcpy(bytes + d->length, v->query.bytes, v->query.length);
  *t = (struct texts){.bytes = bytes, .part = part, .length = d->length + v->query.length};
  return t;
}

static const struct texts *make_pairs(const struct contract_reading *read) {
  const struct ranking_values *v = read->values;
  const struct texts *d = read->texts;
  struct texts *t = copy_texts(read, TEXTS_PAIR * d->items);
  if (!t) return NULL;
  t->items = d->items;
  t->of_item = TEXTS_PAIR;
  for (size_t i = 0; i < d->items; i++) {
    t->part[TEXTS_PAIR * i] = (struct texts_part){d->length, v->query.length};
    t->part[TEXTS_PAIR * i + 1] = d->part[i];
  }
  return t;
}

/* The query is the last one, so that documents have their own numbers in errors. */
static const struct texts *make_list(const struct contract_reading *read) {
  const struct ranking_values *v = read->values;
  const struct texts *d = read->texts;
  struct texts *t = copy_texts(read, d->items + 1);
  if (!t) return NULL;
  t->items = d->items + 1;
  t->queries = 1;
  t->of_item = 1;
  memcpy(t->part, d->part, d->items * sizeof *d->part);
  t->part[d->items] = (struct texts_part){d->length, v->query.length};
  return t;
}

/* An error about the text behind the documents is one about the query. */
static void locate_query(const struct contract_reading *read, const char *documents) {
  char last[ERROR_POINTER_SIZE];
  snprintf(last, sizeof last, "%s/%zu", documents, read->texts->items);
  if (strcmp(read->e->pointer, last) == 0)
    snprintf(read->e->pointer, sizeof read->e->pointer, "/query");
}

void ranking_prompt(struct contract_text *prompt, const struct whole *w, const char *const *names) {
  const json_t *text = NULL;
  while (*names && !text) text = json_object_get(w->prompts, *names++);
  stack_fields_prompt(prompt, text ? text : w->prompt);
}

static void choose_prompts(struct dialect_stack *s) {
  static const char *const of_documents[] = {"document", "passage", "corpus", NULL},
                           *const of_queries[] = {"query", NULL};
  ranking_prompt(&s->values.prompt, s->whole, of_documents);
  ranking_prompt(&s->values.query_prompt, s->whole, of_queries);
}

enum status ranking_ask(struct dialect_stack *s, const struct contract_reading *read,
                        const char *documents, struct stack_request *out) {
  const struct dialect_name names[] = {{"/text", documents}, {"/tokens", documents}, {NULL, NULL}};
  const struct ranking_values *v = read->values;
  const bool pairs = s->whole->classes > 0; /* they get the default prompt, as /classify has it */
  if (check_read(read, documents)) return read->e->status;
  s->reading.texts = pairs ? make_pairs(read) : make_list(read);
  if (!s->reading.texts) return read->e->status;
  dialect_stack_give(s, STACK_FIELD_TEXT);
  dialect_stack_truncate(s, v->truncate, SIZE_MAX);
  if (pairs) {
    s->values.pool = STACK_POOL_CLASSES;
    if (v->raw) s->values.function = STACK_FUNCTION_NONE;
  } else {
    choose_prompts(s);
    if (s->values.pool == STACK_POOL_NONE) s->values.pool = STACK_POOL_MEAN;
  }
  s->values.normalize = !pairs;
  if (dialect_stack_check(s, names, out) && !pairs) locate_query(read, documents);
  return read->e->status;
}

/* --- the order --- */

static int compare(const void *a, const void *b) {
  const struct ranked *x = a, *y = b;
  if (x->score != y->score) return x->score > y->score ? -1 : 1;
  return x->index < y->index ? -1 : 1;
}

void ranked_sort(struct ranked *all, size_t count) { qsort(all, count, sizeof *all, compare); }

float ranking_dot(const float *a, const float *b, size_t size) {
  double sum = 0;
  for (size_t i = 0; i < size; i++) sum += (double)a[i] * (double)b[i];
  return (float)sum;
}

static void score_documents(const struct ranking *k) {
  const struct stack_run *run = k->request->main.run;
  const size_t size = run->output_size, count = k->documents->items;
  const float *query = k->request->classes_of ? NULL : run->outputs + count * size;
  for (size_t i = 0; i < count; i++) {
    const float *of_one = run->outputs + i * size;
    k->place[i] = (struct ranked){query ? ranking_dot(of_one, query, size) : *of_one, (unsigned)i};
  }
}

/* --- the list --- */

static char *write_all(const struct answer_rows *rows, char *out) {
  const struct ranking *k = rows->section->data;
  const struct texts *d = k->documents;
  score_documents(k);
  ranked_sort(k->place, d->items);
  for (size_t i = 0; i < k->shown; i++) {
    const struct texts_part *part = &d->part[k->place[i].index];
    struct tokenizer_text text = {NULL, part->length};
    if (k->asked->shows_texts) text.bytes = part->length ? d->bytes + part->at : "";
    if (i > 0) *out++ = ',';
    out = k->write(&k->place[i], text, out);
  }
  return out;
}

/* Bytes that the objects may need, whichever documents are told. */
static bool count_room(const struct ranking *k, size_t *room) {
  size_t texts = 0, longest = 0, objects;
  for (size_t i = 0; i < k->documents->items; i++)
    longest = size_max(longest, k->documents->part[i].length);
  if (!size_mul(longest, k->shown, &texts)) texts = SIZE_MAX;
  texts = k->asked->shows_texts ? size_min(texts, k->documents->length) : 0;
  return size_mul(texts, JSON_STRING_ROOM, &texts) &&
         size_mul(k->shown, RANKING_OBJECT_ROOM, &objects) && size_add(texts, objects, room) &&
         size_add(*room, ROW_ROOM, room);
}

enum status ranking_section(struct answer_section *section, const char *name,
                            const struct contract_reading *read, const struct stack_request *r,
                            char *(*write)(const struct ranked *one, struct tokenizer_text text,
                                           char *out)) {
  static const size_t one = 1;
  const struct ranking_values *v = read->values;
  const size_t count = read->texts->items;
  struct ranking *k = arena_alloc(read->arena, 1, sizeof *k, read->e);
  struct ranked *place = arena_alloc(read->arena, count, sizeof *place, read->e);
  size_t room;
  if (read->e->status) return read->e->status;
  *k = (struct ranking){.asked = v,
                        .documents = read->texts,
                        .request = r,
                        .place = place,
                        .shown = v->best ? size_min(v->best, count) : count,
                        .write = write};
  if (!count_room(k, &room))
    return error_set(read->e, STATUS_TOO_LARGE, "the texts exceed the address space");
  *section = dialect_answer_list(name, &one, NULL, room, write_all, k);
  return STATUS_OK;
}
