/* charsmap: finds texts in the trie.
 *
 * The format is darts-clone's. A unit has the byte that leads to it, and an offset: the place of
 * its child is the unit's place XOR the offset XOR the child's byte. A value's unit has the highest
 * bit. */
#include "config/tokenizer/normalizer/charsmap.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "config/document/text.h"

#define VALUE_BIT (UINT32_C(1) << 31)

static size_t offset_of(uint32_t unit) { return (size_t)(unit >> 10) << ((unit >> 6) & 8); }

/* The child's unit, whose place *place becomes; false: there is none. */
static bool step(const struct charsmap *m, size_t *place, unsigned char byte) {
  *place ^= byte;
  if (*place >= m->units) return false;
  const uint32_t unit = m->unit[*place];
  if ((unit & (VALUE_BIT | 0xff)) != byte) return false;
  *place ^= offset_of(unit);
  return true;
}

static size_t root(const struct charsmap *m) { return offset_of(m->unit[0]); }

/* Does a character of the text end before byte `at`? The rest of one would not be well-formed. */
static bool ends_character(const char *text, size_t length, size_t at) {
  return at == length || ((unsigned char)text[at] & 0xc0) != 0x80;
}

struct charsmap_found charsmap_find(const struct charsmap *m, const char *text, size_t length,
                                    bool longest) {
  struct charsmap_found found = {0};
  size_t place = root(m), i = 0;
  for (; i < length && text[i]; i++) {
    const size_t before = place ^ (unsigned char)text[i];
    if (!step(m, &place, (unsigned char)text[i])) break;
    const bool has_value = m->unit[before] >> 8 & 1;
    if (!has_value || (longest && !ends_character(text, length, i + 1))) continue;
    if (place >= m->units || !(m->unit[place] & VALUE_BIT)) break;
    const size_t at = m->unit[place] & ~VALUE_BIT;
    found = (struct charsmap_found){m->text + at, strnlen(m->text + at, m->length - at), i + 1, 0};
    if (!longest) break;
  }
  found.steps = i + 1;
  return found;
}

bool charsmap_leaves(const struct charsmap *m, unsigned char byte) {
  enum { ASCII = 0x80 };
  const char one = (char)byte;
  const struct charsmap_found found = charsmap_find(m, &one, 1, true);
  size_t place = root(m);
  if (found.bytes && (found.length != 1 || *found.bytes != one)) return false;
  if (!byte || !step(m, &place, byte)) return true;
  for (unsigned next = 1; next < ASCII; next++) {
    size_t at = place;
    if (step(m, &at, (unsigned char)next)) return false;
  }
  return true;
}

/* A value is the place of a text, where a character begins. */
enum status charsmap_begin(struct charsmap *m, struct error *e) {
  uint32_t *unit = (uint32_t *)m->bytes;
  const size_t bytes = m->size < sizeof *unit ? 0 : le32toh(*unit);
  m->units = bytes / sizeof *unit;
  if (m->units == 0 || m->size - sizeof *unit < m->units * sizeof *unit)
    return error_set(e, STATUS_CONFIG, "precompiled_charsmap: a trie of %zu bytes in %zu", bytes,
                     m->size);
  m->unit = unit + 1;
  for (size_t i = 0; i < m->units; i++) unit[i + 1] = le32toh(unit[i + 1]);
  m->text = (const char *)(m->unit + m->units);
  m->length = m->size - (1 + m->units) * sizeof *unit;
  if (!text_is_utf8(m->text, m->length))
    return error_set(e, STATUS_CONFIG, "precompiled_charsmap: the texts are not UTF-8");
  for (size_t i = 0; i < m->units; i++) {
    const size_t at = m->unit[i] & ~VALUE_BIT;
    if (!(m->unit[i] & VALUE_BIT)) continue;
    if (at > m->length || (at < m->length && ((unsigned char)m->text[at] & 0xc0) == 0x80))
      return error_set(e, STATUS_CONFIG,
                       "precompiled_charsmap: unit %zu of the trie points at no text", i);
  }
  return STATUS_OK;
}

void charsmap_done(struct charsmap *m) {
  free(m->bytes);
  *m = (struct charsmap){0};
}
