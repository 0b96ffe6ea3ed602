/* layout_place: finds the places of layers in a checkpoint, by the names of its tensors. */
#ifndef CONFIG_LAYOUT_PLACE_H
#define CONFIG_LAYOUT_PLACE_H

#include "config/checkpoint/checkpoint.h"
#include "config/describe/definition.h"
#include "config/family/layout_family.h"

struct layout_place {
  const struct layout_family *family;
  char address[LAYOUT_ADDRESS_SIZE]; /* what precedes the stems: a prefix and the family's path */
  size_t before;                     /* bytes of the prefix */
  bool numbered;
  size_t layer; /* if it is numbered */
};

/* Marks the tensors that may show a place, which makes the functions below fast in a file of very
 * many tensors, and changes nothing else. Fails only with STATUS_OUT_OF_MEMORY. */
enum status layout_place_mark(struct checkpoint *file, struct error *e);

/* Lists the places that the definition's layout, prefix, layer, projection and score allow, in the
 * order of the file. Returns how many there are; the first `most` are in `out`. Places of cross
 * attention count only if `cross` is true, or if the prefix is the whole address. Where a name fits
 * two families, the one with the longer path has it: vision_model.encoder.layers.0.self_attn. is
 * not encoder.layers.0.self_attn. behind a prefix. */
size_t layout_place_list(const struct checkpoint *file, const struct definition *d, bool cross,
                         struct layout_place *out, size_t most);

/* Finds the one place that the definition means. Cross attention is meant only by a prefix that is
 * the whole address. A layer's number is of one stack, which the prefix must name where the file
 * has several. STATUS_CONFIG where no place fits or several do, naming them. */
enum status layout_place_find(struct layout_place *p, const struct checkpoint *file,
                              const struct definition *d, struct error *e);

/* Is this the name of a projection of queries or of the output, in a family whose layers are
 * numbered? Then *p is its place. */
bool layout_place_of_tensor(struct layout_place *p, const char *name);

/* The length of the part of the address that names the stack: all before "layers.{i}." or its
 * like. */
size_t layout_place_stack(const struct layout_place *p);

#endif
