/* metaspace: blanks that are written as another character: the members of a "Metaspace", which is a
 * pre-tokenizer or a decoder. */
#ifndef CONFIG_METASPACE_H
#define CONFIG_METASPACE_H

#include <jansson.h>

#include "config/tokenizer/pattern/unicode.h"
#include "core/base/status.h"

#define METASPACE_MEMBERS "replacement add_prefix_space prepend_scheme split str_rep "

/* Which pieces the replacement is prepended to: none, the first of the text, all. */
enum metaspace_prepend { METASPACE_NEVER, METASPACE_FIRST, METASPACE_ALWAYS };

struct metaspace {
  char replacement[UNICODE_BYTES_MAX]; /* of a blank: one character */
  size_t length;                       /* bytes of the replacement */
  uint32_t character;                  /* code point of the replacement */
  enum metaspace_prepend prepend;
  bool split; /* whether each replacement begins a piece */
};

/* STATUS_CONFIG with a detail that begins with the member. */
enum status metaspace_read(struct metaspace *m, const json_t *json, struct error *e);

#endif
