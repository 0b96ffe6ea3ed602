/* metaspace: how blanks are written as other characters: what the members of a "Metaspace" say, of
 * a pre-tokenizer as of a decoder. */
#ifndef CONFIG_METASPACE_H
#define CONFIG_METASPACE_H

#include <jansson.h>

#include "config/tokenizer/pattern/unicode.h"
#include "core/base/status.h"

#define METASPACE_MEMBERS "replacement add_prefix_space prepend_scheme split str_rep "

enum metaspace_prepend { METASPACE_NEVER, METASPACE_FIRST, METASPACE_ALWAYS };

struct metaspace {
  char replacement[UNICODE_BYTES_MAX];
  size_t length;                  /* of it, in bytes */
  uint32_t character;             /* that it is */
  enum metaspace_prepend prepend; /* which pieces have one in front */
  bool split;                     /* pieces begin with one */
};

/* Where it is refused, STATUS_CONFIG with a detail that begins with the member. */
enum status metaspace_read(struct metaspace *b, const json_t *json, struct error *e);

#endif
