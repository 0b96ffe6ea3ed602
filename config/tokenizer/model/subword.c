/* subword: which kind a subword_model is of, and what all kinds read and do alike. */
#include "config/tokenizer/model/subword_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/document/nearest.h"
#include "config/tokenizer/model/byte_level.h"
#include "core/base/size.h"

/* --- what is read --- */

enum status subword_read_affix(const json_t *json, const char *key, struct subword_affix *out,
                               struct error *e) {
  const json_t *value = json_object_get(json, key);
  *out = (struct subword_affix){.length = 0};
  if (!value || json_is_null(value)) return STATUS_OK;
  if (!json_is_string(value) || json_string_length(value) > SUBWORD_AFFIX_MAX)
    return error_set(e, STATUS_CONFIG, "%s: needs a text of at most %d bytes", key,
                     SUBWORD_AFFIX_MAX);
  out->length = json_string_length(value);
  memcpy(out->bytes, json_string_value(value), out->length);
  return STATUS_OK;
}

/* A piece that bytes cannot spell is no part of any word, but may be a token beside them. */
static enum status add_piece(struct subword_model *l, const char *text, size_t length, int64_t id,
                             char *room, struct error *e) {
  const size_t bytes = l->raw ? byte_level_decode(text, length, room) : SIZE_MAX;
  if (bytes == SIZE_MAX) return vocabulary_add(&l->vocabulary, text, length, id, l->raw, e);
  return vocabulary_add(&l->vocabulary, room, bytes, id, false, e);
}

static enum status refuse_piece(const char *text, struct error *e) {
  char detail[ERROR_DETAIL_SIZE];
  memcpy(detail, e->detail, sizeof detail);
  e->status = STATUS_OK;
  return error_set(e, STATUS_CONFIG, "vocab: \"%.60s\": %s", text, detail);
}

enum status subword_read_object(struct subword_model *l, const json_t *json, struct error *e) {
  json_t *vocabulary = json_object_get(json, "vocab"), *value;
  const char *text;
  size_t length, longest = 0;
  if (!json_is_object(vocabulary))
    return error_set(e, STATUS_CONFIG, "vocab: needs an object of pieces, each with its id");
  json_object_keylen_foreach(vocabulary, text, length, value) longest = size_max(longest, length);
  char *room = malloc(longest + 1);
  if (!room) return error_no_memory(e);
  json_object_keylen_foreach(vocabulary, text, length, value) {
    if (!json_is_integer(value))
      error_set(e, STATUS_CONFIG, "the id is not an integer");
    else
      add_piece(l, text, length, json_integer_value(value), room, e);
    if (e->status == STATUS_CONFIG) refuse_piece(text, e);
    if (e->status) break;
  }
  free(room);
  return e->status ? e->status : vocabulary_end(&l->vocabulary, e);
}

enum status subword_read_unknown(struct subword_model *l, const json_t *json, bool may_lack,
                                 struct error *e) {
  const json_t *value = json_object_get(json, "unk_token");
  l->unknown = -1;
  if ((!value || json_is_null(value)) && may_lack) return STATUS_OK;
  if (!json_is_string(value))
    return error_set(e, STATUS_CONFIG, "unk_token: needs a piece of the vocabulary");
  l->unknown = vocabulary_find(&l->vocabulary, json_string_value(value), json_string_length(value));
  if (l->unknown >= 0) return STATUS_OK;
  return error_set(e, STATUS_CONFIG, "unk_token: \"%.60s\" is not in the vocabulary",
                   json_string_value(value));
}

void subword_find_bytes(struct subword_model *l) {
  char text[8];
  for (unsigned i = 0; i < 256; i++) {
    const int length = snprintf(text, sizeof text, "<0x%02X>", i);
    l->byte[i] = vocabulary_find(&l->vocabulary, text, (size_t)length);
  }
}

enum status subword_make_trie(struct subword_model *l, struct error *e) {
  const struct vocabulary *v = &l->vocabulary;
  struct trie_string *string = malloc((v->count + 1) * sizeof *string);
  size_t count = 0;
  if (!string) return error_no_memory(e);
  for (size_t id = 0; id < v->size; id++) {
    const struct vocabulary_piece *p = &v->piece[id];
    if (p->length && !p->apart)
      string[count++] = (struct trie_string){v->bytes + p->at, p->length, (int32_t)id};
  }
  trie_init(&l->trie, string, count, e);
  free(string);
  return e->status;
}

/* --- words --- */

void *subword_scratch(struct subword_work *w, size_t bytes) {
  if (bytes <= w->room) return w->scratch;
  size_t room = size_max(bytes, 2 * w->room);
  void *moved = arena_grow(w->out->arena, w->scratch, &room, 1, w->out->e);
  if (!moved) return NULL;
  w->scratch = moved;
  w->room = room;
  return moved;
}

bool subword_byte_fallback(const struct subword_model *l, const char *text, size_t length,
                           size_t at, struct subword_work *w) {
  for (size_t i = 0; i < length; i++)
    if (l->byte[(unsigned char)text[i]] < 0) return false;
  for (size_t i = 0; i < length; i++)
    subword_append(w, l->byte[(unsigned char)text[i]], at, at + length);
  return true;
}

enum status subword_refuse(struct subword_work *w, const char *text, size_t length, size_t at) {
  return error_set(w->out->e, STATUS_INVALID_REQUEST,
                   "the tokenizer has no token for \"%.*s\", at byte %zu of the text",
                   (int)size_min(length, 16), text, at);
}

enum status subword_tokenize(const struct subword_model *l, const char *word, size_t length,
                             size_t at, struct subword_work *w) {
  return length ? l->kind->cut(l, word, length, at, w) : w->out->e->status;
}

/* --- the whole --- */

static const struct subword_kind *const kinds[] = {&subword_wordpiece, &subword_bpe,
                                                   &subword_unigram, &subword_wordlevel};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* The kind that a model says it is of, or that its members are those of: old files say none. */
static const struct subword_kind *find_kind(const json_t *json, struct error *e) {
  const char *name = json_string_value(json_object_get(json, "type"));
  char hint[NEAREST_HINT];
  struct nearest near;
  if (!name && json_object_get(json, "merges")) return &subword_bpe;
  if (!name && json_is_array(json_object_get(json, "vocab"))) return &subword_unigram;
  if (!name && json_object_get(json, "continuing_subword_prefix")) return &subword_wordpiece;
  if (!name && json_object_get(json, "vocab")) return &subword_wordlevel;
  if (!name) name = "";
  nearest_init(&near, name);
  for (size_t i = 0; i < KINDS; i++) {
    if (strcmp(kinds[i]->type.name, name) == 0) return kinds[i];
    nearest_offer(&near, kinds[i]->type.name);
  }
  error_set(e, STATUS_CONFIG,
            "type: \"%.40s\" is not supported; supported: WordPiece, BPE, Unigram, WordLevel%s",
            name, nearest_hint(&near, hint));
  return NULL;
}

struct subword_model *subword_new(const json_t *json, bool raw, struct error *e) {
  const struct subword_kind *kind = find_kind(json, e);
  struct subword_model *l = kind ? calloc(1, sizeof *l) : NULL;
  if (kind && !l) error_no_memory(e);
  if (!l) return NULL;
  l->kind = kind;
  l->raw = raw;
  l->unknown = -1;
  member_known(json, kind->type.members, e);
  if (e->status == STATUS_OK && kind->read(l, json, e) == STATUS_OK) return l;
  subword_free(l);
  return NULL;
}

void subword_free(struct subword_model *l) {
  if (!l) return;
  vocabulary_done(&l->vocabulary);
  trie_done(&l->trie);
  free(l->score);
  free(l->merge);
  free(l->whole);
  free(l);
}

size_t subword_bytes(const struct subword_model *l) {
  const size_t ids = l->vocabulary.size;
  return sizeof *l + vocabulary_bytes(&l->vocabulary) + trie_bytes(&l->trie) +
         (l->score ? ids * sizeof *l->score : 0) + l->merges * sizeof *l->merge +
         (l->whole ? ids / 8 : 0);
}

const char *subword_kind(const struct subword_model *l) { return l->kind->type.name; }

/* A piece of a word that is longer is none of an added token. */
int32_t subword_find(const struct subword_model *l, const char *text, size_t length) {
  enum { LONGEST = 1024 };
  char bytes[LONGEST];
  if (!l->raw) return vocabulary_find(&l->vocabulary, text, length);
  if (length > sizeof bytes) return -1;
  const size_t count = byte_level_decode(text, length, bytes);
  return count == SIZE_MAX ? -1 : vocabulary_find(&l->vocabulary, bytes, count);
}

const struct vocabulary *subword_vocabulary(const struct subword_model *l) {
  return &l->vocabulary;
}
