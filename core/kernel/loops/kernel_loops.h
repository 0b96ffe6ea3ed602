/* kernel_loops: all inner loops of one level of instructions, and their table.
 *
 * A template: kernel_<level>.c defines its parameters and includes it once. Each part below uses
 * the parts before it.
 *
 *   KERNEL         the table's name
 *   LEVEL          its enum cpu_level
 *   LANES          floats of a vector: 4, 8 or 16
 *   VECTORS        vectors of a panel of columns or queries: 2 or 4
 *
 * A level with an instruction for one of the following operations defines the operation and its
 * macro. The others are the compiler's vector arithmetic, the same at every width. Operands are
 * vectors of LANES floats or int32_t:
 *
 *   HAVE_FMA       vec_fma(a, b, c): a b + c, rounded once
 *   HAVE_MAX       vec_max, vec_min, and vec_max_int of integers
 *   HAVE_ANY       vec_any(mask): whether a lane of a comparison's result is set
 *   HAVE_SOME      vec_load_some(p, n), vec_store_some(p, v, n): the first n lanes
 *   HAVE_TURN      turn_fours(from, from_row, to, to_row): transposes HAVE_TURN rows of 4 floats
 *   HAVE_FLOAT16   vec_float16(p): LANES numbers of that form
 *   HAVE_INVERSE   vec_inverse(x): 1 / x
 *   HAVE_EXP       vec_exp(x): e^x
 *
 * A file that defines UNIFORM makes kernels whose results have the same bits at every level:
 * products and sums are fused at each of them, no level has an exponential or a reciprocal of its
 * own, and the float sums of norms and measures have one order. Sums in double, of measures and of
 * dot, follow the level: they differ by 1e-16.
 *
 * All parameters are undefined at the end, and so is every macro of the parts. */
#if !defined KERNEL || !defined LEVEL || !defined LANES || !defined VECTORS
#error "define the parameters of kernel_loops.h before including it"
#endif

#include "core/kernel/loops/kernel_vector.h"

#include "core/kernel/loops/kernel_math.h"

#include "core/kernel/loops/kernel_product.h"

#include "core/kernel/loops/kernel_weights.h"

#include "core/kernel/loops/kernel_panel.h"

#include "core/kernel/loops/kernel_score.h"

#include "core/kernel/loops/kernel_soft.h"

#include "core/kernel/loops/kernel_choose.h"

#include "core/kernel/loops/kernel_segments.h"

#include "core/kernel/loops/kernel_few.h"

#include "core/kernel/loops/kernel_attend.h"

#include "core/kernel/loops/kernel_measure.h"

#include "core/kernel/loops/kernel_rotary.h"

#include "core/kernel/loops/kernel_norm.h"

#include "core/kernel/loops/kernel_forward.h"

extern const struct kernel KERNEL;
const struct kernel KERNEL = {.level = LEVEL,
#ifdef UNIFORM
                              .bits = KERNEL_UNIFORM,
#endif
                              .lanes = LANES,
                              .vectors = VECTORS,
                              .product = product,
                              .weights = weights,
                              .widen = widen,
                              .plans = plans,
                              .attend_queries = attend_queries,
                              .attend_scratch = attend_scratch,
                              .attend = attend,
                              .turn_keys = turn_block_of_keys,
                              .carry = carry,
                              .greatest = greatest,
                              .peak = peak,
                              .angles = angles,
                              .rotate = rotate,
                              .norm = norm,
                              .activate = activate,
                              .cap = cap_all,
                              .exp = exp_all,
                              .tanh = tanh_all,
                              .measure_queries = measure_queries,
                              .measure_scratch = measure_scratch,
                              .measure = measure,
                              .dot = dot,
                              .log = log_all};

#undef INLINE
#undef KERNEL
#undef LEVEL
#undef LANES
#undef VECTORS
#undef HAVE_FMA
#undef HAVE_MAX
#undef HAVE_ANY
#undef HAVE_SOME
#undef HAVE_TURN
#undef HAVE_FLOAT16
#undef HAVE_INVERSE
#undef HAVE_EXP
