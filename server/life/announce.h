/* announce: what the log and `attend check` say of the models and the keys. */
#ifndef SERVER_ANNOUNCE_H
#define SERVER_ANNOUNCE_H

#include "config/model/model.h"
#include "config/settings/api_keys.h"
#include "server/watch/log.h"

enum { ANNOUNCE_SIZE = 1024 };

/* "model NAME: score=... sha256=...", one line of all that a definition or a layout decides. */
void announce_text(const struct model *m, char out[ANNOUNCE_SIZE]);

/* That line, and a warning for every note. */
void announce_model(struct log *log, const struct model *m);

/* How many keys there are, and a warning if anybody may read them. NULL: nothing to say. */
void announce_api_keys(struct log *log, const struct api_keys *k);
extern const char announce_exposed[]; /* the words of that warning */

#endif
