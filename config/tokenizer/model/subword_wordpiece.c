/* subword_wordpiece: the longest piece with which a word begins, then the longest with which the
 * rest goes on, and so on; a word whose rest no piece begins is unknown as a whole. */
#include "config/tokenizer/model/subword_parts.h"

#include <string.h>

enum { USUAL_LONGEST = 100 }; /* characters */

/* Pieces that go on are those behind the affix, in the one trie of all. */
static void find_inside(struct subword_model *l) {
  l->inside_node = TRIE_ROOT;
  for (size_t i = 0; i < l->inside.length && l->inside_node >= 0; i++)
    l->inside_node = trie_step(&l->trie, l->inside_node, (unsigned char)l->inside.bytes[i]);
}

static enum status read_longest(struct subword_model *l, const json_t *json, struct error *e) {
  const json_t *value = json_object_get(json, "max_input_chars_per_word");
  l->longest_word = value ? (size_t)json_integer_value(value) : USUAL_LONGEST;
  if (!value || (json_is_integer(value) && json_integer_value(value) >= 0)) return STATUS_OK;
  return error_set(e, STATUS_CONFIG, "max_input_chars_per_word: needs a number of characters");
}

static enum status read(struct subword_model *l, const json_t *json, struct error *e) {
  static const struct subword_affix usual = {"##", 2};
  if (subword_read_object(l, json, e) || subword_read_unknown(l, json, false, e) ||
      subword_read_affix(json, "continuing_subword_prefix", &l->inside, e) ||
      read_longest(l, json, e) || subword_make_trie(l, e))
    return e->status;
  if (!json_object_get(json, "continuing_subword_prefix")) l->inside = usual;
  find_inside(l);
  return STATUS_OK;
}

/* Is the word longer than words are? A character has a byte at least. */
static bool is_too_long(const struct subword_model *l, const char *word, size_t length) {
  size_t characters = 0;
  if (length <= l->longest_word) return false;
  for (size_t i = 0; i < length && characters <= l->longest_word; characters++)
    i += subword_character(word + i);
  return characters > l->longest_word;
}

static enum status cut(const struct subword_model *l, const char *word, size_t length, size_t at,
                       struct subword_work *w) {
  const size_t before = w->out->count;
  size_t begin = is_too_long(l, word, length) ? SIZE_MAX : 0, found, steps = 0;
  while (begin < length) {
    const int32_t node = begin ? l->inside_node : TRIE_ROOT;
    const int32_t id =
        node < 0 ? -1 : trie_longest(&l->trie, node, word + begin, length - begin, &found, &steps);
    if (subword_ends(w, steps)) return w->out->e->status;
    if (id < 0) begin = SIZE_MAX;
    if (id < 0) break;
    subword_append(w, id, at + begin, at + begin + found);
    begin += found;
  }
  if (begin != SIZE_MAX || w->out->e->status) return w->out->e->status;
  w->out->count = before;
  subword_append(w, l->unknown, at, at + length);
  return w->out->e->status;
}

const struct subword_kind subword_wordpiece = {
    {"WordPiece", "vocab unk_token continuing_subword_prefix max_input_chars_per_word "},
    read,
    cut};
