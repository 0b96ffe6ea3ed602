/* stack: an encoder or decoder stack that can be computed: from tokens, or rows, to rows, to one
 * vector of each item, to log probabilities or generated tokens; and all that lies between.
 *
 * A stack is immutable once all its layers are set, and shared by all threads. A run of it, once
 * prepared, is computed by run_compute or by the pool; run_fault reports its fault by layer, part,
 * item and row. Its matrices are packed: a row's bits depend on its item alone, whatever is
 * computed with it. */
#ifndef CORE_STACK_H
#define CORE_STACK_H

#include "core/forward/stack_form.h"
#include "core/forward/stack_run.h"
#include "core/generate/generation.h"
#include "core/inspect/ablation.h"

/* Makes a stack of the form, without layers; the form's parameters are copied, except that a table
 * of tokens that is given, memory of malloc, is kept or freed, also after an error. The caller has
 * checked that sizes agree and all numbers are finite. `form->layer` is ignored: stack_set_layer
 * sets the layers, in their order, so that not all of them are in memory twice. NULL with an error
 * if memory runs out. */
struct stack *stack_new(const struct stack_form *form, struct error *e);

/* Copies (packs) the parameters of the next layer. Returns e->status. */
enum status stack_set_layer(struct stack *s, const struct stack_layer *layer, struct error *e);
void stack_free(struct stack *s); /* NULL and half-built ones are fine */

/* The form, whose pointers to parameters are not those that stack_new was given. */
const struct stack_form *stack_form(const struct stack *s);

bool stack_has_sparse(const struct stack *s);   /* weights of tokens can be requested */
bool stack_has_output(const struct stack *s);   /* log probabilities can be requested */
bool stack_can_generate(const struct stack *s); /* it is causal and has an output */
bool stack_has_pooler(const struct stack *s);

/* An attention, for calls to it alone: number l is the self-attention of layer l, number L + l its
 * cross-attention. It lives as long as the stack. */
const struct layer *stack_attention(const struct stack *s, size_t number);

/* The kind of a layer, one of the form's. */
const struct stack_kind *stack_layer_kind(const struct stack *s, size_t layer);

size_t stack_scratch_bytes(const struct stack *s); /* for each thread */
size_t stack_bytes(const struct stack *s);         /* of weights, tables and vectors */

/* The form of its matrices: "float32", "bfloat16", "float16" or "mixed". */
const char *stack_weights(const struct stack *s);

/* The speed of one thread: operations in a second, and in the time in which it reads a byte of
 * weights from memory. */
struct stack_pace {
  double second_work, byte_work;
};

/* Measures the pace with the stack's own matrices, in some ten milliseconds. If they are so small
 * that caches hold them, `pace` stays as it is. */
void stack_measure_pace(const struct stack *s, struct stack_pace *pace);

/* --- runs: see stack_run.h --- */

/* Makes an empty run of this stack in the arena: all 0 except the window and `causal`, which are
 * the form's. NULL with an error. */
struct stack_run *stack_run_new(const struct stack *s, struct arena *a, struct error *e);

/* Prepares a run whose request is valid: nothing is checked here. Reserves in the arena all memory
 * that computing will need, and does nothing else that grows with the request. Sets `run`, the rest
 * of the geometry and the response. Returns e->status. After this only the arithmetic can fail: the
 * run's fault is STATUS_NOT_FINITE. A run that generates releases memory while it is computed:
 * until it is over nobody else may use the arena. */
enum status stack_prepare(const struct stack *s, struct stack_run *r, struct arena *a,
                          struct error *e);

#endif
