/* subword_bpe: byte pair encoding: a word begins as its characters, or bytes, and neighbors are
 * merged in the order in which the merges were learned.
 *
 * Most words are one piece. Which pieces are the result of merging their own bytes is computed when
 * the model is made: a word that is such a piece is looked up and not merged. */
#include <stdlib.h>
#include <string.h>

#include "config/tokenizer/model/byte_level.h"
#include "config/tokenizer/model/subword_parts.h"
#include "core/base/size.h"

enum { FIRST = 1, LAST = 2, PLACES = 4, BYTES = 256, ASCII = 128, WORD = 64 };

/* --- symbols of a word --- */

/* The token of a character with the affixes of its place; -1: none. */
static int32_t find_symbol(const struct subword_model *m, const char *text, size_t length,
                           unsigned place) {
  char key[2 * SUBWORD_AFFIX_MAX + 4];
  const size_t before = place & FIRST ? 0 : m->inside.length;
  const size_t after = place & LAST ? m->last.length : 0;
  memcpy(key, m->inside.bytes, before);
  memcpy(key + before, text, length);
  memcpy(key + before + length, m->last.bytes, after);
  return vocabulary_find(&m->vocabulary, key, before + length + after);
}

static void add_symbol(struct subword_symbol *symbol, size_t *count, int32_t id, size_t length) {
  symbol[(*count)++] = (struct subword_symbol){id, (uint32_t)length};
}

/* Lists the symbols of a word: at most one for each of its bytes; returns how many. A character
 * without a token becomes the tokens of its bytes, if all have one, or unknown; unknown neighbors
 * may be one token. Without an unknown token it is dropped, as in the library. */
static size_t list_symbols(const struct subword_model *m, const char *word, size_t length,
                           struct subword_symbol *symbol, struct subword_work *w) {
  size_t count = 0, unknown = 0; /* bytes that have no symbol yet */
  for (size_t i = 0, size; i < length && !subword_is_over(w, 1); i += size) {
    const unsigned char *byte = (const unsigned char *)word + i;
    size = m->raw ? 1 : subword_character(word + i);
    const unsigned place = (i == 0 ? FIRST : 0) | (i + size == length ? LAST : 0);
    const int32_t id = size == 1 ? m->symbol[place][*byte] : find_symbol(m, word + i, size, place);
    if (id >= 0) {
      if (unknown) add_symbol(symbol, &count, m->unknown, unknown);
      unknown = 0;
      add_symbol(symbol, &count, id, size);
      continue;
    }
    bool written = m->fallback;
    for (size_t j = 0; j < size && written; j++) written = m->byte[byte[j]] >= 0;
    for (size_t j = 0; j < size && written; j++) add_symbol(symbol, &count, m->byte[byte[j]], 1);
    if (written || m->unknown < 0) continue;
    if (!m->fuses && unknown) add_symbol(symbol, &count, m->unknown, unknown);
    unknown = (m->fuses ? unknown : 0) + size;
  }
  if (unknown) add_symbol(symbol, &count, m->unknown, unknown);
  return count;
}

/* --- words --- */

static enum status merge_word(const struct subword_model *m, const char *word, size_t length,
                              size_t at, struct subword_work *w) {
  const size_t symbols = (length + 1) / 2 * 2 * sizeof(struct subword_symbol);
  struct subword_symbol *symbol = subword_scratch(w, symbols + subword_merge_scratch(length));
  if (!symbol) return w->out->e->status;
  size_t count = list_symbols(m, word, length, symbol, w);
  if (w->out->e->status) return w->out->e->status;
  count = subword_merge_all(m, symbol, count, (char *)symbol + symbols, w);
  if (w->out->e->status || tokens_reserve(w->out, count)) return w->out->e->status;
  for (size_t i = 0; i < count; i++) {
    subword_append(w, symbol[i].id, at, at + symbol[i].length);
    at += symbol[i].length;
  }
  return STATUS_OK;
}

/* The piece that a word is; -1: none. */
static int32_t find_word(const struct subword_model *m, const char *word, size_t length) {
  char key[4 * SUBWORD_AFFIX_MAX + SUBWORD_AFFIX_MAX];
  if (m->last.length == 0 || m->takes_words) return vocabulary_find(&m->vocabulary, word, length);
  if (length > sizeof key - m->last.length) return -1;
  memcpy(key, word, length);
  memcpy(key + length, m->last.bytes, m->last.length);
  return vocabulary_find(&m->vocabulary, key, length + m->last.length);
}

static enum status tokenize(const struct subword_model *m, const char *word, size_t length,
                            size_t at, struct subword_work *w) {
  const int32_t id = find_word(m, word, length);
  const bool whole = id >= 0 && (m->whole[id / WORD] >> (id % WORD) & 1);
  if (!whole) return merge_word(m, word, length, at, w);
  subword_append(w, id, at, at + length);
  return w->out->e->status;
}

/* --- reading --- */

/* Whether a piece is the result of merging the word of its bytes. */
static bool becomes_itself(const struct subword_model *m, int32_t id, struct subword_symbol *symbol,
                           void *scratch) {
  const struct vocabulary_piece *p = &m->vocabulary.piece[id];
  const char *bytes = m->vocabulary.bytes + p->at;
  if (p->length <= m->last.length || p->apart) return false;
  const size_t length = p->length - m->last.length;
  if (memcmp(bytes + length, m->last.bytes, m->last.length) != 0) return false;
  size_t count = list_symbols(m, bytes, length, symbol, NULL);
  count = subword_merge_all(m, symbol, count, scratch, NULL);
  return count == 1 && symbol[0].id == id &&
         vocabulary_find(&m->vocabulary, bytes, p->length) == id;
}

/* Fills m->whole. */
static enum status find_whole(struct subword_model *m, struct error *e) {
  const struct vocabulary *v = &m->vocabulary;
  size_t longest = 1;
  for (size_t id = 0; id < v->size; id++) longest = size_max(longest, v->piece[id].length);
  m->whole = calloc(v->size / WORD + 1, sizeof *m->whole);
  struct subword_symbol *symbol = malloc(longest * sizeof *symbol);
  void *scratch = malloc(subword_merge_scratch(longest) + 1);
  if (!m->whole || !symbol || !scratch) error_no_memory(e);
  for (size_t id = 0; id < v->size && e->status == STATUS_OK; id++)
    if (m->takes_words ? v->piece[id].length && !v->piece[id].apart
                       : becomes_itself(m, (int32_t)id, symbol, scratch))
      m->whole[id / WORD] |= UINT64_C(1) << (id % WORD);
  free(symbol);
  free(scratch);
  return e->status;
}

/* Affixes of raw words are bytes, as the pieces are. */
static enum status read_affixes(struct subword_model *m, const json_t *json, struct error *e) {
  static const char *const keys[] = {"continuing_subword_prefix", "end_of_word_suffix"};
  struct subword_affix *const affix[] = {&m->inside, &m->last};
  char room[SUBWORD_AFFIX_MAX];
  for (size_t i = 0; i < 2; i++)
    if (subword_read_affix(json, keys[i], affix[i], e)) return e->status;
  for (size_t i = 0; i < 2 && m->raw; i++) {
    const size_t length = byte_level_decode(affix[i]->bytes, affix[i]->length, room);
    if (length == SIZE_MAX)
      return error_set(e, STATUS_CONFIG, "%s: is not a byte-level text", keys[i]);
    memcpy(affix[i]->bytes, room, length);
    affix[i]->length = length;
  }
  return STATUS_OK;
}

static enum status read(struct subword_model *m, const json_t *json, struct error *e) {
  if (subword_read_object(m, json, e) || subword_read_unknown(m, json, true, e)) return e->status;
  /* A dropout skips merges at random: for training only. */
  const json_t *dropout = json_object_get(json, "dropout");
  if (dropout && !json_is_null(dropout) &&
      !(json_is_number(dropout) && json_number_value(dropout) == 0))
    return error_set(e, STATUS_CONFIG, "dropout: is not supported; must be null or 0");
  if (read_affixes(m, json, e)) return e->status;
  m->fuses = member_flag_or(json, "fuse_unk", false, e);
  m->fallback = member_flag_or(json, "byte_fallback", false, e);
  m->takes_words = member_flag_or(json, "ignore_merges", false, e);
  if (e->status || subword_read_merges(m, json, e)) return e->status;
  subword_find_bytes(m);
  for (unsigned place = 0; place < PLACES; place++)
    for (unsigned byte = 0; byte < BYTES; byte++) {
      const char text = (char)byte;
      const bool is = m->raw || byte < ASCII;
      m->symbol[place][byte] = is ? find_symbol(m, &text, 1, place) : -1;
    }
  return find_whole(m, e);
}

const struct subword_kind subword_bpe = {
    {"BPE", "vocab merges unk_token dropout continuing_subword_prefix end_of_word_suffix fuse_unk "
            "byte_fallback ignore_merges "},
    read,
    tokenize};
