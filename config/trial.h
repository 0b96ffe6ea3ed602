/* trial: one small request through a layer that has just been made. */
#ifndef CONFIG_TRIAL_H
#define CONFIG_TRIAL_H

#include "core/layer.h"

/* Two queries and two keys of zeros: what comes out is made of biases alone. STATUS_CONFIG where
 * that is beyond float32, for then no request would be answered; STATUS_OUT_OF_MEMORY. */
enum status trial_run(const struct layer *l, const struct layer_shape *s, struct error *e);

#endif
