/* subword_sentence: models of sentencepiece, and its Unigram.
 *
 * The texts of a Unigram are not cut into words: the sums of scores are float32 and begin with the
 * text, as in sentencepiece, so that the same way wins where two are nearly as good. */
#include "config/tokenizer/model/subword_parts.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config/document/text.h"

enum { UNKNOWN_PENALTY = 10 }; /* below the least score of a piece */
#define USER_PENALTY 0.1       /* below the score of as many bytes of the best piece */

/* --- Unigram --- */

/* A sum is compared before it is rounded. An unknown character has place -1. */
static inline void improve(struct subword_way *to, double sum, size_t from, int32_t place) {
  if (to->from != SUBWORD_NOWHERE && sum <= to->sum) return;
  *to = (struct subword_way){(float)sum, (uint32_t)from, place};
}

/* Continues the way to `begin` by every piece that begins there, shorter ones first, and by an
 * unknown character if no piece is that character. Returns how many steps that took. */
static size_t continue_way(const struct subword_model *m, const char *word, size_t length,
                           size_t begin, struct subword_way *way) {
  const size_t character = subword_character(word + begin);
  const float sum = (float)way[begin].sum;
  const struct subword_places *p = m->places;
  bool known = false;
  int32_t node = TRIE_ROOT;
  size_t i = begin;
  while (i < length) {
    const size_t to = (size_t)p->node[node].base + (unsigned char)word[i++];
    const struct subword_node *n = &p->node[to];
    if (n->check != node) break;
    node = (int32_t)to;
    if (n->place < 0) continue;
    /* A text that is always one token has its own score. */
    const double score = n->score < INFINITY ? (double)n->score : p->score[n->place];
    improve(&way[i], score + sum, begin, n->place);
    known = known || i - begin == character;
  }
  if (!known) improve(&way[begin + character], p->unknown_score + sum, begin, -1);
  return i - begin;
}

static enum status tokenize_unigram(const struct subword_model *m, const char *word, size_t length,
                                    size_t at, struct subword_work *w) {
  struct subword_way *way = subword_ways_begin(w, length);
  if (!way) return w->out->e->status;
  for (size_t i = 0; i < length; i += subword_character(word + i))
    if (subword_is_over(w, continue_way(m, word, length, i, way))) return w->out->e->status;
  uint32_t *end;
  size_t count = subword_ways_end(way, length, &end);
  struct subword_run run = {.m = m, .w = w, .word = word, .at = at};
  while (count-- > 0)
    subword_append_place(&run, way[end[count]].id, way[end[count]].from, end[count]);
  return w->out->e->status;
}

const struct subword_kind subword_sentence_unigram = {{"Unigram", ""}, NULL, tokenize_unigram};

/* A text of type USER has the score of the best piece for each of its bytes; the least best is the
 * least positive number. */
static enum status read_scores(struct subword_model *m, const struct sentencepiece *s,
                               struct error *e) {
  float least = FLT_MAX, best = FLT_MIN;
  m->places->score = calloc(s->count, sizeof *m->places->score);
  if (!m->places->score) return error_no_memory(e);
  for (size_t i = 0; i < s->count; i++) {
    if (s->piece[i].type != SENTENCEPIECE_NORMAL) continue;
    least = fminf(least, s->piece[i].score);
    best = fmaxf(best, s->piece[i].score);
  }
  m->places->unknown_score = least - UNKNOWN_PENALTY;
  for (size_t i = 0; i < s->count; i++) {
    const struct sentencepiece_piece *p = &s->piece[i];
    const float bonus = (float)p->text.length * best;
    m->places->score[i] = p->type == SENTENCEPIECE_USER ? bonus - USER_PENALTY : (double)p->score;
  }
  return STATUS_OK;
}

static bool is_text(const struct sentencepiece_piece *p) {
  return p->type == SENTENCEPIECE_NORMAL || p->type == SENTENCEPIECE_USER;
}

static enum status make_trie(struct subword_model *m, const struct sentencepiece *s,
                             struct error *e) {
  struct trie_string *string = malloc(s->count * sizeof *string);
  size_t count = 0;
  if (!string) return error_no_memory(e);
  for (size_t i = 0; i < s->count; i++) {
    const struct sentencepiece_piece *p = &s->piece[i];
    if (is_text(p))
      string[count++] = (struct trie_string){p->text.bytes, p->text.length, (int32_t)i};
  }
  trie_init(&m->trie, string, count, e);
  free(string);
  return e->status;
}

/* Puts the scores into the nodes of the trie: together they are one access to memory. */
static enum status put_scores(struct subword_model *m, const struct sentencepiece *s,
                              struct error *e) {
  struct subword_node *to = calloc(m->trie.count, sizeof *to);
  if (!to) return error_no_memory(e);
  for (size_t i = 0; i < m->trie.count; i++) {
    const int32_t place = m->trie.value[i];
    const struct sentencepiece_piece *p = place < 0 ? NULL : &s->piece[place];
    to[i] = (struct subword_node){.base = m->trie.node[i].base,
                                  .check = m->trie.node[i].check,
                                  .place = place,
                                  .score = !p                              ? 0
                                           : p->type == SENTENCEPIECE_USER ? INFINITY
                                                                           : p->score};
  }
  m->places->node = to;
  m->places->nodes = m->trie.count;
  trie_done(&m->trie);
  return STATUS_OK;
}

/* --- the model --- */

/* The pieces with their ids. Those that no text has are found by their ids alone. */
static enum status read_pieces(struct subword_model *m, const struct sentencepiece *s,
                               struct error *e) {
  for (size_t i = 0; i < s->count; i++) {
    const struct sentencepiece_piece *p = &s->piece[i];
    vocabulary_add(&m->vocabulary, p->text.bytes, p->text.length, m->places->id[i], !is_text(p), e);
    if (e->status == STATUS_CONFIG) text_before(e, "piece %zu: ", i);
    if (e->status) return e->status;
  }
  if (vocabulary_end(&m->vocabulary, e)) return e->status;
  for (size_t i = 0; i < s->count; i++) {
    const struct sentencepiece_piece *p = &s->piece[i];
    if (is_text(p) &&
        vocabulary_find(&m->vocabulary, p->text.bytes, p->text.length) != m->places->id[i])
      return error_set(e, STATUS_CONFIG, "piece %zu: \"%.*s\" is the text of another piece, too", i,
                       (int)(p->text.length < 60 ? p->text.length : 60), p->text.bytes);
  }
  return STATUS_OK;
}

/* The pieces of {"piece": id, ...}. */
static enum status read_vocabulary(struct subword_model *m, const json_t *vocabulary,
                                   struct error *e) {
  json_t *json = json_pack("{s:O}", "vocab", vocabulary);
  if (!json) return error_no_memory(e);
  subword_read_object(m, json, e);
  json_decref(json);
  return e->status;
}

static enum status read_model(struct subword_model *m, const struct sentencepiece *s,
                              const int32_t *id, const json_t *vocabulary, struct error *e) {
  struct subword_places *p = m->places;
  if (s->count >= VOCABULARY_MAX)
    return error_set(e, STATUS_CONFIG, "has %zu pieces; at most %d are supported", s->count,
                     VOCABULARY_MAX - 1);
  p->count = s->count;
  p->id = calloc(s->count, sizeof *p->id);
  if (!p->id) return error_no_memory(e);
  for (size_t i = 0; i < s->count; i++) p->id[i] = id ? id[i] : (int32_t)i;
  m->unknown = p->id[s->unknown];
  if (vocabulary ? read_vocabulary(m, vocabulary, e) : read_pieces(m, s, e)) return e->status;
  m->fallback = s->fallback;
  for (size_t i = 0; i < s->count && s->fallback; i++)
    if (s->piece[i].type == SENTENCEPIECE_BYTE)
      m->byte[sentencepiece_byte(s->piece[i].text)] = p->id[i];
  if (s->bpe) return subword_sentence_merges(m, s, e);
  if (read_scores(m, s, e) || make_trie(m, s, e)) return e->status;
  return put_scores(m, s, e);
}

struct subword_model *subword_new_sentence(const struct sentencepiece *s, const int32_t *id,
                                           const json_t *vocabulary, struct error *e) {
  struct subword_model *m = calloc(1, sizeof *m);
  if (m) m->places = calloc(1, sizeof *m->places);
  if (m) m->kind = s->bpe ? &subword_sentence_bpe : &subword_sentence_unigram;
  if (!m || !m->places)
    error_no_memory(e);
  else if (read_model(m, s, id, vocabulary, e) == STATUS_OK)
    return m;
  subword_free(m);
  return NULL;
}
