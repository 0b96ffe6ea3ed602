/* ranking: a query and documents become pairs of texts, or texts; their scores or embeddings become
 * an order. */
#include "server/dialect/ranking.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/size.h"
#include "server/dialect/dialect_answer.h"
#include "server/model/check/stack_tokenize.h"
#include "server/text/json_string.h"

/* --- the request --- */

uint64_t ranking_plan_cost(const struct contract_reading *r) {
  enum { COPY_NS = 1 }; /* the token of a byte, to one document */
  const struct dialect_values *v = r->values;
  const uint64_t items = r->texts ? r->texts->items : 0;
  return dialect_plan_cost(r) + (CONTRACT_TEXT_NS + COPY_NS * items) * v->query.length;
}

/* The texts to embed, or to classify. Pairs have the query before each document. Else the query is
 * the last text, so that documents keep their numbers in errors. NULL without memory. */
static const struct texts *make_texts(const struct contract_reading *read, bool pairs) {
  const struct dialect_values *v = read->values;
  const struct texts *d = read->texts;
  const struct texts_part query = {d->length, v->query.length};
  const size_t parts = pairs ? TEXTS_PAIR * d->items : d->items + 1;
  struct texts *t = arena_alloc(read->arena, 1, sizeof *t, read->e);
  char *bytes = arena_alloc(read->arena, d->length + v->query.length, 1, read->e);
  struct texts_part *part = arena_alloc(read->arena, parts, sizeof *part, read->e);
  if (read->e->status) return NULL;
  if (d->length) memcpy(bytes, d->bytes, d->length);
  memcpy(bytes + d->length, v->query.bytes, v->query.length);
  *t = (struct texts){.bytes = bytes,
                      .part = part,
                      .length = d->length + v->query.length,
                      .items = pairs ? d->items : d->items + 1,
                      .queries = pairs ? 0 : 1,
                      .of_item = pairs ? TEXTS_PAIR : 1};
  for (size_t i = 0; i < d->items; i++) {
    if (pairs) *part++ = query;
    *part++ = d->part[i];
  }
  if (!pairs) *part = query;
  return t;
}

/* Has the run compare the vectors of documents with those of the query. */
static enum status match(const struct contract_reading *read, struct stack_request *out) {
  struct stack_match *m = arena_alloc(read->arena, 1, sizeof *m, read->e);
  if (m) *m = (struct stack_match){.query = read->texts->items, .of = out->kept};
  out->main.run->match = m;
  return read->e->status;
}

enum status ranking_ask(struct dialect_stack *s, const struct contract_reading *read,
                        const char *documents, struct stack_request *out) {
  const struct dialect_name names[] = {{"/text", documents}, {"/tokens", documents}, {NULL, NULL}};
  const struct dialect_values *v = read->values;
  const bool pairs = whole_classes(s->whole, WHOLE_HEAD_CLASSES) > 0;
  if (!v->query.bytes) return error_at(read->e, "/query", "the field \"query\" is missing");
  if (!read->texts)
    return error_at(read->e, documents, "the field \"%s\" is missing", documents + 1);
  if (read->texts->items == 0) return error_at(read->e, documents, "the list is empty");
  s->reading.texts = make_texts(read, pairs);
  if (!s->reading.texts) return read->e->status;
  dialect_stack_mark(s, STACK_FIELD_TEXT);
  dialect_stack_truncate(s, v->truncate, SIZE_MAX);
  const bool dense = stack_pool_is_dense(s->values.pool);
  s->values.normalize = !pairs && dense;
  if (pairs) { /* with the default prompt, as /classify */
    s->values.classifies = true;
    if (v->raw) s->values.function = STACK_FUNCTION_NONE;
    return dialect_stack_check(s, names, out);
  }
  stack_tokenize_first(&s->values.prompt, s->whole, stack_tokenize_prompts[WHOLE_TEXT_DOCUMENT]);
  stack_tokenize_first(&s->values.query_prompt, s->whole, stack_tokenize_prompts[WHOLE_TEXT_QUERY]);
  if (dense && dialect_stack_pool(s)) return read->e->status;
  if (!dialect_stack_check(s, names, out)) return out->kept ? match(read, out) : STATUS_OK;
  /* An error about the text after the documents is one about the query. */
  char last[ERROR_POINTER_SIZE];
  snprintf(last, sizeof last, "%s/%zu", documents, read->texts->items);
  if (strcmp(read->e->pointer, last) == 0)
    snprintf(read->e->pointer, sizeof read->e->pointer, "/query");
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

/* The dot product of two items' weights of tokens. */
static float dot_sparse(const struct stack_run *run, size_t one, size_t other) {
  const struct stack_weights_of_tokens *s = &run->sparse;
  const size_t a = s->at[one], b = s->at[other];
  double sum = 0;
  for (size_t i = 0, k = 0; i < s->count[one] && k < s->count[other];) {
    const int32_t x = s->token[a + i], y = s->token[b + k];
    if (x == y) sum += (double)s->weight[a + i] * s->weight[b + k];
    i += x <= y, k += y <= x;
  }
  return (float)sum;
}

/* --- the list --- */

/* The documents of a response: a list that one worker sorts and writes. */
struct ranking {
  const struct dialect_values *asked;
  const struct texts *documents;
  const struct stack_request *request;
  struct ranked *place; /* [documents] */
  size_t shown;         /* the first of them that are returned */
  char *(*write)(const struct ranked *one, struct tokenizer_text text, char *out);
};

/* The score of a document: of its class, or its product with the query, the last item. */
static float score_of(const struct ranking *k, size_t document) {
  const struct stack_run *run = k->request->main.run;
  const size_t size = run->output_size, query = k->documents->items;
  if (run->match) return run->similarity[document];
  const float *output = run->outputs + document * size;
  if (k->request->classes_of) return *output;
  if (run->want_sparse) return dot_sparse(run, document, query);
  return ranking_dot(output, run->outputs + query * size, size);
}

static char *write_all(const struct answer_rows *rows, char *out) {
  const struct ranking *k = rows->section->data;
  const struct texts *d = k->documents;
  for (size_t i = 0; i < d->items; i++) k->place[i] = (struct ranked){score_of(k, i), (unsigned)i};
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

/* The most bytes of the objects, whichever documents are returned. False: an overflow. */
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
  const struct dialect_values *v = read->values;
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
