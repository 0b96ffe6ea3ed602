/* fuzz_sentencepiece: a sentencepiece model, and a text that its tokenizer cuts.
 *
 * The first byte: the number of a model of tests/golden/tokenizers, or 0xff: behind the text and
 * FUZZ_PART comes a model. The second byte: the family. A text that is not UTF-8 is read as
 * Latin-1. Ids are those that there are, places within the text, the same tokens without places,
 * and decoded texts UTF-8. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/document/text.h"
#include "config/tokenizer/pattern/unicode.h"
#include "config/tokenizer/tokenizer_folder.h"
#include "config/tokenizer/tokenizer_sentence.h"
#include "tests/fuzz/fuzz.h"

enum { OWN = 0xff };
static const char *const folders[] = {"spm-bpe", "spm-bpe-bytes", "spm-bpe-suffix",
                                      "spm-unigram-raw"};
enum { FOLDERS = sizeof folders / sizeof *folders };
static const char *const classes[] = {NULL,
                                      "XLMRobertaTokenizer",
                                      "CamembertTokenizer",
                                      "T5Tokenizer",
                                      "AlbertTokenizerFast",
                                      "DebertaV2Tokenizer",
                                      "LlamaTokenizer",
                                      "GemmaTokenizer"};
enum { CLASSES = sizeof classes / sizeof *classes };

static struct tokenizer *make(struct input in, unsigned class) {
  struct error e = {0};
  struct sentencepiece model;
  json_t *config = classes[class % CLASSES]
                       ? json_pack("{s:s}", "tokenizer_class", classes[class % CLASSES])
                       : NULL;
  const struct tokenizer_beside beside = {.tokenizer = config};
  struct tokenizer *t = NULL;
  /* In memory of its own size. */
  char *bytes = malloc(in.size + !in.size);
  must(bytes);
  memcpy(bytes, in.bytes, in.size);
  if (sentencepiece_read(&model, bytes, in.size, &e) == STATUS_OK)
    t = tokenizer_of_family(&model, &beside, &e);
  must(t ? !e.status : e.status == STATUS_CONFIG && e.detail[0]);
  sentencepiece_done(&model);
  json_decref(config);
  free(bytes);
  return t;
}

static struct tokenizer *find(unsigned which) {
  static struct tokenizer *known[FOLDERS];
  struct tokenizer **t = &known[which % FOLDERS];
  char path[128];
  const char *file;
  struct error e = {0};
  snprintf(path, sizeof path, "tests/golden/tokenizers/%s", folders[which % FOLDERS]);
  if (!*t) *t = tokenizer_folder(path, false, &file, &e);
  must(*t);
  return *t;
}

/* In memory of its own size; the caller frees it. */
static struct tokenizer_text text_of(struct input in) {
  const bool good = text_is_utf8(in.bytes, in.size);
  char *bytes = malloc(2 * in.size + 1);
  size_t length = 0;
  must(bytes);
  for (size_t i = 0; i < in.size && !good; i++)
    length += unicode_write((unsigned char)in.bytes[i], bytes + length);
  if (good) memcpy(bytes, in.bytes, length = in.size);
  char *own = realloc(bytes, length + !length);
  must(own);
  return (struct tokenizer_text){own, length};
}

struct cutting {
  const struct tokenizer *t;
  struct tokenizer_text text;
  struct arena arena;
  struct error e;
};

static void cut(struct cutting *c, bool traced, struct tokens *out) {
  const struct tokenizer_options ask = {.special = true, .traced = traced};
  struct tokenizer_work work;
  tokenizer_work_init(&work, &c->arena, &c->e);
  tokens_init(out, &c->arena, &c->e);
  tokenizer_encode(c->t, &work, &c->text, 1, &ask, out);
}

static void check(struct cutting *c) {
  struct tokens tokens, traced;
  struct decoder_text text;
  cut(c, false, &tokens);
  cut(c, true, &traced);
  if (c->e.status) return;
  must(tokens.count == traced.count);
  int32_t *id = arena_alloc(&c->arena, tokens.count + 1, sizeof *id, &c->e);
  must(id);
  for (size_t i = 0; i < tokens.count; i++) {
    const struct token *t = &traced.token[i];
    id[i] = tokens.token[i].id;
    must(id[i] == t->id && id[i] >= 0 && (size_t)id[i] < tokenizer_size(c->t));
    must(t->begin <= t->end && t->end <= c->text.length);
  }
  for (int bare = 0; bare < 2; bare++) {
    must(!tokenizer_decode(c->t, id, tokens.count, bare, &c->arena, &text, &c->e));
    must(text_is_utf8(text.bytes, text.length));
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input in = {(const char *)data, size};
  const unsigned which = input_byte(&in), how = input_byte(&in);
  const struct input text = which == OWN ? input_part(&in) : in;
  struct tokenizer *own = which == OWN ? make(in, how) : NULL;
  if (which == OWN && !own) return 0;
  struct cutting c = {.t = own ? own : find(which), .text = text_of(text)};
  arena_init(&c.arena, NULL);
  check(&c);
  arena_free(&c.arena);
  free((char *)c.text.bytes);
  tokenizer_free(own);
  return 0;
}
