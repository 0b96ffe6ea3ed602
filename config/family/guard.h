/* guard: the keys of config.json that would change what a model computes, and of which only one
 * value is supported. A table for both readers: whole_translate.c rejects other values, and
 * hints_compare.c notes that the outputs of a single layer may differ. */
#ifndef CONFIG_GUARD_H
#define CONFIG_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* The supported value. */
enum guard_value {
  GUARD_JSON,       /* `only`, as JSON */
  GUARD_OFF,        /* `only`, which is null, false or 0 */
  GUARD_EACH,       /* a list, one entry for each layer, that has only this value */
  GUARD_HEAD_SIZE,  /* the size of a head */
  GUARD_HEAD_SCALE, /* 1 / sqrt(the size of a head) */
};

/* The models whose reader rejects other values, if the guard names no family. */
enum guard_models {
  GUARD_ALL,
  GUARD_ENCODERS,
  GUARD_DECODERS,
  GUARD_NO_MODEL /* the reader reads the key itself */
};

/* The single layers whose reader notes other values. */
enum guard_layers {
  GUARD_NO_LAYER, /* the key is not about an attention, or hints.h reads it */
  GUARD_LAYER,    /* all */
  GUARD_UNSCALED, /* for which the definition has no scale */
  GUARD_DIVIDED,  /* the same, except layer 0 */
  GUARD_ROTARY,   /* self-attentions with rotary positions; from here on, no cross-attentions */
  GUARD_TURNS,    /* the same; an object that describes the usual ones is supported */
  GUARD_REACH,    /* self-attentions, unless layer_types says that the layer sees all */
  GUARD_KIND,     /* self-attentions; a layer of GUARD_REACH may also be "sliding_attention" */
  GUARD_POSITIONS /* self-attentions; "rotary" is supported if the definition has `rope` */
};

struct guard {
  const char *key;
  const char *only; /* null is always supported; [] and {} are unless this is true or false */
  enum guard_value value;

  const char *family; /* of models; NULL: any */
  enum guard_models models;
  bool rotary;      /* families with rotary positions support other values too */
  const char *moot; /* a key that, if false, makes this one ineffective; NULL: none */

  enum guard_layers layers;
};

size_t guard_count(void);
const struct guard *guard_at(size_t index);

#endif
