/* progress: counts what is loaded, and writes the lines of reports. */
#include "config/model/progress.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "config/document/text.h"
#include "core/base/clock.h"

/* Bytes of numbers; fewer are loaded before anyone could read the report of the beginning. */
enum { REPORTED_FROM = 64 * 1024 * 1024 };

enum { QUIET, REPORTING, SILENCED }; /* states */

/* Calls the listener, unless another thread does so at this moment. */
static void report(struct progress *p, struct progress_news *news) {
  int quiet = QUIET;
  if (!p->listener.tell || !atomic_compare_exchange_strong(&p->state, &quiet, REPORTING)) return;
  p->listener.tell(p->listener.of, news);
  atomic_store(&p->state, QUIET);
}

void progress_silence(struct progress *p) {
  if (!p) return;
  for (int quiet = QUIET; !atomic_compare_exchange_weak(&p->state, &quiet, SILENCED); quiet = QUIET)
    if (quiet == SILENCED)
      return;
    else
      sched_yield();
}

/* Writes "6.4" and returns "GB", or "MB" if `of` is small. */
static const char *write_bytes(uint64_t bytes, uint64_t of, char out[32]) {
  const bool large = of >= 1000000000;
  snprintf(out, 32, large ? "%.1f" : "%.0f", (double)bytes / (large ? 1e9 : 1e6));
  return large ? "GB" : "MB";
}

/* The file or folder that a definition names, or NULL. */
static const char *file_of(const json_t *definition) {
  const json_t *whole = json_object_get(definition, "transformer");
  return json_string_value(whole ? whole : json_object_get(definition, "checkpoint"));
}

void progress_begin(struct progress *p, const json_t *definitions, uint64_t bytes) {
  struct progress_news news = {.event = PROGRESS_BEGIN};
  const char *name, *other, *first = NULL;
  json_t *definition, *before;
  size_t files = 0; /* that the models come from, each once */
  if (!p) return;
  p->begun = clock_now();
  p->models = json_object_size(definitions);
  p->loaded = 0;
  p->bytes = bytes;
  p->loaded_bytes = 0;
  p->reported = false;
  p->next = p->begun + p->listener.every_ms * (uint64_t)CLOCK_MS;
  if (!p->listener.tell || bytes < REPORTED_FROM) return;
  json_object_foreach((json_t *)definitions, name, definition) {
    const char *file = file_of(definition);
    bool known = !file;
    json_object_foreach((json_t *)definitions, other, before) {
      if (strcmp(other, name) == 0) break;
      const char *one = file_of(before);
      known = known || (one && strcmp(one, file) == 0);
    }
    if (!known && files++ == 0) first = file;
  }
  if (files == 0) return;
  char size[32], from[160];
  const char *unit = write_bytes(bytes, bytes, size);
  snprintf(from, sizeof from, "%.150s", text_tail(text_file_name(first)));
  if (files > 1) snprintf(from, sizeof from, "%zu files", files);
  snprintf(news.text, sizeof news.text, "loading %zu model%s from %s (%s %s as float32)", p->models,
           p->models == 1 ? "" : "s", from, size, unit);
  report(p, &news);
}

void progress_loaded(struct progress *p, uint64_t bytes) {
  if (!p) return;
  atomic_fetch_add(&p->loaded_bytes, bytes);
  atomic_fetch_add(&p->loaded, 1);
}

void progress_tick(struct progress *p) {
  if (!p || !p->listener.tell) return;
  const uint64_t now = clock_now(), every = p->listener.every_ms * (uint64_t)CLOCK_MS;
  uint64_t next = p->next;
  if (now < next || !atomic_compare_exchange_strong(&p->next, &next, now + every)) return;
  struct progress_news news = {.event = PROGRESS_REPORT};
  const uint64_t bytes = p->bytes, loaded = p->loaded_bytes;
  char done[32], all[32];
  write_bytes(loaded, bytes, done);
  const char *unit = write_bytes(bytes, bytes, all);
  news.share = bytes > 0 ? (double)loaded / (double)bytes : 0;
  snprintf(news.text, sizeof news.text, "loaded %zu of %zu model%s, %s of %s %s, %.0f s", p->loaded,
           p->models, p->models == 1 ? "" : "s", done, all, unit,
           (double)(now - p->begun) / CLOCK_MS / 1e3);
  p->reported = true;
  report(p, &news);
}

void progress_end(struct progress *p) {
  struct progress_news news = {.event = PROGRESS_END, .share = 1};
  if (p && p->reported) report(p, &news);
}
