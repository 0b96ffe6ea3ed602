/* tokenizer_languages: languages by the form of their tokens. */
#include "config/tokenizer/tokenizer_languages.h"

#include <ctype.h>
#include <string.h>

#include "config/tokenizer/tokenizer_parts.h"

/* Is it a code as NLLB and mBART have them: "fra_Latn", "fr_XX"? */
static bool is_code(const char *text, size_t length) {
  const char *bar = memchr(text, '_', length);
  const size_t before = bar ? (size_t)(bar - text) : 0, after = length - before - 1;
  bool good = (before == 2 || before == 3) && (after == 2 || after == 4);
  for (size_t i = 0; i < before && good; i++) good = islower((unsigned char)text[i]);
  for (size_t i = 0; i < after && good; i++)
    good = (i == 0 || after == 2 ? isupper : islower)((unsigned char)bar[1 + i]);
  return good;
}

/* Is it a code between two marks? Then *out is the code. */
static bool is_between(const struct added_token *t, const char *first, const char *last,
                       struct tokenizer_language *out) {
  if (t->length <= 4 || memcmp(t->content, first, 2) != 0 ||
      memcmp(t->content + t->length - 2, last, 2) != 0)
    return false;
  out->code = t->content + 2;
  out->length = t->length - 4;
  return true;
}

bool tokenizer_next_language(const struct tokenizer *t, size_t *at,
                             struct tokenizer_language *out) {
  while (*at < t->added.count) {
    const struct added_token *one = &t->added.token[(*at)++];
    *out = (struct tokenizer_language){.id = one->id, .code = one->content, .length = one->length};
    out->before = is_between(one, ">>", "<<", out);
    if (out->before) return true;
    if (one->special && (is_code(one->content, one->length) || is_between(one, "__", "__", out)))
      return true;
  }
  return false;
}
