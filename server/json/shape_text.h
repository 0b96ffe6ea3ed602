/* shape_text: the shape of an array in base64, a JSON list of dimensions, chunk by chunk. Private
 * to tensor_base64. */
#ifndef SERVER_SHAPE_TEXT_H
#define SERVER_SHAPE_TEXT_H

#include "server/json/tensor_bytes.h"
#include "server/number/number_scan.h"

enum shape_state { SHAPE_FIRST, SHAPE_NEXT, SHAPE_WITHIN, SHAPE_BEHIND };

struct shape_text {
  struct tensor_form *form; /* gets rank and dimensions; beyond TENSOR_DEPTH_MAX they are counted */
  const char *pointer;      /* of the list */
  enum shape_state state;   /* a dimension or the end, a dimension, within one, behind one */
  struct number_scan dim;
};

/* Behind the opening bracket. The form has no dimensions yet. */
void shape_text_init(struct shape_text *t, struct tensor_form *form, const char *pointer);

/* As base64_text_feed. */
const char *shape_text_feed(struct shape_text *t, const char *text, size_t length, size_t offset,
                            bool *complete, struct error *e);

#endif
