/* fuzz_tokenizer: a tokenizer.json, and a text that its tokenizer cuts.
 *
 * The first byte: the number of a tokenizer of our own, or 0xff: the document comes first, and
 * behind FUZZ_PART the text. The second byte: bit 0: what stands around texts is put there, bit 1:
 * places are wanted, bit 2: a pair, cut at the next FUZZ_PART; the rest: tokens that it is cut to.
 * A text that is not UTF-8 is read as Latin-1. What comes out agrees with itself: ids that there
 * are, places within the texts, in whole characters, in order; the same without places; and texts
 * of tokens are UTF-8. */
#include <stdlib.h>
#include <string.h>

#include "config/document/json_reserve.h"
#include "config/document/text.h"
#include "config/tokenizer/pattern/unicode.h"
#include "config/tokenizer/tokenizer.h"
#include "tests/fuzz/fuzz.h"

#define WORDS                                                                                     \
  "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"vocab\":{\"[UNK]\":0,\"[CLS]\":1," \
  "\"[SEP]\":2,\"a\":3,\"##b\":4,\"ab\":5,\"##\\u0301\":6,\"\\u00e9\":7,\".\":8}}"
#define LETTERS                                                                                 \
  "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"\\u0120\":2,\"\\u00c3\":3,"         \
  "\"\\u00a9\":4,"                                                                              \
  "\"ab\":5,\"\\u0120a\":6,\"\\u0120ab\":7,\"aa\":8,\"aaaa\":9},\"merges\":[\"a b\",\"\\u0120 " \
  "a\","                                                                                        \
  "\"\\u0120a b\",\"a a\",\"aa aa\"]}"
#define PIECES                                                                                     \
  "\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"\\u2581\",-2],[\"a\"," \
  "-3],"                                                                                           \
  "[\"\\u2581a\",-2.5],[\"b\",-3],[\"ab\",-4],[\"\\u00e9\",-5]]}"
#define SPELT                                                                                     \
  "\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"fuse_unk\":true,\"unk_token\":\"<unk>\"," \
  "\"vocab\":{\"<unk>\":0,\"\\u2581\":1,\"a\":2,\"\\u2581a\":3,\"<0xC3>\":4,\"<0xA9>\":5},"       \
  "\"merges\":[[\"\\u2581\",\"a\"]]}"

static const char *const documents[] = {
    "{\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":"
    "true,"
    "\"strip_accents\":null,\"lowercase\":true},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
    "\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"[SEP]\",2],\"cls\":[\"[CLS]\",1]},"
    "\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}," WORDS
    ",\"added_tokens\":[{\"id\":1,\"content\":\"[CLS]\",\"special\":true},{\"id\":9,\"content\":"
    "\"new\","
    "\"lstrip\":true,\"rstrip\":true,\"single_word\":true}]}",
    "{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true},"
    "\"post_processor\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true},"
    "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true}," LETTERS
    ",\"added_tokens\":[{\"id\":10,\"content\":\"<|a|>\",\"special\":true}]}",
    "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFKC\"},{\"type\":"
    "\"Replace\","
    "\"pattern\":{\"Regex\":\" {2,}\"},\"content\":\" "
    "\"}]},\"pre_tokenizer\":{\"type\":\"Metaspace\","
    "\"replacement\":\"\\u2581\",\"prepend_scheme\":\"first\",\"split\":true},\"decoder\":{"
    "\"type\":"
    "\"Metaspace\",\"replacement\":\"\\u2581\",\"prepend_scheme\":\"first\"}," PIECES "}",
    "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":"
    "\"\\u2581\"},"
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\" "
    "\"},\"content\":\"\\u2581\"}]},\"decoder\":{\"type\":"
    "\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"\\u2581\"},"
    "\"content\":\" \"},"
    "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" "
    "\",\"start\":1,"
    "\"stop\":0}]}," SPELT "}",
    "{\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":"
    "[{\"type\":"
    "\"Split\",\"pattern\":{\"Regex\":\"(?i:'s|'t)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}"
    "{1,3}|"
    "\\\\s+(?!\\\\S)|\\\\s+\"},\"behavior\":\"Isolated\",\"invert\":false},{\"type\":\"ByteLevel\","
    "\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":false}]},\"decoder\":{\"type\":"
    "\"ByteLevel\",\"add_"
    "prefix_space\":false,\"trim_offsets\":true}"
    "," LETTERS "}",
    "{\"normalizer\":{\"type\":\"Lowercase\"},\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_"
    "prefix_"
    "space\":true,"
    "\"trim_offsets\":true},\"post_processor\":{\"type\":\"RobertaProcessing\",\"sep\":[\"b\",1],"
    "\"cls\":[\"a\",0],\"trim_offsets\":true,\"add_prefix_space\":true},\"decoder\":{\"type\":"
    "\"ByteLevel\","
    "\"add_prefix_space\":true,\"trim_offsets\":true}," LETTERS
    ",\"added_tokens\":[{\"id\":10,\"content\":\"<m>\",\"special\":true,\"lstrip\":true,\"rstrip\":"
    "true},"
    "{\"id\":11,\"content\":\"A B\",\"normalized\":true,\"lstrip\":true}]}"};
enum { DOCUMENTS = sizeof documents / sizeof *documents, OWN = 0xff };

static struct tokenizer *make(const char *text, size_t length) {
  json_error_t fault;
  bool no_memory;
  struct error e = {0};
  json_t *json = json_reserve_load(text, length, &fault, &no_memory);
  struct tokenizer *t = json ? tokenizer_new(json, &e) : NULL;
  must(!json || !t == (e.status == STATUS_CONFIG));
  must(t || !json || e.detail[0]);
  json_decref(json);
  return t;
}

/* --- texts --- */

/* In memory of its own size; the caller frees it. */
static struct tokenizer_text text_of(struct input in) {
  char *bytes = malloc(2 * in.size + 1);
  size_t length = 0;
  must(bytes);
  for (size_t i = 0; i < in.size; i++) {
    if (text_is_utf8(in.bytes, in.size))
      bytes[length++] = in.bytes[i];
    else
      length += unicode_write((unsigned char)in.bytes[i], bytes + length);
  }
  char *own = malloc(length + !length);
  must(own);
  memcpy(own, bytes, length);
  free(bytes);
  return (struct tokenizer_text){own, length};
}

static bool is_edge(const struct tokenizer_text *t, size_t at) {
  return at == t->length || ((unsigned char)t->bytes[at] & 0xc0) != 0x80;
}

/* --- what comes out --- */

struct cutting {
  const struct tokenizer *t;
  struct tokenizer_text text[2];
  size_t texts;
  struct arena arena;
  struct error error;
};

static void cut(struct cutting *c, const struct tokenizer_options *ask, struct tokens *out) {
  struct tokenizer_work work;
  tokenizer_work_init(&work, &c->arena, &c->error);
  tokens_init(out, &c->arena, &c->error);
  tokenizer_encode(c->t, &work, c->text, c->texts, ask, out);
}

static void check_tokens(const struct cutting *c, const struct tokens *tokens, bool traced) {
  for (size_t i = 0; i < tokens->count; i++) {
    const struct token *t = &tokens->token[i];
    must(t->id >= 0 && (size_t)t->id < tokenizer_size(c->t) && t->text < c->texts);
    if (!traced) continue;
    must(t->begin <= t->end && t->end <= c->text[t->text].length);
    must(is_edge(&c->text[t->text], t->begin) && is_edge(&c->text[t->text], t->end));
  }
}

static void check_text(struct cutting *c, const struct tokens *tokens) {
  int32_t *id = arena_alloc(&c->arena, tokens->count, sizeof *id, &c->error);
  struct decoder_text bare, whole;
  for (size_t i = 0; i < tokens->count; i++) id[i] = tokens->token[i].id;
  must(!tokenizer_decode(c->t, id, tokens->count, true, &c->arena, &bare, &c->error));
  must(!tokenizer_decode(c->t, id, tokens->count, false, &c->arena, &whole, &c->error));
  must(text_is_utf8(bare.bytes, bare.length) && text_is_utf8(whole.bytes, whole.length));
}

static void check(struct cutting *c, unsigned how) {
  struct tokenizer_options ask = {.special = how & 1, .traced = how & 2, .longest = how >> 3};
  struct tokens tokens, again;
  cut(c, &ask, &tokens);
  if (c->error.status) {
    must(c->error.status == STATUS_INVALID_REQUEST && c->error.detail[0]);
    return;
  }
  check_tokens(c, &tokens, ask.traced);
  must(!ask.longest || tokens.count <= ask.longest + tokenizer_special_count(c->t, c->texts == 2));
  ask.traced = !ask.traced;
  cut(c, &ask, &again);
  must(!c->error.status && again.count == tokens.count);
  for (size_t i = 0; i < tokens.count; i++) must(again.token[i].id == tokens.token[i].id);
  check_text(c, &tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct tokenizer *known[DOCUMENTS];
  struct input in = {(const char *)data, size};
  const unsigned which = input_byte(&in), how = input_byte(&in);
  struct tokenizer *own = NULL;
  if (which == OWN) {
    const struct input document = input_part(&in);
    own = make(document.bytes, document.size);
    if (!own) return 0;
  }
  struct tokenizer **t = own ? &own : &known[which % DOCUMENTS];
  if (!*t) *t = make(documents[which % DOCUMENTS], strlen(documents[which % DOCUMENTS]));
  must(*t);
  struct cutting c = {.t = *t, .texts = how & 4 ? 2 : 1};
  const struct input first = c.texts == 2 ? input_part(&in) : in;
  c.text[0] = text_of(first);
  c.text[1] = text_of(in);
  arena_init(&c.arena, NULL);
  check(&c, how);
  arena_free(&c.arena);
  for (int i = 0; i < 2; i++) free((char *)c.text[i].bytes);
  tokenizer_free(own);
  return 0;
}
