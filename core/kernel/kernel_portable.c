/* kernel_portable: the kernels in vectors of 4 floats, for any processor. */
#include "core/kernel/kernel.h"

#define LANES   4
#define VECTORS 2

#include "core/kernel/kernel_vector.h"

#include "core/kernel/kernel_math.h"

#include "core/kernel/kernel_product.h"

#include "core/kernel/kernel_panel.h"

#include "core/kernel/kernel_score.h"

#include "core/kernel/kernel_soft.h"

#include "core/kernel/kernel_choose.h"

#include "core/kernel/kernel_levels.h"

#include "core/kernel/kernel_few.h"

#include "core/kernel/kernel_attend.h"

#include "core/kernel/kernel_measure.h"

#include "core/kernel/kernel_rotary.h"

extern const struct kernel kernel_portable;
KERNEL_TABLE(kernel_portable, CPU_PORTABLE);
