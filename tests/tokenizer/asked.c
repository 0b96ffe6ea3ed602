/* asked: the tokenizer of a file, asked as the oracles are: `asked TOKENIZER`, questions on
 * standard input, a line each, answers on standard output (README.md). */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/document/file.h"
#include "config/tokenizer/tokenizer.h"

/* --- questions --- */

struct question {
  const struct tokenizer *t;
  struct arena arena;
  struct error error;
  struct tokens tokens;
  struct tokenizer_text text[2];
};

/* The characters before a byte. */
static size_t characters(const struct tokenizer_text *text, size_t byte) {
  size_t count = 0;
  for (size_t i = 0; i < byte && i < text->length; i++)
    count += ((unsigned char)text->bytes[i] & 0xc0) != 0x80;
  return count;
}

static json_t *spelt(struct question *q, const int32_t *id, size_t count, bool bare) {
  struct decoder_text out = {NULL, 0};
  if (tokenizer_decode(q->t, id, count, bare, &q->arena, &out, &q->error)) return json_null();
  json_t *text = json_stringn(out.bytes ? out.bytes : "", out.length);
  must(text);
  return text;
}

static void add_spelt(struct question *q, json_t *answer, const int32_t *id, size_t count) {
  json_object_set_new(answer, "text", spelt(q, id, count, true));
  json_object_set_new(answer, "whole", spelt(q, id, count, false));
}

static json_t *list_of(const struct question *q, int (*number)(const struct token *)) {
  json_t *list = json_array();
  for (size_t i = 0; i < q->tokens.count; i++)
    json_array_append_new(list, json_integer(number(&q->tokens.token[i])));
  return list;
}

static int id_of(const struct token *t) { return t->id; }
static int type_of(const struct token *t) { return t->type; }

static json_t *offsets(const struct question *q) {
  json_t *list = json_array();
  for (size_t i = 0; i < q->tokens.count; i++) {
    const struct token *t = &q->tokens.token[i];
    const struct tokenizer_text *text = &q->text[t->text];
    json_array_append_new(list, json_pack("[I, I]", (json_int_t)characters(text, t->begin),
                                          (json_int_t)characters(text, t->end)));
  }
  return list;
}

static json_t *cut(struct question *q, const json_t *asked) {
  const json_t *pair = json_object_get(asked, "pair"), *text = json_object_get(asked, "text");
  const bool two = json_is_string(pair);
  const struct tokenizer_options ask = {.special = !json_is_true(json_object_get(asked, "bare")),
                                        .traced = true,
                                        .longest = tokenizer_truncation(q->t)};
  struct tokenizer_work work;
  tokenizer_work_init(&work, &q->arena, &q->error);
  tokens_init(&q->tokens, &q->arena, &q->error);
  q->text[0] = (struct tokenizer_text){json_string_value(text), json_string_length(text)};
  q->text[1] = (struct tokenizer_text){json_string_value(pair), json_string_length(pair)};
  if (tokenizer_encode(q->t, &work, q->text, two ? 2 : 1, &ask, &q->tokens)) return NULL;
  int32_t *id = arena_alloc(&q->arena, q->tokens.count, sizeof *id, &q->error);
  for (size_t i = 0; i < q->tokens.count; i++) id[i] = q->tokens.token[i].id;
  json_t *answer = json_pack("{s:o, s:o, s:o}", "ids", list_of(q, id_of), "types",
                             list_of(q, type_of), "offsets", offsets(q));
  add_spelt(q, answer, id, q->tokens.count);
  return answer;
}

static json_t *spell(struct question *q, const json_t *ids) {
  const size_t count = json_array_size(ids);
  int32_t *id = arena_alloc(&q->arena, count, sizeof *id, &q->error);
  for (size_t i = 0; i < count; i++) id[i] = (int32_t)json_integer_value(json_array_get(ids, i));
  json_t *answer = json_object();
  add_spelt(q, answer, id, count);
  return answer;
}

static void respond(const struct tokenizer *t, const char *line, size_t length) {
  struct question q = {.t = t};
  json_error_t why;
  json_t *asked = json_loadb(line, length, JSON_ALLOW_NUL, &why);
  arena_init(&q.arena, NULL);
  if (!asked) error_set(&q.error, STATUS_INVALID_JSON, "%s", why.text);
  const json_t *ids = json_object_get(asked, "ids");
  json_t *answer = q.error.status ? NULL : ids ? spell(&q, ids) : cut(&q, asked);
  if (q.error.status) {
    json_decref(answer);
    answer = json_pack("{s:s}", "error", q.error.detail);
  }
  json_dumpf(answer, stdout, JSON_COMPACT);
  putchar('\n');
  json_decref(answer);
  json_decref(asked);
  arena_free(&q.arena);
}

/* --- the program --- */

int main(int count, char **word) {
  struct error e = {0};
  json_t *json = count == 2 ? file_json_long(word[1], &e) : NULL;
  struct tokenizer *t = json ? tokenizer_new(json, &e) : NULL;
  char *line = NULL;
  size_t room = 0;
  json_decref(json);
  if (!t) {
    fprintf(stderr, "asked: %s\n", count == 2 ? e.detail : "asked TOKENIZER");
    return 2;
  }
  for (ssize_t n; (n = getline(&line, &room, stdin)) > 0; fflush(stdout))
    respond(t, line, (size_t)n);
  free(line);
  tokenizer_free(t);
  return 0;
}
