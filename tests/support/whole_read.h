/* whole_read: whole models whose parameters are read into memory, as stack_form has them. For test
 * programs alone: it needs cmocka. */
#ifndef TESTS_WHOLE_READ_H
#define TESTS_WHOLE_READ_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "config/build/whole_numbers.h"
#include "config/build/whole_plan_make.h"

struct whole_read {
  json_t *definition;
  struct whole_plan plan;
  struct arena arena;
  struct stack_form form; /* of the stack that reads; its layers and parameters lie in the arena */
  struct stack_form decoder; /* of the one beside it; no layers: there is none */
  void *table[2];            /* their tables of tokens, or NULL */
};

static inline void whole_read_stack(struct whole_read *m, const struct whole_stack *s,
                                    struct stack_form *form) {
  struct error e = {0};
  whole_numbers_stack(&m->plan, s, &m->arena, form, &e);
  struct stack_layer *layer = arena_alloc(&m->arena, form->layers, sizeof *layer, &e);
  assert_non_null(layer);
  for (size_t i = 0; i < form->layers; i++)
    whole_numbers_layer(&m->plan, s, i, &m->arena, &layer[i], &e);
  assert_string_equal(e.detail, "");
  form->layer = layer;
  if (form->embedding.given) m->table[form != &m->form] = (void *)form->embedding.token;
  form->embedding.given = false;
}

/* From a definition whose paths start at `directory`. */
static inline void whole_read(struct whole_read *m, json_t *definition, const char *directory) {
  struct error e = {0};
  m->definition = definition;
  arena_init(&m->arena, NULL);
  if (whole_plan_make(&m->plan, definition, directory, &e)) fail_msg("%s", e.detail);
  m->decoder = (struct stack_form){0};
  m->table[0] = m->table[1] = NULL;
  whole_read_stack(m, whole_plan_reader(&m->plan), &m->form);
  if (m->plan.kind != MODEL_SEQ2SEQ) return;
  whole_read_stack(m, &m->plan.stack[WHOLE_DECODER], &m->decoder);
  if (!m->form.embedding.token) m->form.embedding.token = m->decoder.embedding.token;
}

static inline void whole_read_golden(struct whole_read *m, const char *folder) {
  whole_read(m, json_pack("{s:s}", "transformer", folder), "tests/golden/models");
}

static inline void whole_read_free(struct whole_read *m) {
  whole_plan_free(&m->plan);
  free(m->table[0]), free(m->table[1]);
  arena_free(&m->arena);
  json_decref(m->definition);
}

#endif
