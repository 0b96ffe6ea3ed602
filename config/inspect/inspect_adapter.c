/* inspect_adapter: opens an adapter, and prints it. */
#include "config/inspect/inspect_adapter.h"

#include <jansson.h>
#include <stdlib.h>

#include "config/adapter/adapter.h"
#include "config/document/text.h"
#include "core/base/size.h"

enum status inspect_adapter_print(const struct inspect_ask *ask, FILE *out, struct error *e) {
  struct error why = {0};
  struct adapter *a = adapter_open(ask->path, &why);
  if (!a) {
    text_plain(&why);
    if (why.status != STATUS_CONFIG) return error_set(e, why.status, "%s", why.detail);
    fprintf(out, "note: it cannot be merged into a model: %s\n", why.detail);
    return STATUS_OK;
  }
  size_t least = SIZE_MAX, most = 0, numbers = 0;
  for (size_t i = 0; i < a->pairs; i++) {
    least = size_min(least, a->pair[i].rank);
    most = size_max(most, a->pair[i].rank);
    numbers += a->pair[i].a->count + a->pair[i].b->count;
  }
  const char *base = *a->base ? a->base : "MODEL";
  char shown[TEXT_SHOWN];
  fprintf(out, "adapter: LoRA for %s, %zu module%s, rank %zu", text_shown(base, shown), a->pairs,
          a->pairs == 1 ? "" : "s", least);
  if (most > least) fprintf(out, " to %zu", most);
  fprintf(out, ", %zu numbers\n", numbers);
  json_t *definition = json_pack("{s:s, s:s}", "transformer", base, "adapter", ask->named);
  char *text = definition ? json_dumps(definition, JSON_ENSURE_ASCII) : NULL;
  if (text)
    fprintf(out, "  its definition, with the folder of that model: %s\n", text);
  else
    error_no_memory(e);
  free(text);
  json_decref(definition);
  adapter_free(a);
  return e->status;
}
