/* whole_numbers: the numbers of a whole model, read a layer at a time, and their digest. */
#ifndef CONFIG_WHOLE_NUMBERS_H
#define CONFIG_WHOLE_NUMBERS_H

#include "config/build/model.h"
#include "config/build/whole_plan.h"
#include "core/base/arena.h"

/* Reads what is in no layer of a stack: *form becomes its form with these parameters; a table of
 * tokens that the other stack lends is left out. They lie in the arena. A team reads them together
 * (core/base/team.h). Errors are those of checkpoint_read_floats, and STATUS_OUT_OF_MEMORY. */
enum status whole_numbers_stack(const struct whole_plan *p, const struct whole_stack *s,
                                struct arena *a, struct stack_form *form, struct error *e);

/* Likewise its layer of this number. */
enum status whole_numbers_layer(const struct whole_plan *p, const struct whole_stack *s,
                                size_t layer, struct arena *a, struct stack_layer *out,
                                struct error *e);

/* Writes the digest of all of them, of both stacks: the tensors by name in the order of bytes, in
 * the shapes in which they are stored, as float32. *name becomes "sha256" or "digest", as in struct
 * model. */
enum status whole_numbers_digest(const struct whole_plan *p, char out[MODEL_DIGEST_SIZE],
                                 const char **name, struct error *e);

#endif
