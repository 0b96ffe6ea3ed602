/* announce: the lines about models and API keys. */
#include "server/life/announce.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config/document/text.h"
#include "config/model/whole.h"
#include "config/settings/address.h"
#include "core/base/size.h"

enum { WORDS_SIZE = 1024, DIGEST_SHOWN = 12, LOG_WIDTH = 70 };

/* Words, each with its end. A word may hold blanks: a line breaks only between words. */
struct announce_words {
  size_t used;
  char text[WORDS_SIZE];
};

/* What is not visible becomes '?': names of files come from outside. */
static void make_visible(char *word) {
  for (size_t size; *word; word += size) {
    size = text_visible(word);
    if (size > 0) continue;
    *word = '?';
    size = 1;
  }
}

__attribute__((format(printf, 2, 3))) static void add_word(struct announce_words *w,
                                                           const char *format, ...) {
  va_list args;
  char *word = w->text + w->used;
  const size_t room = WORDS_SIZE - 1 - w->used; /* the last byte ends the words */
  if (room < 2) return;
  va_start(args, format);
  const int size = vsnprintf(word, room, format, args);
  va_end(args);
  make_visible(word);
  w->used += size_min((size_t)size, room - 1) + 1;
}

/* `size` is that of all inputs and of the output where they are the same. */
static void add_sizes(struct announce_words *w, const struct layer_shape *s) {
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
}

/* What is as usual is not said. */
static void add_kind(struct announce_words *w, const struct model *m) {
  const struct layer_shape *s = &m->shape;
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

/* What a decoder has, as far as it is another thing than its encoder's. */
static void add_decoder(struct announce_words *w, const struct whole *whole) {
  const struct stack_form *e = stack_form(whole->encoder), *d = stack_form(whole->decoder);
  if (d->layers != e->layers) add_word(w, "decoder_layers=%zu", d->layers);
  if (d->self.heads != e->self.heads) add_word(w, "decoder_heads=%zu", d->self.heads);
  if (d->self.kv_heads != d->self.heads) add_word(w, "decoder_kv_heads=%zu", d->self.kv_heads);
  if (d->width != e->width) add_word(w, "decoder_width=%zu", d->width);
  if (d->forward_size != e->forward_size) add_word(w, "decoder_feed_forward=%zu", d->forward_size);
  if (whole->target_vocabulary != whole->vocabulary)
    add_word(w, "target_vocabulary=%zu", whole->target_vocabulary);
  if (whole->target_positions && whole->target_positions != whole->positions)
    add_word(w, "target_positions=%zu", whole->target_positions);
}

/* What is read of a whole model first. */
static void add_whole(struct announce_words *w, const struct model *m) {
  const struct stack_form *f = stack_form(whole_reader(m->whole));
  add_word(w, "kind=%s", model_kind_name(m->kind));
  add_word(w, "layers=%zu", f->layers);
  add_word(w, "heads=%zu", f->self.heads);
  if (f->self.kv_heads != f->self.heads) add_word(w, "kv_heads=%zu", f->self.kv_heads);
  add_word(w, "width=%zu", f->width);
  add_word(w, "feed_forward=%zu", f->forward_size);
  if (m->whole->vocabulary) add_word(w, "vocabulary=%zu", m->whole->vocabulary);
  const char *weights = stack_weights(whole_reader(m->whole));
  if (strcmp(weights, "float32") != 0) add_word(w, "weights=%s", weights);
  if (m->whole->positions) add_word(w, "positions=%zu", m->whole->positions);
  if (m->whole->classes) add_word(w, "classes=%zu", m->whole->classes);
  if (whole_is_pair(m->whole)) add_decoder(w, m->whole);
}

static void add_source(struct announce_words *w, const struct model *m) {
  const char *engine = m->whole ? "packed" : layer_engine(m->layer);
  const char *colon = strchr(m->digest, ':'); /* the kind of a digest is not shown */
  if (strcmp(engine, "packed") != 0 && strcmp(engine, "none") != 0)
    add_word(w, "engine=%s", engine);
  if (strcmp(m->layout, "none") != 0)
    add_word(w, "%s=%s", m->whole ? "family" : "layout", m->layout);
  const char *quote = strchr(m->source, ' ') ? "\"" : ""; /* its words could be taken for ours */
  add_word(w, "source=%s%.200s%s", quote, m->source, quote);
  add_word(w, "%s=%.*s", m->digest_name, DIGEST_SHOWN, colon ? colon + 1 : m->digest);
}

/* Tells the words in lines of at most `width` columns, if no word is too long; each line begins
 * with the model's name. */
static void tell_lines(const struct announce_words *w, const struct model *m, size_t width,
                       void (*tell)(void *of, const char *line), void *of) {
  char line[WORDS_SIZE + 80];
  const char *word = w->text;
  const size_t name = (size_t)snprintf(line, sizeof line, "model %s:", m->name);
  while (*word) {
    size_t used = name;
    do {
      const size_t size = strlen(word);
      line[used++] = ' ';
      memcpy(line + used, word, size);
      used += size;
      word += size + 1;
    } while (*word && used + 1 + strlen(word) <= width);
    line[used] = '\0';
    tell(of, line);
  }
}

void announce_lines(const struct model *m, size_t width, void (*tell)(void *of, const char *line),
                    void *of) {
  struct announce_words words = {0};
  if (m->whole) {
    add_whole(&words, m);
  } else {
    add_sizes(&words, &m->shape);
    add_kind(&words, m);
  }
  add_source(&words, m);
  tell_lines(&words, m, width, tell, of);
  if (!m->hinted) return;
  words = (struct announce_words){0};
  add_word(&words, "heads=%zu and kv_heads=%zu are from config.json", m->shape.heads,
           m->shape.kv_heads);
  tell_lines(&words, m, width, tell, of);
}

static void log_info(void *of, const char *line) { log_line(of, LOG_INFO, "%s", line); }

void announce_model(struct log *log, const struct model *m) {
  announce_lines(m, LOG_WIDTH, log_info, log);
  for (size_t i = 0; i < m->notes.count; i++)
    log_line(log, LOG_WARNING, "model %s: %s", m->name, m->notes.text[i]);
  if (model_uses_nothing(m))
    log_line(log, LOG_WARNING,
             "model %s: nothing of its source is used: projection %s and score %s have no "
             "parameters",
             m->name, m->projection, m->score);
}

static void log_progress(void *of, const struct progress_news *news) {
  if (news->event != PROGRESS_END) log_line(of, LOG_INFO, "%s", news->text);
}

struct progress_listener announce_progress(struct log *log) {
  return (struct progress_listener){log_progress, log, PROGRESS_MS};
}

const char announce_demonstration[] =
    "no models are configured: these are built in, for demonstration, three of them with random "
    "weights; "
    "--config FILE or ATTEND_CONFIG names a file with models of yours";

void announce_built_in(struct log *log, const struct config *c) {
  if (c->built_in) log_line(log, LOG_WARNING, "%s", announce_demonstration);
}

void announce_reach(struct log *log, const char *address, const struct api_keys *k) {
  struct address at;
  if (k || !address_parse(&at, address) || address_is_loopback(&at)) return;
  log_line(log, LOG_WARNING,
           "listening beyond loopback without API keys: whoever reaches %s may ask (api_key_file)",
           address);
}

const char announce_exposed[] = "api_key_file: every user of this machine may read it: chmod o-r";

void announce_api_keys(struct log *log, const struct api_keys *k) {
  if (!k) return;
  const size_t n = api_keys_count(k);
  log_line(log, LOG_INFO, "api_key_file: %zu key%s", n, n == 1 ? "" : "s");
  if (api_keys_exposed(k)) log_line(log, LOG_WARNING, "%s", announce_exposed);
}
