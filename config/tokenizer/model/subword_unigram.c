/* subword_unigram: of all ways to cut a word into pieces, the one with the greatest sum of scores.
 */
#include "config/tokenizer/model/subword_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { UNKNOWN_PENALTY = 10 }; /* below the least score of a piece */

/* --- reading --- */

static enum status read_pieces(struct subword_model *m, const json_t *json, struct error *e) {
  const json_t *vocabulary = json_object_get(json, "vocab"), *one;
  const size_t count = json_array_size(vocabulary);
  size_t id;
  if (count == 0) return error_set(e, STATUS_CONFIG, "vocab: needs a list of pieces with scores");
  m->score = calloc(count, sizeof *m->score);
  if (!m->score) return error_no_memory(e);
  m->unknown_score = INFINITY;
  json_array_foreach((json_t *)vocabulary, id, one) {
    const json_t *text = json_array_get(one, 0), *score = json_array_get(one, 1);
    if (json_array_size(one) != 2 || !json_is_string(text) || !json_is_number(score))
      return error_set(e, STATUS_CONFIG, "vocab: %zu: needs a piece and its score", id);
    m->score[id] = json_number_value(score);
    m->unknown_score = fmin(m->unknown_score, m->score[id]);
    if (vocabulary_add(&m->vocabulary, json_string_value(text), json_string_length(text),
                       (int64_t)id, false, e))
      return e->status;
  }
  m->unknown_score -= UNKNOWN_PENALTY;
  return vocabulary_end(&m->vocabulary, e);
}

static enum status read(struct subword_model *m, const json_t *json, struct error *e) {
  const json_t *unknown = json_object_get(json, "unk_id");
  if (read_pieces(m, json, e)) return e->status;
  if (unknown && !json_is_null(unknown)) {
    const json_int_t id = json_is_integer(unknown) ? json_integer_value(unknown) : -1;
    if (id < 0 || (size_t)id >= m->vocabulary.size)
      return error_set(e, STATUS_CONFIG, "unk_id: needs an id of the vocabulary");
    m->unknown = (int32_t)id;
  }
  m->fallback = member_flag_or(json, "byte_fallback", false, e);
  if (e->status) return e->status;
  subword_find_bytes(m);
  return subword_make_trie(m, e);
}

/* --- words --- */

static void improve(struct subword_way *to, double sum, size_t from, int32_t id) {
  if (to->from != SUBWORD_NOWHERE && sum <= to->sum) return;
  *to = (struct subword_way){sum, (uint32_t)from, id};
}

/* Continues the way to `begin` by every piece that begins there, shorter ones first, and by an
 * unknown character if no piece is that character. Returns how many steps that took. */
static size_t continue_way(const struct subword_model *m, const char *word, size_t length,
                           size_t begin, struct subword_way *way) {
  const size_t character = subword_character(word + begin);
  const double sum = way[begin].sum;
  bool known = false;
  int32_t node = TRIE_ROOT;
  size_t i = begin;
  while (i < length) {
    node = trie_step(&m->trie, node, (unsigned char)word[i++]);
    if (node < 0) break;
    const int32_t id = m->trie.value[node];
    if (id < 0) continue;
    improve(&way[i], sum + m->score[id], begin, id);
    known = known || i - begin == character;
  }
  if (!known) improve(&way[begin + character], sum + m->unknown_score, begin, m->unknown);
  return i - begin;
}

static enum status tokenize(const struct subword_model *m, const char *word, size_t length,
                            size_t at, struct subword_work *w) {
  struct subword_way *way = subword_ways_begin(w, length);
  if (!way) return w->out->e->status;
  for (size_t i = 0; i < length; i += subword_character(word + i))
    if (subword_is_over(w, continue_way(m, word, length, i, way))) return w->out->e->status;
  uint32_t *end;
  size_t count = subword_ways_end(way, length, &end);
  for (size_t i = 0; i < count && m->unknown < 0; i++)
    if (way[end[i]].id < 0)
      return subword_refuse(w, word + way[end[i]].from, end[i] - way[end[i]].from,
                            at + way[end[i]].from);

  while (count > 0) {
    const size_t begin = way[end[--count]].from;
    if (way[end[count]].id != m->unknown) {
      subword_append(w, way[end[count]].id, at + begin, at + end[count]);
      continue;
    }
    /* Unknown neighbors are one text: a piece, or tokens of its bytes, or unknown. */
    while (count > 0 && way[end[count - 1]].id == m->unknown) count--;
    const char *text = word + begin;
    const size_t size = end[count] - begin;
    const int32_t id = vocabulary_find(&m->vocabulary, text, size);
    if (id < 0 && m->fallback && subword_byte_fallback(m, text, size, at + begin, w)) continue;
    subword_append(w, id < 0 ? m->unknown : id, at + begin, at + end[count]);
  }
  return w->out->e->status;
}

const struct subword_kind subword_unigram = {{"Unigram", "vocab unk_id byte_fallback "},
                                             read,
                                             tokenize};
