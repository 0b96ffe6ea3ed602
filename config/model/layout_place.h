/* layout_place: where in a checkpoint layers lie, told by the names of its tensors. */
#ifndef CONFIG_LAYOUT_PLACE_H
#define CONFIG_LAYOUT_PLACE_H

#include "config/checkpoint/checkpoint.h"
#include "config/model/layout_family.h"

struct layout_place {
  const struct layout_family *family;
  char address[LAYOUT_ADDRESS_SIZE]; /* what stands before the stems: the family's path and what is
                                        before */
  size_t before;                     /* so many bytes of the address are before the path */
  bool numbered;
  size_t layer; /* where it is numbered */
};

/* The places that the definition's layout, prefix, layer, projection and score allow, in the order
 * of the file: how many there are, of which the first `most` are told; those of cross attention
 * where `cross` asks for them, or the prefix is all of the address. Where names fit two families
 * of which one says more, it is that one: vision_model.encoder.layers.0.self_attn. is no
 * encoder.layers.0.self_attn. behind a prefix. */
size_t layout_place_list(const struct checkpoint *file, const struct definition *d, bool cross,
                         struct layout_place *out, size_t most);

/* The one place that the definition means. Cross attention is meant only by the whole address as
 * prefix; a layer is one of a single stack, which the prefix must tell where the file has several.
 * STATUS_CONFIG where none fits, or several do, naming them. */
enum status layout_place_find(struct layout_place *p, const struct checkpoint *file,
                              const struct definition *d, struct error *e);

/* Is this the name of queries' projection, or of the output's, in a family whose layers are
 * numbered? */
bool layout_place_of_tensor(struct layout_place *p, const char *name);

/* As much of the address as tells its stack from others: what is before "layers.{i}." and its like.
 * Its length. */
size_t layout_place_stack(const struct layout_place *p);

#endif
