/* subword_sentence_bpe: the BPE of sentencepiece: neighbors whose joined text is a piece become
 * that piece, the one of the greatest score first, of equal scores the first.
 *
 * Any two pieces that make a third are a merge, with a rank for each score. A text is cut into
 * words where no piece continues, so that a word that is a piece is looked up and not merged. */
#include <stdlib.h>
#include <string.h>

#include "config/tokenizer/model/subword_parts.h"
#include "core/base/size.h"

enum { WORD = 64, ASCII = 128 };

/* Characters of a piece that is made of others, as sentencepiece limits them in training. */
enum { PIECE_LONGEST = 512 };

/* --- words --- */

/* The end of the word that begins at `begin`; *user: the place of its text if that is always one
 * token, else -1. */
static size_t end_word(const struct subword_run *r, size_t length, size_t begin, int32_t *user) {
  const struct subword_places *p = r->m->places;
  size_t found, steps;
  *user = -1;
  for (size_t i = begin; i < length; i += subword_character(r->word + i)) {
    if (!p->stops[(unsigned char)r->word[i]]) continue;
    const char *text = r->word + i;
    if (p->has_user) {
      const int32_t place = trie_longest(&p->user, TRIE_ROOT, text, length - i, &found, &steps);
      if (subword_is_over(r->w, steps)) return length;
      if (place >= 0 && i > begin) return i;
      if (place >= 0) *user = place;
      if (place >= 0) return i + found;
    }
    if (!sentencepiece_is_blank(text, length - i)) continue;
    if (p->cuts_before && i > begin &&
        !sentencepiece_is_blank(text - SENTENCEPIECE_BLANK_SIZE,
                                i - begin >= SENTENCEPIECE_BLANK_SIZE ? SENTENCEPIECE_BLANK_SIZE
                                                                      : 0))
      return i;
    if (p->cuts_after && i + SENTENCEPIECE_BLANK_SIZE < length &&
        !sentencepiece_is_blank(text + SENTENCEPIECE_BLANK_SIZE,
                                length - i - SENTENCEPIECE_BLANK_SIZE))
      return i + SENTENCEPIECE_BLANK_SIZE;
  }
  return length;
}

/* Lists the characters of a word as their places; returns how many. One that is in no piece has a
 * negative one. */
static size_t list_characters(const struct subword_places *p, const char *word, size_t length,
                              struct subword_symbol *symbol) {
  size_t count = 0;
  for (size_t i = 0, size; i < length; i += size) {
    size = subword_character(word + i);
    const int32_t place = size == 1 ? p->character[(unsigned char)word[i]]
                                    : vocabulary_find(&p->found, word + i, size);
    symbol[count++] = (struct subword_symbol){place, (uint32_t)size};
  }
  return count;
}

static enum status merge_word(struct subword_run *r, size_t begin, size_t end) {
  const size_t length = end - begin;
  const size_t symbols = (length + 1) / 2 * 2 * sizeof(struct subword_symbol);
  struct subword_symbol *symbol = subword_scratch(r->w, symbols + subword_merge_scratch(length));
  if (!symbol) return r->w->out->e->status;
  size_t count = list_characters(r->m->places, r->word + begin, length, symbol);
  count = subword_merge_all(r->m, symbol, count, (char *)symbol + symbols, r->w);
  if (r->w->out->e->status) return r->w->out->e->status;
  for (size_t i = 0; i < count; begin += symbol[i++].length)
    subword_append_place(r, symbol[i].id, begin, begin + symbol[i].length);
  return r->w->out->e->status;
}

static enum status tokenize(const struct subword_model *m, const char *word, size_t length,
                            size_t at, struct subword_work *w) {
  struct subword_run run = {.m = m, .w = w, .word = word, .at = at};
  for (size_t begin = 0, end; begin < length; begin = end) {
    int32_t place;
    end = end_word(&run, length, begin, &place);
    if (subword_is_over(w, 1 + (end - begin)) || w->out->e->status) return w->out->e->status;
    if (place < 0) {
      place = vocabulary_find(&m->places->found, word + begin, end - begin);
      if (place >= 0 && !(m->whole[place / WORD] >> (place % WORD) & 1)) place = -1;
    }
    if (place >= 0)
      subword_append_place(&run, place, begin, end);
    else if (merge_word(&run, begin, end))
      break;
  }
  return w->out->e->status;
}

const struct subword_kind subword_sentence_bpe = {{"BPE", ""}, NULL, tokenize};

/* --- what a word's parts can be --- */

static bool can_be_part(const struct sentencepiece_piece *p) {
  return p->type == SENTENCEPIECE_NORMAL || p->type == SENTENCEPIECE_UNUSED;
}

/* Adds the characters of pieces that are no pieces themselves: they may become one together. */
static enum status add_characters(struct vocabulary *found, const struct sentencepiece *s,
                                  const struct vocabulary *known, struct error *e) {
  int64_t place = (int64_t)s->count;
  for (size_t i = 0; i < s->count; i++) {
    const struct sentencepiece_text *t = &s->piece[i].text;
    for (size_t at = 0, size; can_be_part(&s->piece[i]) && at < t->length; at += size) {
      size = subword_character(t->bytes + at);
      if (size < t->length && vocabulary_find(known, t->bytes + at, size) < 0 &&
          vocabulary_add(found, t->bytes + at, size, place++, false, e))
        return e->status;
    }
  }
  return STATUS_OK;
}

static enum status add_parts(struct vocabulary *to, const struct sentencepiece *s,
                             struct error *e) {
  for (size_t i = 0; i < s->count; i++) {
    const struct sentencepiece_text *t = &s->piece[i].text;
    if (can_be_part(&s->piece[i]) && vocabulary_add(to, t->bytes, t->length, (int64_t)i, false, e))
      return e->status;
  }
  return STATUS_OK;
}

/* Fills p->found. */
static enum status find_parts(struct subword_places *p, const struct sentencepiece *s,
                              struct error *e) {
  struct vocabulary known = {0};
  if (add_parts(&known, s, e) == STATUS_OK && vocabulary_end(&known, e) == STATUS_OK &&
      add_parts(&p->found, s, e) == STATUS_OK &&
      add_characters(&p->found, s, &known, e) == STATUS_OK)
    vocabulary_end(&p->found, e);
  vocabulary_done(&known);
  for (unsigned c = 0; c < ASCII && e->status == STATUS_OK; c++)
    p->character[c] = vocabulary_find(&p->found, &(char){(char)c}, 1);
  return e->status;
}

/* Fills p->user, and finds where words end. */
static enum status find_ends(struct subword_places *p, const struct sentencepiece *s,
                             struct error *e) {
  struct trie_string *string = malloc(s->count * sizeof *string);
  size_t count = 0;
  if (!string) return error_no_memory(e);
  p->cuts_before = p->cuts_after = true;
  for (size_t i = 0; i < s->count; i++) {
    const struct sentencepiece_text *t = &s->piece[i].text;
    if (s->piece[i].type == SENTENCEPIECE_USER) {
      string[count++] = (struct trie_string){t->bytes, t->length, (int32_t)i};
      p->stops[(unsigned char)t->bytes[0]] = true;
    }
    bool blank = false;
    for (size_t at = 0; can_be_part(&s->piece[i]) && at < t->length;
         at += subword_character(t->bytes + at)) {
      const bool is = sentencepiece_is_blank(t->bytes + at, t->length - at);
      if (at > 0 && is && !blank) p->cuts_before = false;
      if (at > 0 && !is && blank) p->cuts_after = false;
      blank = is;
    }
  }
  p->has_user = count > 0;
  p->stops[(unsigned char)*SENTENCEPIECE_BLANK] = true;
  trie_init(&p->user, string, count, e);
  free(string);
  return e->status;
}

/* --- merges --- */

struct sentence_merges {
  struct subword_merge *merge; /* [room] owned */
  size_t count, room;
};

static enum status add_merge(struct sentence_merges *g, struct subword_merge merge,
                             struct error *e) {
  if (g->count == g->room) {
    enum { FIRST = 1024 };
    const size_t room = size_max(FIRST, 2 * g->room);
    struct subword_merge *moved = realloc(g->merge, room * sizeof *moved);
    if (!moved) return error_no_memory(e);
    g->merge = moved;
    g->room = room;
  }
  g->merge[g->count++] = merge;
  return STATUS_OK;
}

/* Adds all ways to make a piece of two parts. */
static enum status split_piece(const struct subword_places *p, const struct sentencepiece *s,
                               int32_t place, uint32_t rank, struct sentence_merges *g,
                               struct error *e) {
  const struct sentencepiece_text *t = &s->piece[place].text;
  size_t characters = 1;
  for (size_t at = subword_character(t->bytes); at < t->length;
       at += subword_character(t->bytes + at)) {
    if (characters++ == PIECE_LONGEST)
      return error_set(e, STATUS_CONFIG, "piece %d: has more than %d characters", place,
                       PIECE_LONGEST);
    const int32_t left = vocabulary_find(&p->found, t->bytes, at);
    const int32_t right = left < 0 ? -1 : vocabulary_find(&p->found, t->bytes + at, t->length - at);
    if (right < 0) continue;
    if (s->piece[place].type == SENTENCEPIECE_UNUSED)
      return error_set(e, STATUS_CONFIG, "piece %d: type UNUSED is not supported in a BPE model",
                       place);
    if (add_merge(g, (struct subword_merge){left, right, rank, place}, e)) return e->status;
  }
  return STATUS_OK;
}

struct sentence_rank {
  float score;
  int32_t place;
};

/* The greatest score first. */
static int compare(const void *a, const void *b) {
  const struct sentence_rank *x = a, *y = b;
  return x->score > y->score ? -1 : x->score < y->score;
}

/* Makes the merges of all pieces, with a rank for each score. */
static enum status find_merges(struct subword_model *m, const struct sentencepiece *s,
                               struct error *e) {
  struct sentence_rank *rank = malloc(s->count * sizeof *rank);
  struct sentence_merges g = {0};
  size_t count = 0;
  uint32_t which = 0;
  if (!rank) return error_no_memory(e);
  for (size_t i = 0; i < s->count; i++)
    if (can_be_part(&s->piece[i]))
      rank[count++] = (struct sentence_rank){s->piece[i].score, (int32_t)i};
  if (count) qsort(rank, count, sizeof *rank, compare);
  for (size_t i = 0; i < count && e->status == STATUS_OK; i++) {
    if (i > 0 && rank[i].score < rank[i - 1].score) which++;
    split_piece(m->places, s, rank[i].place, which, &g, e);
  }
  free(rank);
  if (e->status == STATUS_OK) subword_make_merges(m, g.count, e);
  for (size_t i = 0; i < g.count && e->status == STATUS_OK; i++) subword_add_merge(m, g.merge[i]);
  free(g.merge);
  return e->status;
}

/* Fills m->whole: whether a piece is what the word of its bytes becomes. */
static enum status find_whole(struct subword_model *m, const struct sentencepiece *s,
                              struct error *e) {
  enum { LONGEST = 4 * PIECE_LONGEST };
  struct subword_symbol *symbol = malloc(LONGEST * sizeof *symbol);
  void *scratch = malloc(subword_merge_scratch(LONGEST));
  m->whole = calloc(m->places->found.size / WORD + 1, sizeof *m->whole);
  if (!symbol || !scratch || !m->whole) error_no_memory(e);
  for (size_t i = 0; i < s->count && e->status == STATUS_OK; i++) {
    const struct sentencepiece_text *t = &s->piece[i].text;
    if (!can_be_part(&s->piece[i]) || t->length > LONGEST) continue;
    size_t count = list_characters(m->places, t->bytes, t->length, symbol);
    count = subword_merge_all(m, symbol, count, scratch, NULL);
    if (count == 1 && symbol[0].id == (int32_t)i) m->whole[i / WORD] |= UINT64_C(1) << (i % WORD);
  }
  free(symbol);
  free(scratch);
  return e->status;
}

enum status subword_sentence_merges(struct subword_model *m, const struct sentencepiece *s,
                                    struct error *e) {
  if (find_parts(m->places, s, e) || find_ends(m->places, s, e) || find_merges(m, s, e))
    return e->status;
  return find_whole(m, s, e);
}
