/* write_json: JSON made here as text. */
#include "server/describe/write_json.h"

#include <stdlib.h>

#include "server/text/real.h"

/* The text is measured first and then written, because json_dumps omits a key for which it has no
 * memory. */
char *write_json(json_t *value, size_t *length) {
  *length = value ? json_dumpb(value, NULL, 0, JSON_COMPACT) : 0;
  char *text = *length ? calloc(*length + 1, 1) : NULL;
  if (text && json_dumpb(value, text, *length, JSON_COMPACT) != *length) {
    free(text);
    text = NULL;
  }
  json_decref(value);
  if (text) *length = real_shorten(text);
  return text;
}
