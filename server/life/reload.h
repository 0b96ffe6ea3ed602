/* reload: reads the configuration, its checkpoints and the file of API keys again while the server
 * serves (SIGHUP).
 *
 * The new models are loaded and tried while the old ones serve, then put into service all at once,
 * with the API keys; requests under way keep the models that they began with. A reload that fails
 * changes nothing. Only `models`, `default_model` and the content of the key file take effect; the
 * log names other settings that have changed. Loading has a thread of its own; main does the rest
 * and never waits. */
#ifndef SERVER_RELOAD_H
#define SERVER_RELOAD_H

#include "server/life/background.h"
#include "server/request/server.h"

/* The command line and environment of the program. */
struct reload_invocation {
  char **words;       /* the settings */
  char **environment; /* environ */
};

struct reload {
  struct server *server;
  const struct reload_invocation *called;
  struct config config; /* of the models in service, once a reload has succeeded */
  bool due;             /* a reload was asked for and has not begun */
  bool waits;           /* it has to wait, and the log has a line about it */
  bool loading;         /* a reload is under way */
  uint64_t begun;
  struct background background;
  struct progress progress;

  /* Members of the thread that loads, as long as it does. */
  struct config read;
  struct models_set fresh; /* empty if there is an error */
  struct error error;
};

void reload_init(struct reload *r, struct server *s, const struct reload_invocation *called);

/* Also frees models that are loaded and not in service. Nothing may be loading: see reload_idle. */
void reload_free(struct reload *r);

/* Asks for a reload; while one is under way, for another one after it. */
void reload_ask(struct reload *r);

/* Finishes a reload whose models are loaded, and frees sets of models that no request holds any
 * more. Then begins a reload that was asked for, unless too many older sets are still held. True:
 * call again soon, even if nothing has called signals_wake. */
bool reload_advance(struct reload *r);

/* Whether a reload was asked for or is under way. */
bool reload_pending(const struct reload *r);

/* Whether nothing is loading. The service must live as long as something is. */
bool reload_idle(const struct reload *r);

/* Detaches the thread that loads, if there is one, until the process ends; it logs no more. */
void reload_detach(struct reload *r);

#endif
