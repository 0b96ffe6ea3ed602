/* metrics_text: the metrics in Prometheus' text format.
 *
 * Series with a small, fixed set of labels are written from the start, so that their first count is
 * an increase. The series of requests, which have thousands of sets of labels, are written once
 * there is such a request, or from the start if alerts look at them. */
#include "server/watch/metrics_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/document/text.h"
#include "config/model/registry.h"
#include "core/base/cpu.h"
#include "server/watch/metrics_parts.h"
#include "server/watch/metrics_process.h"
#include "server/watch/version.h"

enum { LABELS_SIZE = 128, REQUEST_BOUNDS = 13, ROW_BOUNDS = TALLY_CLASSES - 1 };

/* The rows of metrics.def. */
static const struct row {
  enum { ROW_FAMILY, ROW_COUNTER, ROW_SECONDS, ROW_HISTOGRAM } kind;
  const char *text; /* the name of a metric; the labels of a series, or NULL */
  const char *type, *help;
  unsigned series; /* a metrics_counter or metrics_histogram */
} rows[] = {
#define FAMILY(name, type, help) {ROW_FAMILY, name, type, help, 0},
#define COUNTER(id, labels)      {ROW_COUNTER, labels, NULL, NULL, id},
#define SECONDS(id, labels)      {ROW_SECONDS, labels, NULL, NULL, id},
#define HISTOGRAM(id, labels)    {ROW_HISTOGRAM, labels, NULL, NULL, id},
#include "server/watch/metrics.def"
};

/* --- lines --- */

static void write_family(FILE *f, const char *name, const char *type, const char *help) {
  fprintf(f, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void write_gauge(FILE *f, const char *name, const char *help, uint64_t value) {
  write_family(f, name, "gauge", help);
  fprintf(f, "%s %" PRIu64 "\n", name, value);
}

static void write_gauge_seconds(FILE *f, const char *name, const char *help, double value) {
  write_family(f, name, "gauge", help);
  fprintf(f, "%s %.6f\n", name, value);
}

static void write_counter(FILE *f, const char *name, const char *help, uint64_t value) {
  write_family(f, name, "counter", help);
  fprintf(f, "%s %" PRIu64 "\n", name, value);
}

static void write_labelled(FILE *f, const char *name, const char *label, const char *value,
                           uint64_t n) {
  fprintf(f, "%s{%s=\"%s\"} %" PRIu64 "\n", name, label, value, n);
}

/* Writes `label="value"` of text from outside, such as the name of a file. Bytes that are not UTF-8
 * are replaced, since a reader would reject the whole text for them. */
static void write_label(FILE *f, const char *label, const char *value) {
  const char *end = value + strlen(value);
  fprintf(f, "%s=\"", label);
  for (size_t n; value < end; value += n ? n : 1) {
    n = text_character(value, (size_t)(end - value));
    if (n == 0)
      fputs("\xef\xbf\xbd", f); /* U+FFFD */
    else if (*value == '\n')
      fputs("\\n", f);
    else if (*value == '\\' || *value == '"')
      fprintf(f, "\\%c", *value);
    else
      fwrite(value, 1, n, f);
  }
  fputc('"', f);
}

/* --- histograms --- */

static void write_seconds(FILE *f, const char *name, const char *labels,
                          const struct metrics_sum *s) {
  uint64_t below = 0;
  for (unsigned b = 0; b < METRICS_BOUNDS; b++) {
    below += s->bucket[b];
    fprintf(f, "%s_bucket{%s,le=\"%g\"} %" PRIu64 "\n", name, labels,
            (double)metrics_bound_us[b] / 1e6, below);
  }
  fprintf(f, "%s_bucket{%s,le=\"+Inf\"} %" PRIu64 "\n", name, labels, s->count);
  fprintf(f, "%s_sum{%s} %.9f\n", name, labels, (double)s->ns / 1e9);
  fprintf(f, "%s_count{%s} %" PRIu64 "\n", name, labels, s->count);
}

static void write_sizes(FILE *f, const char *name, const char *help, unsigned bounds,
                        const struct tally_sizes *s) {
  uint64_t below = 0, count = 0;
  for (unsigned i = 0; i < TALLY_CLASSES; i++) count += s->number[i];
  write_family(f, name, "histogram", help);
  for (unsigned i = 0; i < bounds; i++) {
    below += s->number[i];
    fprintf(f, "%s_bucket{le=\"%" PRIu64 "\"} %" PRIu64 "\n", name, (uint64_t)1 << i, below);
  }
  fprintf(f, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum %" PRIu64 "\n%s_count %" PRIu64 "\n", name,
          count, name, s->sum, name, count);
}

/* --- requests --- */

struct metrics_series {
  unsigned route, method, code; /* the last an index into metrics_code */
  struct metrics_sum sum;
};

/* Sums each series once, so that totals and histograms agree. NULL: no memory. */
static struct metrics_series *collect_series(const struct metrics *m, size_t *count) {
  bool marked[ROUTE_COUNT][METHOD_COUNT][METRICS_CODES];
  *count = 0;
  for (unsigned r = 0; r < ROUTE_COUNT; r++)
    for (unsigned w = 0; w < METHOD_COUNT; w++)
      for (unsigned c = 0; c < METRICS_CODES; c++) {
        const unsigned code = metrics_code[c];
        const bool expected = /* by alerts, even before the first such request */
            route_is_expected((enum route)r) && w == METHOD_POST &&
            (code == 200 || code == 400 || code == 429 || code == 500 || code == 503 ||
             code == 504);
        marked[r][w][c] = expected || atomic_load_explicit(&m->used[r][w][c], memory_order_relaxed);
        *count += marked[r][w][c];
      }
  struct metrics_series *all = calloc(*count, sizeof *all), *s = all;
  if (!all) return NULL;
  for (unsigned r = 0; r < ROUTE_COUNT; r++)
    for (unsigned w = 0; w < METHOD_COUNT; w++)
      for (unsigned c = 0; c < METRICS_CODES; c++)
        if (marked[r][w][c]) *s++ = (struct metrics_series){r, w, c, metrics_requests(m, r, w, c)};
  return all;
}

static void request_labels(const struct metrics_series *s, char labels[LABELS_SIZE]) {
  char code[8] = "other";
  if (metrics_code[s->code]) snprintf(code, sizeof code, "%u", metrics_code[s->code]);
  snprintf(labels, LABELS_SIZE, "route=\"%s\",method=\"%s\",code=\"%s\"",
           route_template((enum route)s->route), method_name((enum method)s->method), code);
}

/* False: no memory. */
static bool write_requests(FILE *f, const struct metrics *m) {
  char labels[LABELS_SIZE];
  size_t count;
  struct metrics_series *all = collect_series(m, &count);
  if (!all) return false;
  write_family(
      f, "attend_http_requests_total", "counter",
      "Requests that have ended, with or without a response; code 499: the client left first.");
  for (size_t i = 0; i < count; i++) {
    request_labels(&all[i], labels);
    fprintf(f, "attend_http_requests_total{%s} %" PRIu64 "\n", labels, all[i].sum.count);
  }
  write_family(f, "attend_http_request_duration_seconds", "histogram",
               "From the end of a request's header to the last byte of its response.");
  for (size_t i = 0; i < count; i++) {
    if (!all[i].sum.count && metrics_code[all[i].code] != 200) continue;
    request_labels(&all[i], labels);
    write_seconds(f, "attend_http_request_duration_seconds", labels, &all[i].sum);
  }
  free(all);
  return true;
}

/* Writes the metrics of metrics.def. */
static void write_rows(FILE *f, const struct metrics *m) {
  const char *name = NULL;
  for (const struct row *r = rows; r < rows + sizeof rows / sizeof *rows; r++) {
    if (r->kind == ROW_FAMILY) {
      name = r->text;
      write_family(f, name, r->type, r->help);
      continue;
    }
    if (r->kind == ROW_HISTOGRAM) {
      const struct metrics_sum s = metrics_durations(m, r->series);
      write_seconds(f, name, r->text, &s);
      continue;
    }
    const uint64_t n = metrics_count(m, r->series);
    fputs(name, f);
    if (r->text) fprintf(f, "{%s}", r->text);
    if (r->kind == ROW_SECONDS)
      fprintf(f, " %.9f\n", (double)n / 1e9);
    else
      fprintf(f, " %" PRIu64 "\n", n);
  }
}

/* --- the state of the server --- */

/* Needs loaded models. */
static void write_pool(FILE *f, const struct service *s) {
  struct tally_sum batches;
  pool_batches(s->pool, &batches);
  write_sizes(f, "attend_batch_requests", "Requests that were computed together as one batch.",
              REQUEST_BOUNDS, &batches.requests);
  write_sizes(f, "attend_batch_rows", "Query rows of the requests of one batch.", ROW_BOUNDS,
              &batches.rows);
  write_gauge(f, "attend_queue_depth", "Requests that wait for a worker.", pool_waiting(s->pool));
  write_gauge(f, "attend_running", "Requests that workers have taken and not finished.",
              pool_running(s->pool));
}

static void write_limits(FILE *f, const struct service *s) {
  write_gauge(f, "attend_queue_limit", "Requests that may wait for a worker (max_queue).",
              s->config->max_queue);
  write_gauge(f, "attend_inflight_bytes", "Memory that requests hold.",
              atomic_load_explicit(&s->budget.used, memory_order_relaxed));
  write_gauge(f, "attend_inflight_limit_bytes",
              "Memory that requests may hold together (memory_budget_bytes).", s->budget.limit);
  write_gauge(f, "attend_kept_bytes", "Memory of past requests, kept for the next ones.",
              s->budget.keep ? keep_bytes(s->budget.keep) : 0);
  write_gauge(f, "attend_sequences", "Sequences that are generated at the moment, of all requests.",
              atomic_load_explicit(&s->sequences.running.used, memory_order_relaxed));
  write_gauge(f, "attend_sequences_limit",
              "Sequences that may be generated at the same time (max_sequences).",
              s->sequences.running.limit);
  write_gauge(f, "attend_sequence_bytes", "Memory of the KV cache of these sequences.",
              atomic_load_explicit(&s->sequences.kept_bytes, memory_order_relaxed));
  write_gauge(f, "attend_prefix_bytes", "Memory of the prefix cache.",
              s->prefixes ? prefixes_bytes(s->prefixes) : 0);
  write_gauge(f, "attend_prefix_limit_bytes",
              "Memory that the prefix cache may take (prefix_cache_bytes); 0: off.",
              s->config->prefix_cache_bytes);
  write_gauge(f, "attend_workers", "Threads that compute all but tiny requests.", s->workers);
}

static void write_listeners(FILE *f, const struct metrics_now *now) {
  const struct metrics_listener *l = now->listener, *end = l + now->listeners;
  write_family(f, "attend_connections", "gauge", "Open connections.");
  for (l = now->listener; l < end; l++)
    write_labelled(f, "attend_connections", "listener", l->name, l->open);
  write_family(f, "attend_connections_limit", "gauge",
               "Connections that may be open (max_connections).");
  for (l = now->listener; l < end; l++)
    write_labelled(f, "attend_connections_limit", "listener", l->name, l->limit);
  write_family(f, "attend_connections_total", "counter", "Connections that were accepted.");
  for (l = now->listener; l < end; l++)
    write_labelled(f, "attend_connections_total", "listener", l->name, l->opened);
}

static void write_models(FILE *f, struct models *models) {
  struct models_hold hold = models_hold(models, 0);
  const size_t count = registry_count(hold.registry);
  write_gauge(f, "attend_models", "Models that are loaded.", count);
  write_family(
      f, "attend_model_info", "gauge",
      "Which models are loaded: the digest of their tensors, their file, its layout, and how "
      "their matrices are multiplied.");
  for (size_t i = 0; i < count; i++) {
    const struct model *model = registry_at(hold.registry, i);
    fputs("attend_model_info{", f);
    write_label(f, "model", model->name);
    fputc(',', f);
    write_label(f, model->digest_name, model->digest);
    write_label(f, ",source", model->source);
    write_label(f, ",layout", model->layout);
    write_label(f, ",compute", compute_names[model->compute]);
    fputs("} 1\n", f);
  }
  models_release(&hold);
}

static void write_build(FILE *f, const struct metrics_now *now) {
  write_gauge(f, "attend_io_threads",
              "Threads that read and write sockets, and compute tiny requests.", now->io_threads);
  write_gauge_seconds(
      f, "attend_io_longest_turn_seconds",
      "The longest that an I/O thread has been busy before it looked at its sockets "
      "again, since the start.",
      (double)now->longest_turn_ns / 1e9);
  write_counter(f, "attend_log_dropped_total",
                "Log lines dropped because they were not read in time.", now->log_dropped);
  write_counter(f, "attend_log_suppressed_total",
                "Log lines left out because they repeat a recent one.", now->log_suppressed);
  write_family(f, "attend_build_info", "gauge",
               "The version of attend, and the instructions that it uses.");
  fprintf(f, "attend_build_info{version=\"%s\",commit=\"%s\",cpu=\"%s\"} 1\n", version_number(),
          version_commit(), cpu_word()->name);
}

/* Omits metrics that the system does not report. */
static void write_process(FILE *f, const struct metrics *m) {
  struct metrics_process p;
  metrics_process_read(&p, "/proc/self");
  write_family(f, "process_cpu_seconds_total", "counter", "Processor time of all threads.");
  fprintf(f, "process_cpu_seconds_total %.6f\n", p.cpu_seconds);
  if (p.has_memory) {
    write_gauge(f, "process_resident_memory_bytes", "Resident memory.", p.resident_bytes);
    write_gauge(f, "process_virtual_memory_bytes", "Address space in use.", p.virtual_bytes);
    write_gauge(f, "process_threads", "Threads.", p.threads);
  }
  if (p.has_fds) write_gauge(f, "process_open_fds", "Open file descriptors.", p.open_fds);
  if (p.has_max_fds)
    write_gauge(f, "process_max_fds", "File descriptors that may be open.", p.max_fds);
  if (m->started > 0)
    write_gauge_seconds(f, "process_start_time_seconds", "When the process began, in Unix time.",
                        m->started);
}

char *metrics_text(const struct metrics *m, struct service *s, const struct metrics_now *now,
                   size_t *length) {
  char *text = NULL;
  FILE *f = open_memstream(&text, length);
  if (!f) return NULL;
  bool good = write_requests(f, m);
  write_rows(f, m);
  if (now->loaded) write_pool(f, s);
  write_limits(f, s);
  write_listeners(f, now);
  if (now->loaded) write_models(f, s->models);
  write_gauge_seconds(f, "attend_models_loaded_timestamp_seconds",
                      "When the models in service were loaded.",
                      (double)atomic_load_explicit(&m->loaded_ms, memory_order_relaxed) / 1e3);
  write_build(f, now);
  write_process(f, m);
  good = good && !ferror(f);
  if (fclose(f) == 0 && good) return text;
  free(text);
  return NULL;
}
