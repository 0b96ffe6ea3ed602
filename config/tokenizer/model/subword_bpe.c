/* subword_bpe: byte pair encoding: a word begins as its characters, or bytes, and neighbours become
 * one, in the order in which the merges were learnt.
 *
 * Most words are a piece each. Which pieces are what a word of their own bytes becomes is found out
 * once, when the subword_model is made: such a word is looked up, and not merged. */
#include <stdlib.h>
#include <string.h>

#include "config/tokenizer/model/byte_level.h"
#include "config/tokenizer/model/subword_parts.h"
#include "core/base/size.h"

enum { FIRST = 1, LAST = 2, PLACES = 4, BYTES = 256, ASCII = 128, WORD = 64 };

/* --- a character in its place --- */

/* A token of a character with what stands before and behind it there. */
static int32_t find_symbol(const struct subword_model *l, const char *text, size_t length,
                           unsigned place) {
  char key[2 * SUBWORD_AFFIX_MAX + 4];
  const size_t before = place & FIRST ? 0 : l->inside.length;
  const size_t behind = place & LAST ? l->last.length : 0;
  memcpy(key, l->inside.bytes, before);
  memcpy(key + before, text, length);
  memcpy(key + before + length, l->last.bytes, behind);
  return vocabulary_find(&l->vocabulary, key, before + length + behind);
}

static void find_symbols(struct subword_model *l) {
  for (unsigned place = 0; place < PLACES; place++)
    for (unsigned byte = 0; byte < BYTES; byte++) {
      const char text = (char)byte;
      const bool is = l->raw || byte < ASCII;
      l->symbol[place][byte] = is ? find_symbol(l, &text, 1, place) : -1;
    }
}

/* --- a word's symbols --- */

/* Symbols in the order in which they come; those of unknown characters wait for their neighbours.
 */
struct subword_parts {
  struct subword_symbol *symbol;
  size_t count;
  uint32_t unknown; /* bytes that wait */
};

static void add_symbol(struct subword_parts *p, int32_t id, size_t length) {
  p->symbol[p->count++] = (struct subword_symbol){id, (uint32_t)length};
}

static void add_waiting(const struct subword_model *l, struct subword_parts *p) {
  if (p->unknown) add_symbol(p, l->unknown, p->unknown);
  p->unknown = 0;
}

/* A character that is no piece: spelled by its bytes, where all of them have a token, or unknown.
 * Without a token for unknown ones it leaves none, as in the library. */
static void add_unknown(const struct subword_model *l, struct subword_parts *p, const char *text,
                        size_t length) {
  bool spelled = l->fallback;
  for (size_t i = 0; i < length && spelled; i++) spelled = l->byte[(unsigned char)text[i]] >= 0;
  for (size_t i = 0; i < length && spelled; i++) add_symbol(p, l->byte[(unsigned char)text[i]], 1);
  if (spelled || l->unknown < 0) return;
  if (!l->fuses) add_waiting(l, p);
  p->unknown += (uint32_t)length;
}

/* Symbols of a word: at most one for each of its bytes. */
static size_t list_symbols(const struct subword_model *l, const char *word, size_t length,
                           struct subword_symbol *symbol, struct subword_work *w) {
  struct subword_parts p = {.symbol = symbol};
  for (size_t i = 0, size; i < length && !subword_ends(w, 1); i += size) {
    const unsigned char byte = (unsigned char)word[i];
    size = l->raw ? 1 : subword_character(word + i);
    const unsigned place = (i == 0 ? FIRST : 0) | (i + size == length ? LAST : 0);
    const int32_t id = size == 1 ? l->symbol[place][byte] : find_symbol(l, word + i, size, place);
    if (id < 0) {
      add_unknown(l, &p, word + i, size);
      continue;
    }
    add_waiting(l, &p);
    add_symbol(&p, id, size);
  }
  add_waiting(l, &p);
  return p.count;
}

static enum status merge_word(const struct subword_model *l, const char *word, size_t length,
                              size_t at, struct subword_work *w) {
  const size_t symbols = (length + 1) / 2 * 2 * sizeof(struct subword_symbol);
  struct subword_symbol *symbol = subword_scratch(w, symbols + subword_merge_scratch(length));
  if (!symbol) return w->out->e->status;
  size_t count = list_symbols(l, word, length, symbol, w);
  if (w->out->e->status) return w->out->e->status;
  count = subword_merge_all(l, symbol, count, (char *)symbol + symbols, w);
  if (w->out->e->status || tokens_reserve(w->out, count)) return w->out->e->status;
  for (size_t i = 0; i < count; i++) {
    subword_append(w, symbol[i].id, at, at + symbol[i].length);
    at += symbol[i].length;
  }
  return STATUS_OK;
}

/* --- whole words --- */

/* The piece that a word is, if it has one; -1. */
static int32_t find_word(const struct subword_model *l, const char *word, size_t length) {
  char key[4 * SUBWORD_AFFIX_MAX + SUBWORD_AFFIX_MAX];
  if (l->last.length == 0 || l->takes_words) return vocabulary_find(&l->vocabulary, word, length);
  if (length > sizeof key - l->last.length) return -1;
  memcpy(key, word, length);
  memcpy(key + length, l->last.bytes, l->last.length);
  return vocabulary_find(&l->vocabulary, key, length + l->last.length);
}

static bool is_whole(const struct subword_model *l, int32_t id) {
  return l->whole[id / WORD] >> (id % WORD) & 1;
}

/* Is the piece what a word of its bytes becomes? */
static bool becomes_itself(const struct subword_model *l, int32_t id, struct subword_symbol *symbol,
                           void *scratch) {
  const struct vocabulary_piece *p = &l->vocabulary.piece[id];
  const char *bytes = l->vocabulary.bytes + p->at;
  if (p->length <= l->last.length || p->apart) return false;
  const size_t length = p->length - l->last.length;
  if (memcmp(bytes + length, l->last.bytes, l->last.length) != 0) return false;
  size_t count = list_symbols(l, bytes, length, symbol, NULL);
  count = subword_merge_all(l, symbol, count, scratch, NULL);
  return count == 1 && symbol[0].id == id &&
         vocabulary_find(&l->vocabulary, bytes, p->length) == id;
}

static enum status find_whole(struct subword_model *l, struct error *e) {
  const struct vocabulary *v = &l->vocabulary;
  size_t longest = 1;
  for (size_t id = 0; id < v->size; id++) longest = size_max(longest, v->piece[id].length);
  l->whole = calloc(v->size / WORD + 1, sizeof *l->whole);
  struct subword_symbol *symbol = malloc(longest * sizeof *symbol);
  void *scratch = malloc(subword_merge_scratch(longest) + 1);
  if (!l->whole || !symbol || !scratch) error_no_memory(e);
  for (size_t id = 0; id < v->size && e->status == STATUS_OK; id++)
    if (l->takes_words ? v->piece[id].length && !v->piece[id].apart
                       : becomes_itself(l, (int32_t)id, symbol, scratch))
      l->whole[id / WORD] |= UINT64_C(1) << (id % WORD);
  free(symbol);
  free(scratch);
  return e->status;
}

static enum status cut(const struct subword_model *l, const char *word, size_t length, size_t at,
                       struct subword_work *w) {
  const int32_t id = find_word(l, word, length);
  if (id < 0 || !is_whole(l, id)) return merge_word(l, word, length, at, w);
  subword_append(w, id, at, at + length);
  return w->out->e->status;
}

/* --- reading --- */

/* Merges that are left out by chance make other tokens each time: for training alone. */
static enum status refuse_dropout(const json_t *json, struct error *e) {
  const json_t *value = json_object_get(json, "dropout");
  if (!value || json_is_null(value) || (json_is_number(value) && json_number_value(value) == 0))
    return STATUS_OK;
  return error_set(e, STATUS_CONFIG, "dropout: is not supported; must be null or 0");
}

static enum status read_affixes(struct subword_model *l, const json_t *json, struct error *e) {
  char room[SUBWORD_AFFIX_MAX];
  struct subword_affix *const affix[] = {&l->inside, &l->last};
  if (subword_read_affix(json, "continuing_subword_prefix", &l->inside, e) ||
      subword_read_affix(json, "end_of_word_suffix", &l->last, e))
    return e->status;
  for (size_t i = 0; i < 2 && l->raw; i++) {
    const size_t length = byte_level_decode(affix[i]->bytes, affix[i]->length, room);
    if (length == SIZE_MAX)
      return error_set(e, STATUS_CONFIG, "%s: is not a byte-level text",
                       i ? "end_of_word_suffix" : "continuing_subword_prefix");
    memcpy(affix[i]->bytes, room, length);
    affix[i]->length = length;
  }
  return STATUS_OK;
}

static enum status read(struct subword_model *l, const json_t *json, struct error *e) {
  if (subword_read_object(l, json, e) || subword_read_unknown(l, json, true, e) ||
      refuse_dropout(json, e) || read_affixes(l, json, e))
    return e->status;
  l->fuses = member_flag_or(json, "fuse_unk", false, e);
  l->fallback = member_flag_or(json, "byte_fallback", false, e);
  l->takes_words = member_flag_or(json, "ignore_merges", false, e);
  if (e->status || subword_read_merges(l, json, e)) return e->status;
  subword_find_bytes(l);
  find_symbols(l);
  return find_whole(l, e);
}

const struct subword_kind subword_bpe = {
    {"BPE", "vocab merges unk_token dropout continuing_subword_prefix end_of_word_suffix fuse_unk "
            "byte_fallback ignore_merges "},
    read,
    cut};
