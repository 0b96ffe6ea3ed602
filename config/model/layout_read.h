/* layout_read: the numbers of a part of a tensor, as they are used. */
#ifndef CONFIG_LAYOUT_READ_H
#define CONFIG_LAYOUT_READ_H

#include "config/model/layout_matrix.h"

/* Reads the part as [rows, columns] row-major, or transposed as [columns, rows], however it lies in
 * the file. From a tensor that is not read in one stretch no more than a piece is held at a time.
 * STATUS_CONFIG as checkpoint_floats, or STATUS_OUT_OF_MEMORY. */
enum status layout_read(struct checkpoint *file, const struct layout_part *part, bool transposed,
                        float *out, struct error *e);

#endif
