/* trial: makes a layer and gives it one small request. */
#ifndef CONFIG_TRIAL_H
#define CONFIG_TRIAL_H

#include "config/model/parameters.h"

/* The layer that has these parameters. It is tried on two queries and two keys of zeros: what comes
 * out is made of biases alone, and where that is beyond float32 no request would be answered, so
 * that the layer is refused. One that computes with a serial OpenBLAS is not tried. NULL with
 * STATUS_CONFIG or STATUS_OUT_OF_MEMORY. */
struct layer *trial_make(const struct parameters *p, enum gemm_engine engine, struct error *e);

#endif
