/* normalizer_letters: canonical order and composition of a few characters. */
#include "config/tokenizer/normalizer/normalizer_letters.h"

#include <string.h>

#include "config/tokenizer/pattern/unicode.h"
#include "core/base/size.h"

void normalizer_letters_init(struct normalizer_letters *l, struct normalizer_edit *edit) {
  l->edit = edit;
  l->letter = l->few;
  l->count = 0;
  l->room = NORMALIZER_LETTERS_FEW;
}

/* Room for `count` letters in all. */
static bool reserve(struct normalizer_letters *l, size_t count) {
  if (count <= l->room) return true;
  const size_t room = size_max(count, 2 * l->room);
  struct normalizer_letter *moved = passage_scratch(l->edit->p, room * sizeof *moved);
  if (!moved) return false;
  if (l->letter == l->few) memcpy(moved, l->few, l->count * sizeof *moved);
  l->letter = moved;
  l->room = room;
  return true;
}

void normalizer_letters_add(struct normalizer_letters *l, const struct normalizer_letter *letter) {
  if (reserve(l, l->count + 1)) l->letter[l->count++] = *letter;
}

/* --- order --- */

/* A stable insertion sort. */
static void sort_few(struct normalizer_letter *m, size_t count) {
  for (size_t i = 1; i < count; i++) {
    const struct normalizer_letter one = m[i];
    size_t at = i;
    for (; at > 0 && m[at - 1].order > one.order; at--) m[at] = m[at - 1];
    m[at] = one;
  }
}

/* A counting sort: a million marks must not take quadratic time. */
static void sort_many(struct normalizer_letter *m, size_t count, struct normalizer_letter *spare) {
  size_t next[256] = {0};
  for (size_t i = 0; i < count; i++) next[m[i].order]++;
  for (size_t i = 0, at = 0, many; i < 256; i++, at += many) {
    many = next[i];
    next[i] = at;
  }
  for (size_t i = 0; i < count; i++) spare[next[m[i].order]++] = m[i];
  memcpy(m, spare, count * sizeof *m);
}

void normalizer_letters_sort(struct normalizer_letters *l) {
  for (size_t at = 0, end; at < l->count; at = end) {
    bool sorted = true;
    for (end = at + 1; l->letter[at].order && end < l->count && l->letter[end].order; end++)
      sorted = sorted && l->letter[end - 1].order <= l->letter[end].order;
    const size_t count = end - at;
    if (sorted) continue;
    if (count <= NORMALIZER_LETTERS_FEW)
      sort_few(l->letter + at, count);
    else if (reserve(l, l->count + count))
      sort_many(l->letter + at, count, l->letter + l->count);
  }
}

/* --- composition --- */

/* A mark composes with the last base unless a mark between them, which did not compose, has the
 * same class; a base only if nothing is between them. */
void normalizer_letters_compose(struct normalizer_letters *l) {
  struct normalizer_letter *base = NULL;
  int between = -1; /* class of the last mark after the base; -1: none */
  size_t kept = 0;
  for (size_t i = 0; i < l->count; i++) {
    const struct normalizer_letter *next = &l->letter[i];
    const uint32_t both = base && between < next->order ? unicode_compose(base->c, next->c) : 0;
    if (both) {
      base->c = both;
      if (next->from < base->from) base->from = next->from;
      if (next->to > base->to) base->to = next->to;
      continue;
    }
    l->letter[kept] = *next;
    if (next->order == 0) base = &l->letter[kept];
    between = next->order ? next->order : -1;
    kept++;
  }
  l->count = kept;
}

/* --- writing --- */

static size_t write_letter(const struct normalizer_letter *letter, char out[UNICODE_BYTES_MAX]) {
  return letter->c == NORMALIZER_LETTERS_NONE ? 0 : unicode_write(letter->c, out);
}

/* Whether the letters are the same bytes as before, as they often are. */
static bool are_same(const struct normalizer_letters *l, size_t from, size_t to) {
  const char *text = l->edit->p->now.bytes;
  for (size_t i = 0; i < l->count; i++) {
    char bytes[UNICODE_BYTES_MAX];
    const size_t length = write_letter(&l->letter[i], bytes);
    if (length > to - from || memcmp(text + from, bytes, length) != 0) return false;
    from += length;
  }
  return from == to;
}

void normalizer_letters_write(struct normalizer_letters *l, size_t from, size_t to) {
  char bytes[UNICODE_BYTES_MAX * UNICODE_DECOMPOSED_MAX];
  const size_t count = l->count;
  const bool same = are_same(l, from, to);
  l->count = 0;
  if (same) return;
  /* Sorted marks may have decreasing origins: widened until neither begins nor ends decrease. */
  for (size_t i = 1; i < count; i++)
    if (l->letter[i].to < l->letter[i - 1].to) l->letter[i].to = l->letter[i - 1].to;
  for (size_t i = count; i-- > 1;)
    if (l->letter[i - 1].from > l->letter[i].from) l->letter[i - 1].from = l->letter[i].from;
  normalizer_edit_open(l->edit, from);
  for (size_t i = 0; i < count;) { /* letters of the same origin are appended at once */
    const struct normalizer_letter *first = &l->letter[i];
    size_t length = 0;
    for (; i < count && l->letter[i].from == first->from && l->letter[i].to == first->to &&
           length <= sizeof bytes - UNICODE_BYTES_MAX;
         i++)
      length += write_letter(&l->letter[i], bytes + length);
    passage_append(l->edit->p, bytes, length, first->from, first->to);
  }
  normalizer_edit_close(l->edit, to);
}
