/* reload: reads the configuration and its checkpoints again while the server serves. */
#include "server/life/reload.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/clock.h"
#include "core/base/size.h"
#include "server/life/announce.h"

enum { NAMES_SIZE = 100 }; /* bytes of a list of models in the log */

void reload_init(struct reload *r, struct server *s, const struct reload_invocation *called) {
  memset(r, 0, sizeof *r);
  r->server = s;
  r->called = called;
}

void reload_free(struct reload *r) {
  background_join(&r->background);
  models_set_free(&r->fresh);
  config_free(&r->read);
  config_free(&r->config);
}

void reload_ask(struct reload *r) { r->due = true; }

bool reload_pending(const struct reload *r) { return r->due || r->loading; }

bool reload_idle(const struct reload *r) { return background_idle(&r->background); }

void reload_detach(struct reload *r) {
  progress_silence(&r->progress);
  background_detach(&r->background);
}

/* --- the changes, in the log --- */

struct reload_names {
  size_t count, used;
  char text[NAMES_SIZE];
};

static void add_name(struct reload_names *n, const char *name) {
  const char *between = n->count++ ? ", " : "";
  if (n->used >= sizeof n->text) return; /* the list is cut already */
  const size_t room = sizeof n->text - n->used, need = strlen(between) + strlen(name);
  if (need + sizeof ", ..." > room) {
    snprintf(n->text + n->used, room, "%s...", between);
    n->used = sizeof n->text;
    return;
  }
  n->used += (size_t)snprintf(n->text + n->used, room, "%s%s", between, name);
}

/* Writes "; WHAT: NAME, NAME", or nothing for an empty list. Returns the length. */
static size_t write_names(const struct reload_names *n, const char *what, char *out, size_t room) {
  if (!n->count) return 0;
  const int size = snprintf(out, room, "; %s: %s", what, n->text);
  return size_min((size_t)size, room - 1);
}

struct reload_changes {
  struct reload_names begun, changed, gone, chosen;
};

/* Collects the differences between the models in service and `fresh`, which were loaded from the
 * configuration `c`, and logs each model that is new or has changed. */
static void compare_models(const struct reload *r, const struct registry *old,
                           const struct registry *fresh, const struct config *c,
                           struct reload_changes *out) {
  const struct config *old_config = r->config.models ? &r->config : r->server->config;
  for (size_t i = 0; i < registry_count(fresh); i++) {
    const struct model *m = registry_at(fresh, i), *was = registry_find(old, m->name);
    /* The numbers of heads may be config.json's. */
    if (was && strcmp(was->digest, m->digest) == 0 && was->shape.heads == m->shape.heads &&
        was->shape.kv_heads == m->shape.kv_heads && was->compute == m->compute &&
        config_same_model(old_config, c, m->name))
      continue;
    add_name(was ? &out->changed : &out->begun, m->name);
    announce_model(r->server->log, m);
  }
  for (size_t i = 0; i < registry_count(old); i++) {
    const char *name = registry_at(old, i)->name;
    if (!registry_find(fresh, name)) add_name(&out->gone, name);
  }
  const char *chosen = registry_default(fresh)->name;
  if (strcmp(registry_default(old)->name, chosen) != 0) add_name(&out->chosen, chosen);
}

static void log_changed_setting(void *of, const char *name, const char *value) {
  log_line(of, LOG_WARNING, "changing %s to '%s' requires a restart", name, value);
}

/* --- one reload --- */

/* Runs on the background thread. */
static void load_fresh_models(void *of) {
  struct reload *r = of;
  struct error *e = &r->error;
  const char *path = r->server->config->file;
  struct stat about;
  /* A pipe has given its document already, and opening it again might block forever. */
  if (path && stat(path, &about) == 0 && !S_ISREG(about.st_mode))
    error_set(e, STATUS_CONFIG,
              "%.200s: is not a regular file, so it cannot be read again: restart instead", path);
  else if (config_read(&r->read, r->called->words, r->called->environment, e) == STATUS_OK)
    service_load(&r->server->service, &r->read, &r->progress, &r->fresh, e);
}

static void log_failure(struct reload *r) {
  log_line(r->server->log, LOG_ERROR,
           "reload failed, still serving the previous models and keys: %s", r->error.detail);
  metrics_reload(r->server->metrics, false);
  config_free(&r->read);
}

/* Puts the loaded models into service. There is room for one more set, as before the load, because
 * only this function takes sets out of service. */
static void put_into_service(struct reload *r) {
  struct server *s = r->server;
  struct reload_changes changes = {0}, *c = &changes;
  const size_t count = registry_count(r->fresh.registry);
  struct models_hold old = models_hold(s->service.models, 0);
  compare_models(r, old.registry, r->fresh.registry, &r->read, c);
  announce_built_in(s->log, &r->read);
  announce_api_keys(s->log, r->fresh.api_keys);
  models_release(&old);
  must(models_swap(s->service.models, r->fresh));
  r->fresh = (struct models_set){0};
  metrics_reload(s->metrics, true);
  config_differ(s->config, &r->read, log_changed_setting, s->log);
  char text[5 * NAMES_SIZE] = "";
  size_t used = write_names(&c->begun, "new", text, sizeof text);
  used += write_names(&c->changed, "changed", text + used, sizeof text - used);
  used += write_names(&c->gone, "removed", text + used, sizeof text - used);
  used += write_names(&c->chosen, "default", text + used, sizeof text - used);
  log_line(s->log, LOG_INFO, "reloaded in %.1f ms: %zu models%s",
           (double)(clock_now() - r->begun) / CLOCK_MS, count, used ? text : "; nothing changed");
  config_free(&r->config);
  r->config = r->read;
  r->read = (struct config){0};
}

bool reload_advance(struct reload *r) {
  struct models *models = r->server->service.models;
  if (r->loading && reload_idle(r)) {
    background_join(&r->background);
    r->loading = false;
    if (r->fresh.registry)
      put_into_service(r);
    else
      log_failure(r);
  }
  const size_t held = models_collect(models);
  if (r->loading || !r->due) return held > 0;
  if (held == MODELS_OLDER) {
    if (!r->waits)
      log_line(r->server->log, LOG_WARNING,
               "reload postponed: requests still use the models of %zu earlier reloads", held);
    return r->waits = true;
  }
  r->due = r->waits = false;
  r->begun = clock_now();
  r->error = (struct error){0};
  r->progress.listener = announce_progress(r->server->log);
  if (background_start(&r->background, load_fresh_models, r, true, &r->error) == STATUS_OK)
    r->loading = true;
  else
    log_failure(r);
  return held > 0;
}
