/* template: chat templates: the subset of Jinja that turns messages into the text of a prompt. */
#include "config/template/template.h"

#include <stdlib.h>
#include <string.h>

#include "config/template/execute.h"
#include "config/template/syntax/statement.h"

struct template {
  struct arena arena; /* of all that is read */
  const char *source;
  struct node *first;
};

/* A copy in which lines end with \n alone, and without the last end of a line. */
static char *copy_source(struct arena *a, const char *text, size_t length, struct error *e) {
  char *copy = arena_alloc(a, length + 1, 1, e), *to = copy;
  for (size_t i = 0; copy && i < length; i++) {
    *to++ = text[i] == '\r' ? '\n' : text[i];
    if (text[i] == '\r' && i + 1 < length && text[i + 1] == '\n') i++;
  }
  if (copy && to > copy && to[-1] == '\n') to--;
  if (copy) *to = '\0';
  return copy;
}

static bool check_source(const char *text, size_t length, const struct template_limits *limits,
                         struct error *e) {
  if (length > limits->source)
    error_set(e, STATUS_INVALID_REQUEST, "the template has %zu bytes, more than %zu", length,
              limits->source);
  else if (memchr(text, '\0', length))
    error_set(e, STATUS_INVALID_REQUEST, "the template has a NUL byte");
  return !e->status;
}

static struct bounds bounds_of(const struct template *t, struct arena *a,
                               const struct template_limits *limits, struct error *e) {
  return (struct bounds){.arena = a,
                         .bytes = limits->memory,
                         .steps = limits->steps,
                         .ask_at = limits->steps,
                         .depth = limits->depth,
                         .patience = limits->patience,
                         .source = t->source,
                         .e = e};
}

struct template *template_parse(const char *text, size_t length,
                                const struct template_limits *limits, struct error *e) {
  if (!check_source(text, length, limits, e)) return NULL;
  struct template *t = malloc(sizeof *t);
  if (!t) {
    error_no_memory(e);
    return NULL;
  }
  *t = (struct template){0};
  arena_init(&t->arena, NULL);
  t->source = copy_source(&t->arena, text, length, e);
  struct bounds b = bounds_of(t, &t->arena, limits, e);
  struct parser p = {.b = &b, .next = t->source ? lexeme_all(&b) : NULL};
  if (p.next && statement_all(&p, &t->first)) return t;
  template_free(t);
  return NULL;
}

void template_free(struct template *t) {
  if (!t) return;
  arena_free(&t->arena);
  free(t);
}

enum status template_render(const struct template *t, const json_t *variables,
                            const struct format_time *now, const struct template_limits *limits,
                            struct arena *a, const char **text, size_t *length, struct error *e) {
  struct buffer out = {.most = limits->output};
  struct evaluate r = {
      .b = bounds_of(t, a, limits, e), .variables = variables, .now = now, .out = &out};
  if (!execute_template(&r, t->first)) return e->status;
  const struct value rendered = buffer_value(&r.b, &out);
  *text = rendered.text;
  *length = rendered.length;
  return e->status;
}
