/* trial: makes a layer and tries it on one small request. */
#ifndef CONFIG_TRIAL_H
#define CONFIG_TRIAL_H

#include "config/build/layer/parameters.h"
#include "core/stack/stack.h"

/* Makes the layer with these parameters and tries it on two queries and two keys of zeros. The
 * answer depends on the biases alone; if it is beyond float32, no request would be answered, and
 * the layer is refused. A layer that computes with a serial OpenBLAS is not tried. NULL with
 * STATUS_CONFIG or STATUS_OUT_OF_MEMORY. */
struct layer *trial_make(const struct parameters *p, enum gemm_engine engine, struct error *e);

/* Tries a whole model on a few tokens, or on rows of zeros where it has none. Of the two stacks one
 * may be NULL; else the decoder attends to the encoder's outputs. STATUS_CONFIG where the answer is
 * not finite, STATUS_OUT_OF_MEMORY. */
enum status trial_stacks(const struct stack *encoder, const struct stack *decoder, struct error *e);

#endif
