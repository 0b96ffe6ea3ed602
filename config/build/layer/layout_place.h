/* layout_place: finds the places of layers in a checkpoint, by the names of its tensors. */
#ifndef CONFIG_LAYOUT_PLACE_H
#define CONFIG_LAYOUT_PLACE_H

#include "config/checkpoint/checkpoint.h"
#include "config/describe/definition.h"
#include "config/family/layout_family.h"

struct layout_place {
  const struct layout_family *family;
  char address[LAYOUT_ADDRESS_SIZE]; /* prefix and path of the family: the stems follow it */
  size_t before;                     /* bytes of the prefix */
  bool numbered;
  size_t layer; /* if it is numbered */
};

/* Marks the tensors that may show a place: the functions below are then fast in a file of very many
 * tensors. Fails only with STATUS_OUT_OF_MEMORY. */
enum status layout_place_mark(struct checkpoint *file, struct error *e);

/* Lists the places that the definition's layout, prefix, layer, projection and score allow, in the
 * order of the file. Returns their number; the first `most` are in `out`. Places of cross-attention
 * are included if `cross`, or if the prefix is the whole address. A name that fits two families
 * belongs to the one with the longer path: vision_model.encoder.layers.0.self_attn. is not
 * encoder.layers.0.self_attn. after a prefix. */
size_t layout_place_list(const struct checkpoint *file, const struct definition *d, bool cross,
                         struct layout_place *out, size_t most);

/* Finds the one place of the definition. A cross-attention needs its whole address as the prefix. A
 * layer's number belongs to one stack, which the prefix must name if the file has several.
 * STATUS_CONFIG if no place fits, or several, which it names. */
enum status layout_place_find(struct layout_place *p, const struct checkpoint *file,
                              const struct definition *d, struct error *e);

/* Is this the name of a projection of queries or of the output, in a family with numbered layers?
 * Then *p becomes its place. */
bool layout_place_of_tensor(struct layout_place *p, const char *name);

/* The length of the part of the address that names the stack: all before "layers.{i}.". */
size_t layout_place_stack(const struct layout_place *p);

#endif
