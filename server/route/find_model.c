/* find_model: the model of a request, which must support its route. */
#include "server/route/find_model.h"

#include <stdio.h>

enum { NAMES_SHOWN = 200 };

/* Lists the models that support the route, as many as fit; all support ROUTE_NONE. */
static void list_names(const struct registry *all, enum route route, char names[NAMES_SHOWN]) {
  size_t used = 0;
  names[0] = 0;
  for (size_t i = 0; i < registry_count(all) && used < NAMES_SHOWN; i++)
    if (route_serves(route, registry_at(all, i)))
      used += (size_t)snprintf(names + used, NAMES_SHOWN - used, "%s%s", used ? ", " : "",
                               registry_at(all, i)->name);
}

static void refuse_name(const struct registry *all, enum route route, struct error *e) {
  char names[NAMES_SHOWN];
  list_names(all, route, names);
  error_set(e, STATUS_UNKNOWN_MODEL, "no model has this name. Available: %s", names);
}

/* --- in the path --- */

enum status find_model_refuse(enum route route, const struct model *m, struct error *e) {
  char list[ROUTE_LIST_SIZE];
  route_list(m, list, sizeof list);
  if (route_exists(route) && !route_has_model(route))
    return error_set(e, STATUS_NOT_FOUND,
                     "the default model, %s, does not support this path. Available: POST %s, and "
                     "GET /v1/models/{model}",
                     m->name, list);
  return error_set(e, route_refusal(route, m),
                   "the model %s (%s%s) does not support this path%s. Available: POST %s, and GET "
                   "/v1/models/{model}",
                   m->name, model_kind_name(m->kind), route_missing(route, m),
                   route_remedy(route, m), list);
}

const struct model *find_model(enum route route, const char *name, const struct registry *all,
                               struct error *e) {
  const struct model *m = name ? registry_find(all, name) : registry_default(all);
  if (!m)
    refuse_name(all, ROUTE_NONE, e);
  else if (!route_serves(route, m))
    find_model_refuse(route, m, e);
  return e->status ? NULL : m;
}

const struct model *find_model_of_texts(const struct registry *all) {
  const struct model *said = registry_chosen(all);
  if (said && said->whole) return said;
  for (size_t i = 0; i < registry_count(all); i++)
    if (registry_at(all, i)->whole) return registry_at(all, i);
  return NULL;
}

/* --- in the body --- */

/* default_model if it supports the route, else the only model that does. */
static const struct model *find_only(enum route route, const struct registry *all,
                                     struct error *e) {
  const struct model *only = NULL;
  char names[NAMES_SHOWN];
  size_t count = 0;
  const struct model *usual = registry_chosen(all);
  if (usual && route_serves(route, usual)) return usual;
  for (size_t i = 0; i < registry_count(all); i++) {
    const struct model *m = registry_at(all, i);
    if (m->alias || !route_serves(route, m)) continue;
    only = m;
    count++;
  }
  if (count == 1) return only;
  list_names(all, route, names);
  if (count == 0)
    error_at(e, "/model", "no loaded model supports %s", route_template(route));
  else
    error_at(e, "/model", "the field \"model\" is missing. Available: %s", names);
  return NULL;
}

const struct model *find_model_of_body(enum route route, const char *name,
                                       const struct registry *all, struct error *e) {
  if (!name) return find_only(route, all, e);
  const struct model *m = registry_find(all, name);
  if (!m) {
    refuse_name(all, route, e);
    snprintf(e->pointer, sizeof e->pointer, "/model");
  } else if (!route_serves(route, m)) {
    error_at(e, "/model", "the model %s (%s%s) does not support %s%s", m->name,
             model_kind_name(m->kind), route_missing(route, m), route_template(route),
             route_remedy(route, m));
  }
  return e->status ? NULL : m;
}
