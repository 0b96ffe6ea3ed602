/* whole_numbers: the numbers of a whole model, read a layer at a time, and their digest. */
#ifndef CONFIG_WHOLE_NUMBERS_H
#define CONFIG_WHOLE_NUMBERS_H

#include "config/build/model.h"
#include "config/build/plan/whole_plan.h"
#include "core/base/arena.h"

/* Reads the parameters of a stack that belong to no layer: *form becomes its form with these, which
 * lie in the arena, except the table of tokens, which stack_new takes. One that the other stack
 * lends is left out. A team reads them together (core/base/team.h). Errors are those of
 * checkpoint_read_floats, and STATUS_OUT_OF_MEMORY. */
enum status whole_numbers_stack(const struct whole_plan *p, const struct whole_stack *s,
                                struct arena *a, struct stack_form *form, struct error *e);

/* Reads one layer of the stack in the same way. */
enum status whole_numbers_layer(const struct whole_plan *p, const struct whole_stack *s,
                                size_t layer, struct arena *a, struct stack_layer *out,
                                struct error *e);

/* Puts the name of the tensor before the error of a matrix that cannot be quantized, in a layer,
 * or, with the number of layers, outside them. Returns e->status. */
enum status whole_numbers_blame(const struct whole_plan *p, const struct whole_stack *s,
                                size_t layer, struct error *e);

/* Writes the digest of all numbers of both stacks: the tensors in the order of their names' bytes,
 * in the shapes in which they are stored, as float32. *name becomes "sha256" or "digest", as in
 * struct model. The same errors. */
enum status whole_numbers_digest(const struct whole_plan *p, char out[MODEL_DIGEST_SIZE],
                                 const char **name, struct error *e);

/* Compares the copies of the table of tokens in the file number by number, among them the matrix of
 * the logits if it should be one. STATUS_CONFIG naming a copy that differs, and the same errors. */
enum status whole_numbers_check_copies(const struct whole_plan *p, struct error *e);

#endif
