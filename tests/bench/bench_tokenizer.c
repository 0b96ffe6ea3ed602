/* bench_tokenizer: how fast a tokenizer makes tokens of texts, by itself, in one thread:
 * `bench_tokenizer TOKENIZER TEXT ...`: a folder, or a file of a tokenizer; each line of a TEXT is
 * a text of its own. Time is the clock's, the best of several turns. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/document/file.h"
#include "config/tokenizer/tokenizer_folder.h"
#include "core/base/clock.h"

enum { TURNS = 5 };

static size_t cut_lines(const struct tokenizer *t, const char *text, size_t length) {
  const struct tokenizer_options ask = {.special = true};
  struct tokenizer_work work;
  struct tokens tokens;
  struct arena a;
  struct error e = {0};
  size_t count = 0;
  arena_init(&a, NULL);
  tokenizer_work_init(&work, &a, &e);
  tokens_init(&tokens, &a, &e);
  for (size_t at = 0, end; at < length; at = end + 1) {
    const char *newline = memchr(text + at, '\n', length - at);
    end = newline ? (size_t)(newline - text) : length;
    const struct tokenizer_text line = {text + at, end - at};
    tokens.count = 0;
    if (tokenizer_encode(t, &work, &line, 1, &ask, &tokens)) fprintf(stderr, "%s\n", e.detail);
    count += tokens.count;
  }
  arena_free(&a);
  return count;
}

static void measure(const struct tokenizer *t, const char *path) {
  struct error e = {0};
  size_t length = 0, tokens = 0;
  char *text = file_text(path, &length, &e);
  double best = 1e300;
  must(text != NULL);
  for (int turn = 0; turn < TURNS; turn++) {
    const uint64_t start = clock_now();
    tokens = cut_lines(t, text, length);
    const double took = (double)(clock_now() - start);
    best = took < best ? took : best;
  }
  printf("%s | %.1f MB/s | %zu tokens, %.1f ns each | - | -\n", path, (double)length / best * 1e3,
         tokens, best / (double)tokens);
  free(text);
}

int main(int count, char **word) {
  struct error e = {0};
  if (count < 3) {
    fprintf(stderr, "bench_tokenizer TOKENIZER TEXT ...\n");
    return 0;
  }
  const uint64_t start = clock_now();
  const char *file;
  struct tokenizer *t = tokenizer_folder(word[1], false, &file, &e);
  if (!t) {
    fprintf(stderr, "%s: %s\n", word[1], e.status ? e.detail : "has no tokenizer");
    return 2;
  }
  printf("%s: %s, %zu tokens, %.2f MB, read in %.0f ms | - | - | - | -\n", word[1],
         tokenizer_kind(t), tokenizer_size(t), (double)tokenizer_bytes(t) / 1e6,
         (double)(clock_now() - start) / 1e6);
  for (int i = 2; i < count; i++) measure(t, word[i]);
  tokenizer_free(t);
  return 0;
}
