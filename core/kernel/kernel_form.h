/* kernel_form: the number formats of stored matrices. */
#ifndef CORE_KERNEL_FORM_H
#define CORE_KERNEL_FORM_H

enum kernel_form {
  KERNEL_FLOAT32,
  KERNEL_BFLOAT16, /* the upper half of a float32 */
  KERNEL_FLOAT16,  /* IEEE 754's binary16; finite */
  KERNEL_FORMS
};

#endif
