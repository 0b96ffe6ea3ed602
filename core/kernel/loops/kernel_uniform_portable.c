/* kernel_uniform_portable: kernel_portable.c once more, with the bits that all levels have in
 * common. */
#define UNIFORM
#include "core/kernel/loops/kernel_portable.c"
