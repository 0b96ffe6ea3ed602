/* metaspace: reads the members of a Metaspace. */
#include "config/tokenizer/pretokenizer/metaspace.h"

#include <string.h>

#include "config/document/member.h"

/* Older documents say only whether anything is put in front; newer ones say both. */
static enum metaspace_prepend read_prepend(const json_t *json, struct error *e) {
  static const char *const words[] = {[METASPACE_NEVER] = "never",
                                      [METASPACE_FIRST] = "first",
                                      [METASPACE_ALWAYS] = "always",
                                      NULL};
  const bool any = member_flag_or(json, "add_prefix_space", true, e);
  if (!json_object_get(json, "prepend_scheme")) return any ? METASPACE_ALWAYS : METASPACE_NEVER;
  const size_t which = member_word(json, "prepend_scheme", words, e);
  if (!any && which != METASPACE_NEVER)
    error_set(e, STATUS_CONFIG, "add_prefix_space: is false, but prepend_scheme is not never");
  return (enum metaspace_prepend)which;
}

enum status metaspace_read(struct metaspace *b, const json_t *json, struct error *e) {
  const struct member_text text = member_character(json, "replacement", e);
  *b = (struct metaspace){.split = member_flag_or(json, "split", true, e),
                          .prepend = read_prepend(json, e)};
  if (e->status) return e->status;
  b->character = unicode_read(text.bytes, &b->length);
  memcpy(b->replacement, text.bytes, b->length);
  return STATUS_OK;
}
