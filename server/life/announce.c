/* announce: the lines about models and API keys. */
#include "server/life/announce.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config/build/whole.h"
#include "config/document/text.h"
#include "config/settings/address.h"
#include "core/base/size.h"

enum { LINE_SIZE = 1024, DIGEST_SHOWN = 12 };

/* A line of words. */
struct announce_words {
  size_t used;
  char text[LINE_SIZE];
};

/* Adds a word, after a blank unless it is the first one. Bytes that are not visible become '?':
 * names of files are from outside. */
__attribute__((format(printf, 2, 3))) static void add_word(struct announce_words *w,
                                                           const char *format, ...) {
  va_list args;
  if (w->used > 0 && w->used + 1 < LINE_SIZE) w->text[w->used++] = ' ';
  char *word = w->text + w->used;
  const size_t room = LINE_SIZE - w->used;
  va_start(args, format);
  const int size = vsnprintf(word, room, format, args);
  va_end(args);
  for (size_t length; *word; word += length) {
    length = text_visible(word);
    if (length > 0) continue;
    *word = '?';
    length = 1;
  }
  w->used += size_min((size_t)size, room - 1);
}

/* Adds the sizes and options of a layer that are not the defaults. `size` is the size of all inputs
 * and of the output, if they have the same. */
static void add_layer(struct announce_words *w, const struct model *m) {
  const struct layer_shape *s = &m->shape;
  add_word(w, "heads=%zu", s->heads);
  if (s->kv_heads != s->heads) add_word(w, "kv_heads=%zu", s->kv_heads);
  if (s->key_size == s->query_size && s->value_size == s->query_size &&
      s->output_size == s->query_size) {
    add_word(w, "size=%zu", s->query_size);
  } else {
    add_word(w, "query_size=%zu", s->query_size);
    add_word(w, "key_size=%zu", s->key_size);
    add_word(w, "value_size=%zu", s->value_size);
    add_word(w, "output_size=%zu", s->output_size);
  }
  const bool scaled = strcmp(m->score, "scaled_dot") == 0;
  if (!scaled) add_word(w, "score=%s", m->score);
  if (scaled && s->scale != (float)(1 / sqrt((double)s->head_size)))
    add_word(w, "scale=%.9g", (double)s->scale);
  if (strcmp(m->weighting, "softmax") != 0) add_word(w, "weighting=%s", m->weighting);
  if (strcmp(m->projection, "linear") != 0) add_word(w, "projection=%s", m->projection);
  if (m->causal) add_word(w, "causal=true");
  if (s->rope_base > 0) add_word(w, "rope=%.15g", s->rope_base);
  if (s->relative_buckets) {
    add_word(w, "relative_bias=%zu", s->relative_buckets);
    add_word(w, "max_distance=%zu", s->relative_distance);
    add_word(w, "bidirectional=%s", s->relative_both ? "true" : "false");
  }
}

/* Adds the sizes of a model, and those of a decoder that differ from its encoder's. */
static void add_whole(struct announce_words *w, const struct model *m) {
  const struct whole *whole = m->whole;
  const struct stack_form *f = stack_form(whole_reader(whole));
  add_word(w, "kind=%s", model_kind_name(m->kind));
  add_word(w, "layers=%zu", f->layers);
  add_word(w, "heads=%zu", f->kind->self.heads);
  if (f->kind->self.kv_heads != f->kind->self.heads)
    add_word(w, "kv_heads=%zu", f->kind->self.kv_heads);
  add_word(w, "width=%zu", f->width);
  add_word(w, "feed_forward=%zu", f->forward_size);
  if (whole->vocabulary) add_word(w, "vocabulary=%zu", whole->vocabulary);
  const char *weights = stack_weights(whole_reader(whole));
  if (strcmp(weights, "float32") != 0) add_word(w, "weights=%s", weights);
  if (whole->positions) add_word(w, "positions=%zu", whole->positions);
  if (whole->classes) add_word(w, "classes=%zu", whole->classes);
  if (!whole_is_pair(whole)) return;
  const struct stack_form *e = stack_form(whole->encoder), *d = stack_form(whole->decoder);
  if (d->layers != e->layers) add_word(w, "decoder_layers=%zu", d->layers);
  if (d->kind->self.heads != e->kind->self.heads)
    add_word(w, "decoder_heads=%zu", d->kind->self.heads);
  if (d->kind->self.kv_heads != d->kind->self.heads)
    add_word(w, "decoder_kv_heads=%zu", d->kind->self.kv_heads);
  if (d->width != e->width) add_word(w, "decoder_width=%zu", d->width);
  if (d->forward_size != e->forward_size) add_word(w, "decoder_feed_forward=%zu", d->forward_size);
  if (whole->target_vocabulary != whole->vocabulary)
    add_word(w, "target_vocabulary=%zu", whole->target_vocabulary);
  if (whole->target_positions && whole->target_positions != whole->positions)
    add_word(w, "target_positions=%zu", whole->target_positions);
}

void announce_lines(const struct model *m, void (*report)(void *of, const char *line), void *of) {
  struct announce_words words = {0}, *w = &words;
  add_word(w, "model %s:", m->name);
  if (m->whole)
    add_whole(w, m);
  else
    add_layer(w, m);
  const char *engine = m->whole ? "packed" : layer_engine(m->layer);
  if (strcmp(engine, "packed") != 0 && strcmp(engine, "none") != 0)
    add_word(w, "engine=%s", engine);
  if (m->compute != COMPUTE_FLOAT32) add_word(w, "compute=%s", compute_names[m->compute]);
  if (strcmp(m->layout, "none") != 0)
    add_word(w, "%s=%s", m->whole ? "family" : "layout", m->layout);
  const char *quote = strchr(m->source, ' ') ? "\"" : ""; /* its words could look like ours */
  add_word(w, "source=%s%.200s%s", quote, m->source, quote);
  for (size_t i = 0; m->whole && i < json_array_size(m->whole->adapters); i++) {
    const json_t *name = json_object_get(json_array_get(m->whole->adapters, i), "name");
    add_word(w, "adapter=\"%.80s\"", json_string_value(name));
  }
  const char *colon = strchr(m->digest, ':'); /* the kind of a digest is not shown */
  add_word(w, "%s=%.*s", m->digest_name, DIGEST_SHOWN, colon ? colon + 1 : m->digest);
  report(of, w->text);
  if (!m->hinted) return;
  w->used = 0;
  add_word(w, "model %s: heads=%zu and kv_heads=%zu are from config.json", m->name, m->shape.heads,
           m->shape.kv_heads);
  report(of, w->text);
}

static void log_info(void *of, const char *line) { log_line(of, LOG_INFO, "%s", line); }

void announce_model(struct log *log, const struct model *m) {
  announce_lines(m, log_info, log);
  for (size_t i = 0; i < m->notes.count; i++)
    log_line(log, LOG_WARNING, "model %s: %s", m->name, m->notes.text[i]);
  if (model_uses_nothing(m))
    log_line(log, LOG_WARNING,
             "model %s: its source is ignored: projection %s and score %s need no weights", m->name,
             m->projection, m->score);
}

static void log_progress(void *of, const struct progress_news *news) {
  if (news->event != PROGRESS_END) log_line(of, LOG_INFO, "%s", news->text);
}

struct progress_listener announce_progress(struct log *log) {
  return (struct progress_listener){log_progress, log, PROGRESS_MS};
}

const char announce_demonstration[] = "no models configured: serving the built-in demo models "
                                      "(small trained ones, and layers with random weights); "
                                      "use --config FILE to serve your own";

void announce_built_in(struct log *log, const struct config *c) {
  if (c->built_in) log_line(log, LOG_WARNING, "%s", announce_demonstration);
}

void announce_reach(struct log *log, const char *address, const struct api_keys *k) {
  struct address at;
  if (k || !address_parse(&at, address) || address_is_loopback(&at)) return;
  log_line(log, LOG_WARNING,
           "listening on %s without API keys: anyone who can reach this address can use the "
           "server; set api_key_file or restrict access",
           address);
}

const char announce_exposed[] =
    "api_key_file is readable by every user of this machine: chmod o-r FILE";

void announce_api_keys(struct log *log, const struct api_keys *k) {
  if (!k) return;
  const size_t n = api_keys_count(k);
  log_line(log, LOG_INFO, "api_key_file: %zu key%s", n, n == 1 ? "" : "s");
  if (api_keys_exposed(k)) log_line(log, LOG_WARNING, "%s", announce_exposed);
}
