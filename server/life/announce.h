/* announce: the lines about models and API keys, in the log and from `attend check`. */
#ifndef SERVER_ANNOUNCE_H
#define SERVER_ANNOUNCE_H

#include "config/build/model.h"
#include "config/model/progress.h"
#include "config/settings/api_keys.h"
#include "config/settings/config.h"
#include "server/watch/log.h"

/* Passes a description of the model to `report`, in one line: "model NAME: heads=... size=...
 * sha256=...". It omits defaults, and the end of the digest. A second line names values that are
 * from config.json. */
void announce_lines(const struct model *m, void (*report)(void *of, const char *line), void *of);

/* Logs these lines, and a warning for every note. */
void announce_model(struct log *log, const struct model *m);

/* A listener that logs the progress of a load of models. */
struct progress_listener announce_progress(struct log *log);

/* Logs a warning if the models are the built-in ones. */
void announce_built_in(struct log *log, const struct config *c);
extern const char announce_demonstration[]; /* the text of that warning */

/* Logs a warning if other machines can reach the server and need no key. `address` is the socket's
 * own. */
void announce_reach(struct log *log, const char *address, const struct api_keys *k);

/* Logs the number of keys, and a warning if every user may read their file. NULL: nothing. */
void announce_api_keys(struct log *log, const struct api_keys *k);
extern const char announce_exposed[]; /* the text of that warning */

#endif
