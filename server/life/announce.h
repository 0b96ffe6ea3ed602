/* announce: the lines about models and API keys, in the log and from `attend check`. */
#ifndef SERVER_ANNOUNCE_H
#define SERVER_ANNOUNCE_H

#include "config/build/model.h"
#include "config/model/progress.h"
#include "config/settings/api_keys.h"
#include "config/settings/config.h"
#include "server/watch/log.h"

/* Passes `tell` what the model is, in one line: "model NAME: heads=... size=... sha256=...".
 * Defaults are left out, and the rest of the digest. A second line says what config.json decided.
 */
void announce_lines(const struct model *m, void (*tell)(void *of, const char *line), void *of);

/* Logs these lines, and a warning for every note. */
void announce_model(struct log *log, const struct model *m);

/* A listener that logs how far a load of models is. */
struct progress_listener announce_progress(struct log *log);

/* Logs a warning if the models are the built-in ones. */
void announce_built_in(struct log *log, const struct config *c);
extern const char announce_demonstration[]; /* the text of that warning */

/* Logs a warning if requests from other machines may come, and need no key. `address` is the
 * socket's own. */
void announce_reach(struct log *log, const char *address, const struct api_keys *k);

/* Logs how many keys there are, and a warning if every user may read their file. NULL: nothing. */
void announce_api_keys(struct log *log, const struct api_keys *k);
extern const char announce_exposed[]; /* the text of that warning */

#endif
