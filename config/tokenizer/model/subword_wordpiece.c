/* subword_wordpiece: the longest piece at the beginning of a word, then the longest that continues
 * it, and so on; if no piece continues it, the full word is unknown. */
#include "config/tokenizer/model/subword_parts.h"

#include <string.h>

static enum status read(struct subword_model *m, const json_t *json, struct error *e) {
  static const struct subword_affix usual = {"##", 2};
  enum { USUAL_LONGEST = 100 };
  const json_t *longest = json_object_get(json, "max_input_chars_per_word");
  if (subword_read_object(m, json, e) || subword_read_unknown(m, json, false, e) ||
      subword_read_affix(json, "continuing_subword_prefix", &m->inside, e))
    return e->status;
  if (longest && !(json_is_integer(longest) && json_integer_value(longest) >= 0))
    return error_set(e, STATUS_CONFIG, "max_input_chars_per_word: needs a number of characters");
  m->longest_word = longest ? (size_t)json_integer_value(longest) : USUAL_LONGEST;
  if (subword_make_trie(m, e)) return e->status;
  if (!json_object_get(json, "continuing_subword_prefix")) m->inside = usual;
  /* Pieces that continue a word are below the node of the affix, in the one trie. */
  m->inside_node = TRIE_ROOT;
  for (size_t i = 0; i < m->inside.length && m->inside_node >= 0; i++)
    m->inside_node = trie_step(&m->trie, m->inside_node, (unsigned char)m->inside.bytes[i]);
  return STATUS_OK;
}

/* Whether a word has more characters than are tokenized; a character has at least a byte. */
static bool is_too_long(const struct subword_model *m, const char *word, size_t length) {
  size_t characters = 0;
  if (length <= m->longest_word) return false;
  for (size_t i = 0; i < length && characters <= m->longest_word; characters++)
    i += subword_character(word + i);
  return characters > m->longest_word;
}

static enum status tokenize(const struct subword_model *m, const char *word, size_t length,
                            size_t at, struct subword_work *w) {
  const size_t before = w->out->count;
  bool known = !is_too_long(m, word, length);
  for (size_t begin = 0, found, steps = 0; known && begin < length; begin += found) {
    const int32_t node = begin ? m->inside_node : TRIE_ROOT;
    const int32_t id =
        node < 0 ? -1 : trie_longest(&m->trie, node, word + begin, length - begin, &found, &steps);
    if (subword_is_over(w, steps)) return w->out->e->status;
    known = id >= 0;
    if (!known) break;
    subword_append(w, id, at + begin, at + begin + found);
  }
  if (known || w->out->e->status) return w->out->e->status;
  w->out->count = before;
  subword_append(w, m->unknown, at, at + length);
  return w->out->e->status;
}

const struct subword_kind subword_wordpiece = {
    {"WordPiece", "vocab unk_token continuing_subword_prefix max_input_chars_per_word "},
    read,
    tokenize};
