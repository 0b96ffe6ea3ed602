/* subword_unigram: of all ways to cut a word into pieces the one with the greatest sum of scores.
 */
#include "config/tokenizer/model/subword_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { UNKNOWN_PENALTY = 10 }; /* below the least score of a piece */

/* --- reading --- */

static enum status read_piece(struct subword_model *l, const json_t *one, size_t id,
                              struct error *e) {
  const json_t *text = json_array_get(one, 0), *score = json_array_get(one, 1);
  if (json_array_size(one) != 2 || !json_is_string(text) || !json_is_number(score))
    return error_set(e, STATUS_CONFIG, "vocab: %zu: needs a piece and its score", id);
  l->score[id] = json_number_value(score);
  l->unknown_score = fmin(l->unknown_score, l->score[id]);
  return vocabulary_add(&l->vocabulary, json_string_value(text), json_string_length(text),
                        (int64_t)id, false, e);
}

static enum status read_pieces(struct subword_model *l, const json_t *json, struct error *e) {
  const json_t *vocabulary = json_object_get(json, "vocab"), *one;
  const size_t count = json_array_size(vocabulary);
  size_t id;
  if (count == 0) return error_set(e, STATUS_CONFIG, "vocab: needs a list of pieces with scores");
  l->score = calloc(count, sizeof *l->score);
  if (!l->score) return error_no_memory(e);
  l->unknown_score = INFINITY;
  json_array_foreach((json_t *)vocabulary, id, one) {
    if (read_piece(l, one, id, e)) return e->status;
  }
  l->unknown_score -= UNKNOWN_PENALTY;
  return vocabulary_end(&l->vocabulary, e);
}

static enum status read_unknown(struct subword_model *l, const json_t *json, struct error *e) {
  const json_t *value = json_object_get(json, "unk_id");
  if (!value || json_is_null(value)) return STATUS_OK;
  l->unknown = json_is_integer(value) && json_integer_value(value) >= 0 &&
                       (size_t)json_integer_value(value) < l->vocabulary.size
                   ? (int32_t)json_integer_value(value)
                   : -1;
  if (l->unknown >= 0) return STATUS_OK;
  return error_set(e, STATUS_CONFIG, "unk_id: needs an id of the vocabulary");
}

static enum status read(struct subword_model *l, const json_t *json, struct error *e) {
  if (read_pieces(l, json, e) || read_unknown(l, json, e)) return e->status;
  l->fallback = member_flag_or(json, "byte_fallback", false, e);
  if (e->status) return e->status;
  subword_find_bytes(l);
  return subword_make_trie(l, e);
}

/* --- the best way --- */

/* The best way to a place in the word: its last piece. */
struct subword_way {
  double sum;
  uint32_t from; /* where that begins; NOWHERE: there is no way yet */
  int32_t id;
};
#define NOWHERE UINT32_MAX

static void offer(struct subword_way *to, double sum, size_t from, int32_t id) {
  if (to->from != NOWHERE && sum <= to->sum) return;
  *to = (struct subword_way){sum, (uint32_t)from, id};
}

/* Every piece that begins here, the shorter first; and a character that is none is unknown. Returns
 * how many steps that took. */
static size_t offer_pieces(const struct subword_model *l, const char *word, size_t length,
                           size_t begin, struct subword_way *way) {
  const size_t character = subword_character(word + begin);
  const double sum = way[begin].sum;
  bool alone = false;
  int32_t node = TRIE_ROOT;
  size_t i = begin;
  while (i < length) {
    node = trie_step(&l->trie, node, (unsigned char)word[i++]);
    if (node < 0) break;
    const int32_t id = l->trie.value[node];
    if (id < 0) continue;
    offer(&way[i], sum + l->score[id], begin, id);
    alone = alone || i - begin == character;
  }
  if (!alone) offer(&way[begin + character], sum + l->unknown_score, begin, l->unknown);
  return i - begin;
}

/* The tokens of what no piece has: one for all that is in one place. */
static void put_unknown(const struct subword_model *l, const char *text, size_t length, size_t at,
                        struct subword_work *w) {
  const int32_t id = vocabulary_find(&l->vocabulary, text, length);
  if (id < 0 && l->fallback && subword_byte_fallback(l, text, length, at, w)) return;
  subword_append(w, id < 0 ? l->unknown : id, at, at + length);
}

/* The way is known from its end. Writes where its pieces end, the last one first; returns how many
 * there are. */
static size_t list_ends(const struct subword_way *way, size_t length, uint32_t *end) {
  size_t count = 0;
  for (size_t at = length; at > 0; at = way[at].from) end[count++] = (uint32_t)at;
  return count;
}

/* What is unknown, one behind the other, is one. */
static void put_way(const struct subword_model *l, const char *word, size_t at,
                    const struct subword_way *way, const uint32_t *end, size_t count,
                    struct subword_work *w) {
  while (count > 0) {
    const size_t begin = way[end[--count]].from;
    if (way[end[count]].id != l->unknown) {
      subword_append(w, way[end[count]].id, at + begin, at + end[count]);
      continue;
    }
    while (count > 0 && way[end[count - 1]].id == l->unknown) count--;
    put_unknown(l, word + begin, end[count] - begin, at + begin, w);
  }
}

static enum status cut(const struct subword_model *l, const char *word, size_t length, size_t at,
                       struct subword_work *w) {
  struct subword_way *way = subword_scratch(w, (length + 1) * (sizeof *way + sizeof(uint32_t)));
  if (!way) return w->out->e->status;
  uint32_t *end = (uint32_t *)(way + length + 1);
  way[0] = (struct subword_way){.from = 0};
  for (size_t i = 1; i <= length; i++) way[i].from = NOWHERE;
  for (size_t i = 0; i < length; i += subword_character(word + i))
    if (subword_ends(w, offer_pieces(l, word, length, i, way))) return w->out->e->status;
  const size_t count = list_ends(way, length, end);
  for (size_t i = 0; i < count && l->unknown < 0; i++)
    if (way[end[i]].id < 0)
      return subword_refuse(w, word + way[end[i]].from, end[i] - way[end[i]].from,
                            at + way[end[i]].from);
  put_way(l, word, at, way, end, count, w);
  return w->out->e->status;
}

const struct subword_kind subword_unigram = {{"Unigram", "vocab unk_id byte_fallback "}, read, cut};
