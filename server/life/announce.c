/* announce: the lines about models and API keys. */
#include "server/life/announce.h"

#include <stdio.h>

#include "config/settings/address.h"

/* How the model sees positions: rotary, relative, or not at all. */
static void describe_positions(const struct layer_shape *s, char *out, size_t size) {
  size_t used = 0;
  *out = '\0';
  if (s->rope_base > 0) used = (size_t)snprintf(out, size, " rope=%.15g", s->rope_base);
  if (s->relative_buckets && used < size)
    snprintf(out + used, size - used, " relative_bias=%zu max_distance=%zu bidirectional=%s",
             s->relative_buckets, s->relative_distance, s->relative_both ? "true" : "false");
}

void announce_text(const struct model *m, char out[ANNOUNCE_SIZE]) {
  const struct layer_shape *s = &m->shape;
  const char *place = m->place && *m->place ? m->place : NULL;
  char scale[48] = "", positions[128];
  if (s->score == SCORE_DOT) snprintf(scale, sizeof scale, " scale=%.9g", (double)s->scale);
  describe_positions(s, positions, sizeof positions);
  snprintf(out, ANNOUNCE_SIZE,
           "model %s: score=%s%s weighting=%s projection=%s heads=%zu kv_heads=%zu query_size=%zu "
           "key_size=%zu value_size=%zu output_size=%zu causal=%s%s parameters=%ju engine=%s "
           "source=%.200s layout=%s%s%s sha256=%s",
           m->name, m->score, scale, m->weighting, m->projection, s->heads, s->kv_heads,
           s->query_size, s->key_size, s->value_size, s->output_size, m->causal ? "true" : "false",
           positions, (uintmax_t)m->parameters, layer_engine(m->layer), m->source, m->layout,
           place ? " place=" : "", place ? place : "", m->sha256);
}

void announce_model(struct log *log, const struct model *m) {
  char text[ANNOUNCE_SIZE];
  announce_text(m, text);
  log_line(log, LOG_INFO, "%s", text);
  for (size_t i = 0; i < m->notes.count; i++)
    log_line(log, LOG_WARNING, "model %s: %s", m->name, m->notes.text[i]);
  if (model_uses_nothing(m))
    log_line(log, LOG_WARNING,
             "model %s: nothing of its source is used: projection %s and score %s have no "
             "parameters",
             m->name, m->projection, m->score);
}

const char announce_demonstration[] =
    "no models are configured: these are built in, for demonstration, with random weights; "
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
