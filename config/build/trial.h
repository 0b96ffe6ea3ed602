/* trial: tries a model on one small request, when it is loaded. */
#ifndef CONFIG_TRIAL_H
#define CONFIG_TRIAL_H

#include "config/build/layer/parameters.h"
#include "core/stack/stack.h"

/* Makes the layer with these parameters and tries it on two queries and two keys of zeros. The
 * output depends on the biases alone; if it exceeds the float32 range, no request would get a
 * response, and the layer is rejected. A layer that computes with a serial OpenBLAS is not tried.
 * NULL with STATUS_CONFIG or STATUS_OUT_OF_MEMORY. */
struct layer *trial_make(const struct parameters *p, enum gemm_engine engine, struct error *e);

/* Tries a whole model on a few tokens, or on rows of zeros if it takes no tokens. One of the stacks
 * may be NULL; otherwise the decoder attends to the encoder's outputs. STATUS_CONFIG if the output
 * is not finite, or STATUS_OUT_OF_MEMORY. */
enum status trial_stacks(const struct stack *encoder, const struct stack *decoder, struct error *e);

#endif
