/* normalizer_unicode: NFC, NFD, NFKC, NFKD: decomposes characters, sorts marks into canonical
 * order, and composes again.
 *
 * Nearly all characters of nearly all texts are `still`: the form leaves them as they are, and they
 * do not join with those before them. Only groups around the others are decomposed. */
#include <stdlib.h>
#include <string.h>

#include "config/tokenizer/normalizer/normalizer_letters.h"
#include "config/tokenizer/normalizer/normalizer_parts.h"
#include "config/tokenizer/pattern/unicode.h"

enum { TABLED = 0x10000 }; /* code points below it are looked up, others computed */

struct normalizer_form {
  bool compatibly, composes;
  unsigned char still[TABLED / 8]; /* a bit for each character */
};

/* --- still characters --- */

/* Whether a character whose decomposition begins with `first` never joins with those before it. */
static bool parts(const struct normalizer_form *f, uint32_t first) {
  return f->composes ? !unicode_may_join(first) : unicode_order(first) == 0;
}

static bool compute_still(const struct normalizer_form *f, uint32_t c) {
  uint32_t of[UNICODE_DECOMPOSED_MAX];
  const size_t count = unicode_decompose(c, f->compatibly, of);
  if (!parts(f, of[0]) || (count > 1 && !f->composes)) return false;
  uint32_t whole = of[0];
  for (size_t i = 1; i < count && whole; i++) whole = unicode_compose(whole, of[i]);
  return whole == c;
}

static bool is_still(const struct normalizer_form *f, uint32_t c) {
  return c < TABLED ? f->still[c / 8] >> c % 8 & 1 : compute_still(f, c);
}

/* The place of the first character from `at` on that is not still. *last becomes the place of the
 * character before it, if it is not `at`. */
static size_t pass_still(const struct normalizer_form *f, const struct passage_bytes *now,
                         size_t at, size_t *last) {
  while (at < now->length) {
    size_t length = unicode_ascii(now->bytes + at, now->length - at);
    if (length > 0) {
      *last = at + length - 1;
    } else {
      if (!is_still(f, unicode_read(now->bytes + at, &length))) break;
      *last = at;
    }
    at += length;
  }
  return at;
}

/* --- groups of the others --- */

/* Adds the letters of the characters from `at` to before one that parts; where nothing is composed,
 * to the first that leaves no marks to sort. Returns where the characters end. */
static size_t gather(const struct normalizer_form *f, struct passage *p, size_t at,
                     struct normalizer_letters *l) {
  const struct passage_bytes *now = &p->now;
  bool open = true;
  size_t length;
  for (const size_t begin = at; open && at < now->length && !passage_is_over(p, at); at += length) {
    uint32_t of[UNICODE_DECOMPOSED_MAX];
    const uint32_t c = unicode_read(now->bytes + at, &length);
    const size_t count = unicode_decompose(c, f->compatibly, of);
    if (at > begin && parts(f, of[0])) break;
    for (size_t i = 0; i < count; i++) {
      const uint8_t order = unicode_order(of[i]);
      normalizer_letters_add(l, &(struct normalizer_letter){of[i], (uint32_t)at,
                                                            (uint32_t)(at + length), order});
      open = f->composes || order > 0;
    }
  }
  return at;
}

/* A still character may compose with what follows it: a group begins with the one before it. */
static void apply_form(const void *settings, struct passage *p) {
  const struct normalizer_form *f = settings;
  const struct passage_bytes *now = &p->now;
  struct normalizer_edit edit = normalizer_edit_begin(p);
  struct normalizer_letters letters;
  normalizer_letters_init(&letters, &edit);
  for (size_t at = 0;;) {
    size_t begin = at;
    at = pass_still(f, now, at, &begin);
    if (at == now->length || passage_is_over(p, at)) break;
    if (!f->composes) begin = at;
    at = gather(f, p, begin, &letters);
    normalizer_letters_sort(&letters);
    if (f->composes) normalizer_letters_compose(&letters);
    normalizer_letters_write(&letters, begin, at);
  }
  normalizer_edit_end(&edit);
}

/* --- reading --- */

/* The type is one of NFC, NFD, NFKC and NFKD. */
void normalizer_read_form(void *to, const json_t *json, struct error *e) {
  const char *type = json_string_value(json_object_get(json, "type"));
  struct normalizer_form *f = normalizer_add_step(to, sizeof *f, apply_form, NULL, e);
  if (!f) return;
  f->compatibly = type[2] == 'K';
  f->composes = type[strlen(type) - 1] == 'C';
  for (uint32_t c = 0; c < TABLED; c++)
    if (compute_still(f, c)) f->still[c / 8] |= (unsigned char)(1u << c % 8);
}
