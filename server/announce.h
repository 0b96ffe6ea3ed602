/* announce: what the log says of the models. */
#ifndef SERVER_ANNOUNCE_H
#define SERVER_ANNOUNCE_H

#include "config/model.h"
#include "server/log.h"

/* One line, and a warning where there is reason. */
void announce_model(struct log *log, const struct model *m);

#endif
