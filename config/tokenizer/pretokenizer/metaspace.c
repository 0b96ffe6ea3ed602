/* metaspace: reads the members of a Metaspace. */
#include "config/tokenizer/pretokenizer/metaspace.h"

#include <string.h>

#include "config/document/member.h"

enum status metaspace_read(struct metaspace *m, const json_t *json, struct error *e) {
  static const char *const words[] = {[METASPACE_NEVER] = "never",
                                      [METASPACE_FIRST] = "first",
                                      [METASPACE_ALWAYS] = "always",
                                      NULL};
  const struct member_text text = member_character(json, "replacement", e);
  *m = (struct metaspace){.split = member_flag_or(json, "split", true, e)};
  /* Older documents have only add_prefix_space; newer ones have both. */
  const bool any = member_flag_or(json, "add_prefix_space", true, e);
  m->prepend = any ? METASPACE_ALWAYS : METASPACE_NEVER;
  if (json_object_get(json, "prepend_scheme")) {
    m->prepend = (enum metaspace_prepend)member_word(json, "prepend_scheme", words, e);
    if (!any && m->prepend != METASPACE_NEVER)
      error_set(e, STATUS_CONFIG, "add_prefix_space: is false, but prepend_scheme is not never");
  }
  if (e->status) return e->status;
  m->character = unicode_read(text.bytes, &m->length);
  memcpy(m->replacement, text.bytes, m->length);
  return STATUS_OK;
}
