/* kernel_portable: the kernels in vectors of 4 floats, for any processor. */
#include "core/kernel.h"

#define LANES   4
#define VECTORS 2

#include "core/kernel_vector.h"

#include "core/kernel_math.h"

#include "core/kernel_product.h"

#include "core/kernel_panel.h"

#include "core/kernel_score.h"

#include "core/kernel_soft.h"

#include "core/kernel_choose.h"

#include "core/kernel_levels.h"

#include "core/kernel_few.h"

#include "core/kernel_attend.h"

#include "core/kernel_measure.h"

#include "core/kernel_rotary.h"

extern const struct kernel kernel_portable;
KERNEL_TABLE(kernel_portable, CPU_PORTABLE);
