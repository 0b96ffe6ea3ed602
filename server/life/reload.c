/* reload: reads the configuration and its checkpoints again while the server serves. */
#include "server/life/reload.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/run/clock.h"
#include "core/run/size.h"
#include "server/life/announce.h"

enum { NAMES_SIZE = 100 }; /* of a list in the log */

void reload_init(struct reload *r, struct server *s, const struct invocation *called) {
  *r = (struct reload){.server = s, .called = called};
}

void reload_free(struct reload *r) {
  aside_join(&r->aside);
  models_set_free(&r->fresh);
  config_free(&r->read);
  config_free(&r->config);
}

void reload_ask(struct reload *r) { r->due = true; }

bool reload_pending(const struct reload *r) { return r->due || r->loading; }

bool reload_rests(const struct reload *r) { return aside_rests(&r->aside); }

void reload_leave(struct reload *r) { aside_leave(&r->aside); }

/* What the models in service were made of. */
static const struct config *config_in_service(const struct reload *r) {
  return r->config.models ? &r->config : r->server->config;
}

/* --- what has become different --- */

struct names {
  size_t count, used;
  char text[NAMES_SIZE];
};

static void names_add(struct names *n, const char *name) {
  const char *between = n->count++ ? ", " : "";
  if (n->used >= sizeof n->text) return; /* it was cut already */
  const size_t room = sizeof n->text - n->used, need = strlen(between) + strlen(name);
  if (need + sizeof ", ..." > room) {
    snprintf(n->text + n->used, room, "%s...", between);
    n->used = sizeof n->text;
    return;
  }
  n->used += (size_t)snprintf(n->text + n->used, room, "%s%s", between, name);
}

static size_t names_say(const struct names *n, const char *what, char *out, size_t room) {
  if (!n->count) return 0;
  const int size = snprintf(out, room, "; %s: %s", what, n->text);
  return size_min((size_t)size, room - 1);
}

struct changes {
  struct names begun, changed, gone, chosen;
};

/* `fresh` has been read from the configuration `c`, and is not in service yet. */
static void compare(const struct reload *r, const struct registry *old,
                    const struct registry *fresh, const struct config *c, struct changes *out) {
  for (size_t i = 0; i < registry_count(fresh); i++) {
    const struct model *m = registry_at(fresh, i), *before = registry_find(old, m->name);
    if (before && strcmp(before->sha256, m->sha256) == 0 &&
        config_same_model(config_in_service(r), c, m->name))
      continue;
    names_add(before ? &out->changed : &out->begun, m->name);
    announce_model(r->server->log, m);
  }
  for (size_t i = 0; i < registry_count(old); i++) {
    const char *name = registry_at(old, i)->name;
    if (!registry_find(fresh, name)) names_add(&out->gone, name);
  }
  const char *chosen = registry_default(fresh)->name;
  if (strcmp(registry_default(old)->name, chosen) != 0) names_add(&out->chosen, chosen);
}

static void tell_success(struct log *log, size_t models, const struct changes *c, uint64_t ns) {
  char text[5 * NAMES_SIZE] = "";
  size_t used = names_say(&c->begun, "new", text, sizeof text);
  used += names_say(&c->changed, "changed", text + used, sizeof text - used);
  used += names_say(&c->gone, "gone", text + used, sizeof text - used);
  used += names_say(&c->chosen, "default", text + used, sizeof text - used);
  log_line(log, LOG_INFO, "reloaded in %.1f ms: %zu models%s", (double)ns / CLOCK_MS, models,
           used ? text : "; all as they were");
}

static void tell_setting(void *of, const char *name, const char *value) {
  log_line(of, LOG_WARNING, "%s: %s takes a restart", name, value);
}

/* --- one reload --- */

/* A pipe gave its document once; opening it again might wait for ever. */
static enum status check_file(const struct reload *r, struct error *e) {
  const char *path = r->server->config->file;
  struct stat about;
  if (!path || stat(path, &about) != 0 || S_ISREG(about.st_mode)) return STATUS_OK;
  return error_set(e, STATUS_CONFIG,
                   "%.200s: is no regular file and cannot be read again; that takes a restart",
                   path);
}

/* On the thread of its own. */
static void load(void *of) {
  struct reload *r = of;
  struct error *e = &r->error;
  if (check_file(r, e) == STATUS_OK &&
      config_read(&r->read, r->called->words, r->called->environment, e) == STATUS_OK)
    service_load(&r->server->service, &r->read, &r->fresh, e);
}

static void fail(struct reload *r) {
  log_line(r->server->log, LOG_ERROR, "reload failed, models and keys stay as they are: %s",
           r->error.detail);
  metrics_reload(r->server->metrics, false);
  config_free(&r->read);
}

/* There is room for one more set. */
static void begin(struct reload *r) {
  r->begun = clock_now();
  r->error = (struct error){0};
  if (aside_start(&r->aside, load, r, true, &r->error) == STATUS_OK)
    r->loading = true;
  else
    fail(r);
}

/* There is still room: sets get out of service here only. */
static void put_into_service(struct reload *r) {
  struct server *s = r->server;
  struct changes changes = {0};
  const size_t count = registry_count(r->fresh.registry);
  struct models_hold old = models_hold(s->service.models, 0);
  compare(r, old.registry, r->fresh.registry, &r->read, &changes);
  announce_api_keys(s->log, r->fresh.api_keys);
  models_release(&old);
  must(models_swap(s->service.models, r->fresh));
  r->fresh = (struct models_set){0};
  metrics_reload(s->metrics, true);
  config_differ(s->config, &r->read, tell_setting, s->log);
  tell_success(s->log, count, &changes, clock_now() - r->begun);
  config_free(&r->config);
  r->config = r->read;
  r->read = (struct config){0};
}

static void finish(struct reload *r) {
  aside_join(&r->aside);
  r->loading = false;
  if (r->fresh.registry)
    put_into_service(r);
  else
    fail(r);
}

bool reload_step(struct reload *r) {
  struct models *models = r->server->service.models;
  if (r->loading && reload_rests(r)) finish(r);
  const size_t held = models_collect(models);
  if (r->loading || !r->due) return held > 0;
  if (held == MODELS_OLDER) {
    if (!r->waits)
      log_line(r->server->log, LOG_WARNING,
               "the reload waits: requests under way still use the models of %zu reloads", held);
    return r->waits = true;
  }
  r->due = r->waits = false;
  begin(r);
  return held > 0;
}
