/* stack_release: memory of sequences that are over goes back while others of the run go on.
 *
 * A sequence stays for one more round than it has: another one with its text may begin that round
 * with a copy of its rows. */
#include "core/stack/stack_parts.h"

/* One unit: the arena is one thread's at a time. */
static bool release_unit(const struct step *step, struct cursor *at, struct unit *u) {
  const struct stack_rounds *o = stack_run_of(u->run)->generation->rounds;
  (void)step;
  if (o->leaving == 0 || at->item > 0) return false;
  u->item = at->item++;
  return true;
}

static double release_work(const struct step *step, const struct unit *u) {
  (void)step, (void)u;
  return 0;
}

/* A source is needed as long as one of its sequences goes on. */
static void release_sources(const struct stack_run *r) {
  const struct stack_rounds *o = r->generation->rounds;
  const size_t each = stack_each(r->generation);
  for (size_t i = 0; o->source && i < r->across.items; i++) {
    struct stack_source *at = &o->source[i];
    size_t left = 0;
    for (size_t j = i * each; j < (i + 1) * each; j++) left += o->advance[j].room != NULL;
    if (left > 0 || !at->room) continue;
    arena_release(o->arena, at->room, at->room_bytes);
    at->room = NULL;
  }
}

static void release(struct stack_run *r) {
  const struct stack_rounds *o = r->generation->rounds;
  for (size_t i = 0; i < r->geometry.items; i++) {
    struct stack_advance *at = &o->advance[i];
    if (!at->leaves) continue;
    arena_release(o->arena, at->room, at->room_bytes);
    at->room = NULL;
  }
  release_sources(r);
}

static void compute_release(const struct step *step, const struct span *span, void *scratch) {
  struct span left = *span;
  struct unit u;
  (void)step, (void)scratch;
  while (run_next_unit(&left, &u)) release(stack_run_of(u.run));
}

const struct step stack_step_release = {.unit = release_unit,
                                        .work = release_work,
                                        .compute = compute_release};
