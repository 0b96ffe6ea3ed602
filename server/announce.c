/* announce: what the log says of the models. */
#include "server/announce.h"

void announce_model(struct log *log, const struct model *m) {
  log_line(log, LOG_INFO, "model %s: %s, %zu heads, %zu -> %zu, engine %s, %s, layout %s", m->name,
           m->score, m->shape.heads, m->shape.query_size, m->shape.output_size,
           layer_engine(m->layer), m->source, m->layout);
  if (model_uses_nothing(m))
    log_line(log, LOG_WARNING,
             "model %s: nothing of its source is used: projection %s and score %s have no "
             "parameters",
             m->name, m->projection, m->score);
}
