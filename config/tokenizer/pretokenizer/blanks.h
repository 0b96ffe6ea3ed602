/* blanks: how blanks are written as other characters: what the members of a "Metaspace" say, of a
 * pre-tokenizer as of a decoder. */
#ifndef CONFIG_BLANKS_H
#define CONFIG_BLANKS_H

#include <jansson.h>

#include "config/tokenizer/pattern/unicode.h"
#include "core/base/status.h"

#define BLANKS_MEMBERS "replacement add_prefix_space prepend_scheme split str_rep "

enum blanks_prepend { BLANKS_NEVER, BLANKS_FIRST, BLANKS_ALWAYS };

struct blanks {
  char replacement[UNICODE_BYTES_MAX];
  size_t length;               /* of it, in bytes */
  uint32_t character;          /* that it is */
  enum blanks_prepend prepend; /* which pieces have one in front */
  bool split;                  /* pieces begin with one */
};

/* Where it is refused, STATUS_CONFIG with a detail that begins with the member. */
enum status blanks_read(struct blanks *b, const json_t *json, struct error *e);

#endif
