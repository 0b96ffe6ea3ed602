/* blanks: reads the members of a Metaspace. */
#include "config/tokenizer/pretokenizer/blanks.h"

#include <string.h>

#include "config/document/member.h"

/* Older documents say only whether anything is put in front; newer ones say both. */
static enum blanks_prepend read_prepend(const json_t *json, struct error *e) {
  static const char *const words[] = {
      [BLANKS_NEVER] = "never", [BLANKS_FIRST] = "first", [BLANKS_ALWAYS] = "always", NULL};
  const bool any = member_flag_or(json, "add_prefix_space", true, e);
  if (!json_object_get(json, "prepend_scheme")) return any ? BLANKS_ALWAYS : BLANKS_NEVER;
  const size_t which = member_word(json, "prepend_scheme", words, e);
  if (!any && which != BLANKS_NEVER)
    error_set(e, STATUS_CONFIG, "add_prefix_space: is false, but prepend_scheme is not never");
  return (enum blanks_prepend)which;
}

enum status blanks_read(struct blanks *b, const json_t *json, struct error *e) {
  const struct member_text text = member_character(json, "replacement", e);
  *b = (struct blanks){.split = member_flag_or(json, "split", true, e),
                       .prepend = read_prepend(json, e)};
  if (e->status) return e->status;
  b->character = unicode_read(text.bytes, &b->length);
  memcpy(b->replacement, text.bytes, b->length);
  return STATUS_OK;
}
