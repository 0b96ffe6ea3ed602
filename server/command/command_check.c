/* command_check: `attend check`. */
#include "server/command/command_check.h"

#include <stdio.h>

#include "config/model/registry.h"
#include "core/kernel/gemm.h"
#include "server/command/command.h"
#include "server/life/announce.h"

int command_check(const struct config *c) {
  struct error e = {0};
  gemm_blas_init();
  struct api_keys *keys;
  if (api_keys_load(c, &keys, &e)) return command_fail(&e);
  const size_t count = keys ? api_keys_count(keys) : 0;
  if (keys) fprintf(stderr, "api_key_file: %zu key%s\n", count, count == 1 ? "" : "s");
  if (keys && api_keys_exposed(keys)) fprintf(stderr, "warning: %s\n", announce_exposed);
  api_keys_free(keys);
  struct registry *r = registry_load(c, &e);
  if (!r) return command_fail(&e);
  const bool printed = config_print(c, stdout);
  for (size_t i = 0; i < registry_count(r); i++) {
    const struct model *m = registry_at(r, i);
    char text[ANNOUNCE_SIZE];
    announce_text(m, text);
    fprintf(stderr, "%s%s\n", text, model_uses_nothing(m) ? "; nothing of its source is used" : "");
    for (size_t n = 0; n < m->notes.count; n++)
      fprintf(stderr, "warning: model %s: %s\n", m->name, m->notes.text[n]);
  }
  if (c->built_in) fprintf(stderr, "warning: %s\n", announce_demonstration);
  registry_free(r);
  return command_written(printed);
}
