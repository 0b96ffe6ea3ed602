/* progress: how far the loading of models is, and who is told. */
#include "config/model/progress.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "config/document/text.h"
#include "core/base/clock.h"

/* Bytes of numbers: what takes less is loaded before anyone could read that it will be. */
enum { ABLATION_TELLING = 64 * 1024 * 1024 };

enum { QUIET, TELLING, SILENCED };

static void tell(struct progress *p, struct progress_news *news) {
  int quiet = QUIET;
  if (!p->listener.tell || !atomic_compare_exchange_strong(&p->state, &quiet, TELLING)) return;
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

/* Writes "6.4" and returns "GB", or likewise of "MB". `of`: what decides between them. */
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

/* The file of the definition at this place of the list, if an earlier one has not named it. */
static const char *new_file(const json_t *models, const char *name) {
  const char *other;
  json_t *definition;
  const char *file = file_of(json_object_get(models, name));
  json_object_foreach((json_t *)models, other, definition) {
    if (!file || strcmp(other, name) == 0) break;
    const char *before = file_of(definition);
    if (before && strcmp(before, file) == 0) return NULL;
  }
  return file;
}

/* How many files the models come from; *first is one of them. */
static size_t count_files(const json_t *models, const char **first) {
  size_t files = 0;
  const char *name;
  json_t *definition;
  json_object_foreach((json_t *)models, name, definition) {
    const char *file = new_file(models, name);
    if (file && files++ == 0) *first = file;
  }
  return files;
}

static void write_begin(const struct progress *p, size_t files, const char *first,
                        struct progress_news *news) {
  char size[32], from[160];
  const char *unit = write_bytes(p->bytes, p->bytes, size);
  snprintf(from, sizeof from, "%.150s", text_tail(text_file_name(first)));
  if (files > 1) snprintf(from, sizeof from, "%zu files", files);
  snprintf(news->text, sizeof news->text, "loading %zu model%s from %s (%s %s as float32)",
           p->models, p->models == 1 ? "" : "s", from, size, unit);
}

void progress_begin(struct progress *p, const json_t *definitions, uint64_t bytes) {
  struct progress_news news = {.event = PROGRESS_BEGIN};
  const char *first = NULL;
  if (!p) return;
  p->begun = clock_now();
  p->models = json_object_size(definitions);
  p->loaded = 0;
  p->bytes = bytes;
  p->loaded_bytes = 0;
  p->reported = false;
  p->next = p->begun + p->listener.every_ms * (uint64_t)CLOCK_MS;
  if (!p->listener.tell || bytes < ABLATION_TELLING) return;
  const size_t files = count_files(definitions, &first);
  if (files == 0) return;
  write_begin(p, files, first, &news);
  tell(p, &news);
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
  tell(p, &news);
}

void progress_end(struct progress *p) {
  struct progress_news news = {.event = PROGRESS_END, .share = 1};
  if (p && p->reported) tell(p, &news);
}
