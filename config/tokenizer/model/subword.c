/* subword: the kind of a model, what several kinds share, and WordLevel, whose words are pieces. */
#include "config/tokenizer/model/subword_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/document/nearest.h"
#include "config/document/text.h"
#include "config/tokenizer/model/byte_level.h"
#include "core/base/size.h"

/* --- reading --- */

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

enum status subword_read_object(struct subword_model *m, const json_t *json, struct error *e) {
  json_t *vocabulary = json_object_get(json, "vocab"), *value;
  const char *text;
  size_t length, longest = 0;
  if (!json_is_object(vocabulary))
    return error_set(e, STATUS_CONFIG, "vocab: needs an object of pieces, each with its id");
  json_object_keylen_foreach(vocabulary, text, length, value) longest = size_max(longest, length);
  char *room = malloc(longest + 1);
  if (!room) return error_no_memory(e);
  json_object_keylen_foreach(vocabulary, text, length, value) {
    /* A piece with a character that stands for no byte is in no raw word, but may be a token. */
    const size_t bytes = m->raw ? byte_level_decode(text, length, room) : SIZE_MAX;
    const int64_t id = json_integer_value(value);
    if (!json_is_integer(value))
      error_set(e, STATUS_CONFIG, "the id is not an integer");
    else if (bytes == SIZE_MAX)
      vocabulary_add(&m->vocabulary, text, length, id, m->raw, e);
    else
      vocabulary_add(&m->vocabulary, room, bytes, id, false, e);
    if (e->status == STATUS_CONFIG) text_before(e, "vocab: \"%.60s\": ", text);
    if (e->status) break;
  }
  free(room);
  return e->status ? e->status : vocabulary_end(&m->vocabulary, e);
}

enum status subword_read_unknown(struct subword_model *m, const json_t *json, bool may_lack,
                                 struct error *e) {
  const json_t *value = json_object_get(json, "unk_token");
  m->unknown = -1;
  if ((!value || json_is_null(value)) && may_lack) return STATUS_OK;
  if (!json_is_string(value))
    return error_set(e, STATUS_CONFIG, "unk_token: needs a piece of the vocabulary");
  m->unknown = vocabulary_find(&m->vocabulary, json_string_value(value), json_string_length(value));
  if (m->unknown >= 0) return STATUS_OK;
  return error_set(e, STATUS_CONFIG, "unk_token: \"%.60s\" is not in the vocabulary",
                   json_string_value(value));
}

void subword_find_bytes(struct subword_model *m) {
  char text[8];
  for (unsigned i = 0; i < 256; i++) {
    const int length = snprintf(text, sizeof text, "<0x%02X>", i);
    m->byte[i] = vocabulary_find(&m->vocabulary, text, (size_t)length);
  }
}

enum status subword_make_trie(struct subword_model *m, struct error *e) {
  const struct vocabulary *v = &m->vocabulary;
  struct trie_string *string = malloc((v->count + 1) * sizeof *string);
  size_t count = 0;
  if (!string) return error_no_memory(e);
  for (size_t id = 0; id < v->size; id++) {
    const struct vocabulary_piece *p = &v->piece[id];
    if (p->length && !p->apart)
      string[count++] = (struct trie_string){v->bytes + p->at, p->length, (int32_t)id};
  }
  trie_init(&m->trie, string, count, e);
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

struct subword_way *subword_ways_begin(struct subword_work *w, size_t length) {
  struct subword_way *way = subword_scratch(w, (length + 1) * (sizeof *way + sizeof(uint32_t)));
  if (!way) return NULL;
  way[0] = (struct subword_way){.from = 0};
  for (size_t i = 1; i <= length; i++) way[i].from = SUBWORD_NOWHERE;
  return way;
}

size_t subword_ways_end(struct subword_way *way, size_t length, uint32_t **end) {
  size_t count = 0;
  *end = (uint32_t *)(way + length + 1);
  for (size_t i = length; i > 0; i = way[i].from) (*end)[count++] = (uint32_t)i;
  return count;
}

bool subword_byte_fallback(const struct subword_model *m, const char *text, size_t length,
                           size_t at, struct subword_work *w) {
  for (size_t i = 0; i < length; i++)
    if (m->byte[(unsigned char)text[i]] < 0) return false;
  for (size_t i = 0; i < length; i++)
    subword_append(w, m->byte[(unsigned char)text[i]], at, at + length);
  return true;
}

enum status subword_refuse(struct subword_work *w, const char *text, size_t length, size_t at) {
  return error_set(w->out->e, STATUS_INVALID_REQUEST,
                   "the tokenizer has no token for \"%.*s\", at byte %zu of the text",
                   (int)size_min(length, 16), text, at);
}

enum status subword_tokenize(const struct subword_model *m, const char *word, size_t length,
                             size_t at, struct subword_work *w) {
  return length ? m->kind->tokenize(m, word, length, at, w) : w->out->e->status;
}

static bool is_unknown(const struct subword_run *r, int32_t place) {
  const struct subword_model *m = r->m;
  return place < 0 || (size_t)place >= m->places->count || m->places->id[place] == m->unknown;
}

void subword_append_place(struct subword_run *r, int32_t place, size_t begin, size_t end) {
  struct tokens *out = r->w->out;
  const bool unknown = is_unknown(r, place);
  const bool extends = unknown && r->was_unknown && out->count > 0;
  r->was_unknown = unknown;
  if (!unknown) {
    subword_append(r->w, r->m->places->id[place], r->at + begin, r->at + end);
    return;
  }
  if (r->m->fallback &&
      subword_byte_fallback(r->m, r->word + begin, end - begin, r->at + begin, r->w))
    return;
  if (extends)
    out->token[out->count - 1].end = (uint32_t)(r->at + end);
  else
    subword_append(r->w, r->m->unknown, r->at + begin, r->at + end);
}

/* --- WordLevel --- */

static enum status read_wordlevel(struct subword_model *m, const json_t *json, struct error *e) {
  if (subword_read_object(m, json, e)) return e->status;
  return subword_read_unknown(m, json, true, e);
}

static enum status tokenize_wordlevel(const struct subword_model *m, const char *word,
                                      size_t length, size_t at, struct subword_work *w) {
  int32_t id = vocabulary_find(&m->vocabulary, word, length);
  if (id < 0) id = m->unknown;
  if (id < 0) return subword_refuse(w, word, length, at);
  subword_append(w, id, at, at + length);
  return w->out->e->status;
}

static const struct subword_kind subword_wordlevel = {{"WordLevel", "vocab unk_token "},
                                                      read_wordlevel,
                                                      tokenize_wordlevel};

/* --- the model --- */

static const struct subword_kind *const kinds[] = {&subword_wordpiece, &subword_bpe,
                                                   &subword_unigram, &subword_wordlevel};

/* The kind by the type, or in old files, which have none, by the members. */
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
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
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
  struct subword_model *m = kind ? calloc(1, sizeof *m) : NULL;
  if (kind && !m) error_no_memory(e);
  if (!m) return NULL;
  m->kind = kind;
  m->raw = raw;
  m->unknown = -1;
  member_known(json, kind->type.members, e);
  if (e->status == STATUS_OK && kind->read(m, json, e) == STATUS_OK) return m;
  subword_free(m);
  return NULL;
}

static void free_places(struct subword_places *p) {
  if (!p) return;
  free(p->id);
  free(p->score);
  free(p->node);
  vocabulary_done(&p->found);
  trie_done(&p->user);
  free(p);
}

static size_t count_places(const struct subword_places *p) {
  if (!p) return 0;
  return sizeof *p + p->count * (sizeof *p->id + (p->score ? sizeof *p->score : 0)) +
         vocabulary_bytes(&p->found) + trie_bytes(&p->user) + p->nodes * sizeof *p->node;
}

void subword_free(struct subword_model *m) {
  if (!m) return;
  vocabulary_done(&m->vocabulary);
  trie_done(&m->trie);
  free_places(m->places);
  free(m->score);
  free(m->merge);
  free(m->whole);
  free(m);
}

size_t subword_bytes(const struct subword_model *m) {
  const size_t ids = m->vocabulary.size;
  return sizeof *m + vocabulary_bytes(&m->vocabulary) + trie_bytes(&m->trie) +
         (m->score ? ids * sizeof *m->score : 0) + m->merges * sizeof *m->merge +
         (m->whole ? ids / 8 : 0) + count_places(m->places);
}

int32_t subword_unknown(const struct subword_model *m) { return m->unknown; }
bool subword_has_inside(const struct subword_model *m) { return m->inside.length > 0; }

const char *subword_kind(const struct subword_model *m) { return m->kind->type.name; }

/* Longer pieces cannot be added tokens. */
int32_t subword_find(const struct subword_model *m, const char *text, size_t length) {
  enum { LONGEST = 1024 };
  char bytes[LONGEST];
  if (!m->raw) return vocabulary_find(&m->vocabulary, text, length);
  if (length > sizeof bytes) return -1;
  const size_t count = byte_level_decode(text, length, bytes);
  return count == SIZE_MAX ? -1 : vocabulary_find(&m->vocabulary, bytes, count);
}

const struct vocabulary *subword_vocabulary(const struct subword_model *m) {
  return &m->vocabulary;
}
