/* reload: reads the configuration, its checkpoints and the file of keys again while the server
 * serves (SIGHUP).
 *
 * The new models are loaded and tried beside the old ones, then put into service whole, with the
 * keys; requests that are under way finish with what they began with. What fails leaves everything
 * as it is. Only `models`, `default_model` and what the file of keys says take effect; the log
 * tells what else has changed. Loading has a thread of its own; all else is done by main, which
 * waits for nothing. */
#ifndef SERVER_RELOAD_H
#define SERVER_RELOAD_H

#include "server/http/server.h"
#include "server/life/aside.h"

/* How the program was called: where settings come from. */
struct invocation {
  char **argv;        /* all of it */
  char **words;       /* the settings in it */
  char **environment; /* environ */
};

struct reload {
  struct server *server;
  const struct invocation *called;
  struct config config; /* what the models in service were made of, from the first reload on */
  bool due;             /* one is asked for */
  bool waits;           /* and the log says that it has to wait */
  bool loading;         /* one is on its way */
  uint64_t begun;
  struct aside aside;

  /* The thread's that loads, while it does. */
  struct config read;
  struct models_set fresh; /* empty: there is an error */
  struct error error;
};

void reload_init(struct reload *r, struct server *s, const struct invocation *called);

/* What was loaded and is not in service goes, too. Nothing loads: see reload_rests. */
void reload_free(struct reload *r);

/* Asks for a reload; what asks while one is on its way has another one made. */
void reload_ask(struct reload *r);

/* Ends a reload whose models are loaded; frees sets of models that nobody holds any more; then
 * begins to load if that was asked for, unless too many older sets are still held. True if there is
 * reason to come again soon, even if nothing has called signals_wake. */
bool reload_step(struct reload *r);

/* Is one asked for or on its way? */
bool reload_pending(const struct reload *r);

/* Does nothing load? While something does, the service must stay. */
bool reload_rests(const struct reload *r);

/* What loads is left to the end of the process. */
void reload_leave(struct reload *r);

#endif
