/* description_whole: the description of a model that is no single layer. Private to description. */
#ifndef SERVER_DESCRIPTION_WHOLE_H
#define SERVER_DESCRIPTION_WHOLE_H

#include "config/build/model.h"

struct json_t;

/* A new object; and a new list of the model's pieces: layers, embeddings, heads. NULL without
 * memory. */
struct json_t *description_whole(const struct model *m);
struct json_t *description_pieces(const struct whole *w);

#endif
