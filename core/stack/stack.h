/* stack: a whole model that can be computed: tokens in; rows, one vector of an item, and everything
 * between them out.
 *
 * A stack is immutable once all its layers are set, and shared by all threads. It holds the program
 * of its runs: such a run, once prepared, is computed by run_compute or by the pool; run_fault
 * describes its fault, by layer, part, item and row. Its matrices are always packed: a row's bits
 * depend on its item alone, whatever is computed beside it. */
#ifndef CORE_STACK_H
#define CORE_STACK_H

#include "core/forward/stack_form.h"
#include "core/forward/stack_run.h"
#include "core/generate/generation.h"
#include "core/inspect/ablation.h"

/* Sizes and kinds come from the form, and the parameters of the embedding, the last norm, the
 * pooling and the classifier, which are copied. The sizes must agree, and all numbers are finite:
 * the caller has checked that. `form->layer` is not looked at: stack_set_layer sets the layers, in
 * their order, so that not all of them have to be in memory twice. NULL with an error if memory
 * runs out. */
struct stack *stack_new(const struct stack_form *form, struct error *e);

/* Copies (packs) the parameters of the next layer. */
enum status stack_set_layer(struct stack *s, const struct stack_layer *layer, struct error *e);
void stack_free(struct stack *s); /* NULL and half-built ones are fine */

/* Sizes and kinds as they came; the pointers to parameters mean nothing any more. */
const struct stack_form *stack_form(const struct stack *s);

bool stack_has_output(const struct stack *s); /* tokens to come can be asked for */

/* Can its runs generate? It is causal and has an output. */
bool stack_can_generate(const struct stack *s);
bool stack_has_pooler(const struct stack *s);

/* One of its attentions, for calls to it alone: of layer l number l, and its attention across
 * number L + l. It lives as long as the stack. */
const struct layer *stack_attention(const struct stack *s, size_t number);

size_t stack_scratch_bytes(const struct stack *s); /* that one thread needs */

/* The bytes of weights, tables and vectors at rest. */
size_t stack_bytes(const struct stack *s);

/* How its matrices are kept: "float32", "bfloat16", "float16" or "mixed". */
const char *stack_weights(const struct stack *s);

/* How fast one thread computes: operations in a second, and in the time in which it reads a byte of
 * weights from memory. */
struct stack_pace {
  double second_work, byte_work;
};

/* Measures it with the stack's own matrices, some ten milliseconds. If they are so small that
 * caches hold them, `pace` stays as it is. */
void stack_measure_pace(const struct stack *s, struct stack_pace *pace);

/* --- runs: see stack_run.h --- */

/* An empty run of this stack, in the arena: all 0, but for the window and `causal`, which are the
 * form's. NULL with an error. */
struct stack_run *stack_run_new(const struct stack *s, struct arena *a, struct error *e);

/* Prepares a run whose request is right: nothing is checked here. Reserves in the arena all memory
 * that computing will need, and does nothing else that grows with the request. Sets `run`, the rest
 * of the geometry and the answer part. After this nothing can fail but the arithmetic: the run's
 * fault is STATUS_NOT_FINITE. A run that generates gives memory back while it is computed: until
 * then nobody else may use the arena. */
enum status stack_prepare(const struct stack *s, struct stack_run *r, struct arena *a,
                          struct error *e);

#endif
