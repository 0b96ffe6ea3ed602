/* timed: what a tokenizer takes for a text, and for its tokens back: `timed TOKENIZER TEXT ...`. A
 * line for each: bytes, tokens, nanoseconds of this thread to cut it and to put it together, and
 * what is wrong with it. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "config/document/file.h"
#include "config/tokenizer/tokenizer.h"

static long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void take(const struct tokenizer *t, const struct tokenizer_text *text) {
  const struct tokenizer_options ask = {.special = true, .traced = true};
  struct tokenizer_work work;
  struct tokens tokens;
  struct decoder_text out;
  struct arena a;
  struct error e = {0};
  arena_init(&a, NULL);
  tokenizer_work_init(&work, &a, &e);
  tokens_init(&tokens, &a, &e);
  const long long began = now();
  tokenizer_encode(t, &work, text, 1, &ask, &tokens);
  const long long cut = now();
  int32_t *id = arena_alloc(&a, tokens.count, sizeof *id, &e);
  for (size_t i = 0; id && i < tokens.count; i++) id[i] = tokens.token[i].id;
  if (id) tokenizer_decode(t, id, tokens.count, false, &a, &out, &e);
  printf("%zu %zu %lld %lld %s\n", text->length, tokens.count, cut - began, now() - cut, e.detail);
  fflush(stdout);
  arena_free(&a);
}

int main(int count, char **word) {
  struct error e = {0};
  json_t *json = count > 1 ? file_json_long(word[1], &e) : NULL;
  struct tokenizer *t = json ? tokenizer_new(json, &e) : NULL;
  json_decref(json);
  if (!t) {
    fprintf(stderr, "timed: %s\n", count > 1 ? e.detail : "timed TOKENIZER TEXT ...");
    return 2;
  }
  for (int i = 2; i < count; i++) {
    size_t length = 0;
    char *bytes = file_text(word[i], &length, &e);
    if (bytes) take(t, &(struct tokenizer_text){bytes, length});
    free(bytes);
  }
  tokenizer_free(t);
  return e.status ? 2 : 0;
}
