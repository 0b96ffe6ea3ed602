/* drawn_model: whole models of random weights. */
#include "tests/bench/drawn_model.h"

#include "core/kernel/narrow.h"

uint64_t drawn_state = 88172645463325252u;
enum kernel_form drawn_form = KERNEL_FLOAT32;

const float *drawn_numbers(struct arena *a, size_t count, float middle, float spread) {
  struct error e = {0};
  float *x = arena_alloc(a, count, sizeof *x, &e);
  must(x != NULL);
  for (size_t i = 0; i < count; i++) x[i] = middle + spread * random_float(&drawn_state);
  if (drawn_form != KERNEL_FLOAT32)
    for (size_t i = 0; i < count; i++)
      x[i] = narrow_widen(drawn_form, narrow_number(drawn_form, x[i]));
  return x;
}

static struct layer_matrix draw_matrix(struct arena *a, size_t out, size_t in) {
  return (struct layer_matrix){.weight = drawn_numbers(a, out * in, 0, 0.07f),
                               .bias = drawn_numbers(a, out, 0, 0.09f)};
}

struct stack_norm drawn_norm(struct arena *a, size_t width) {
  return (struct stack_norm){.factor = drawn_numbers(a, width, 1, 0.17f),
                             .shift = drawn_numbers(a, width, 0, 0.09f)};
}

static struct stack_layer draw_layer(struct arena *a, const struct stack_form *f) {
  struct stack_layer l = {0};
  for (unsigned role = 0; role < ROLE_PROJECTIONS; role++)
    l.self[role] = draw_matrix(a, f->width, f->width);
  for (unsigned role = 0; f->cross.heads && role < ROLE_PROJECTIONS; role++)
    l.cross[role] = draw_matrix(a, f->width, f->width);
  l.norm_self = drawn_norm(a, f->width);
  if (f->cross.heads) l.norm_cross = drawn_norm(a, f->width);
  l.norm_forward = drawn_norm(a, f->width);
  l.forward.up = draw_matrix(a, f->forward_size, f->width);
  l.forward.down = draw_matrix(a, f->width, f->forward_size);
  return l;
}

struct stack *drawn_stack(const struct stack_form *form, struct arena *a) {
  struct error e = {0};
  struct stack *s = stack_new(form, &e);
  must(s != NULL);
  arena_free(a);
  for (size_t i = 0; i < form->layers; i++) {
    const struct stack_layer l = draw_layer(a, form);
    must(stack_set_layer(s, &l, &e) == STATUS_OK);
    arena_free(a);
  }
  return s;
}

struct pool *drawn_pool(const struct stack *s, size_t workers) {
  return drawn_pool_of(stack_scratch_bytes(s), workers);
}

struct pool *drawn_pool_of(size_t scratch_bytes, size_t workers) {
  struct error e = {0};
  struct pool *p = pool_new(&(struct pool_options){.workers = workers,
                                                   .max_queue = 1,
                                                   .scratch_bytes = scratch_bytes,
                                                   .merge = true},
                            &e);
  must(p != NULL);
  return p;
}
