/* adapter: a LoRA adapter as PEFT saves it: a folder with adapter_config.json and the two small
 * matrices A and B of each module that it changes.
 *
 * Only names, types and shapes are read at first. One thread uses it. */
#ifndef CONFIG_ADAPTER_H
#define CONFIG_ADAPTER_H

#include <stdbool.h>
#include <stddef.h>

#include "config/checkpoint/checkpoint.h"

/* The matrices of one module: its weight W becomes W + scale * B A. */
struct adapter_pair {
  char *module; /* "model.layers.0.self_attn.q_proj" */
  bool table;   /* whether it is a table of embeddings: W becomes W + scale * (B A)^T */
  size_t rank;
  double scale;
  const struct checkpoint_entry *a, *b; /* [rank, in], [out, rank] */
  const struct checkpoint_entry *base;  /* a copy of W as it was before; or NULL */
};

struct adapter {
  char *folder;
  char *base; /* the model that it was made for, as adapter_config.json has it; "": unknown */
  struct checkpoint *file;
  size_t pairs;
  struct adapter_pair *pair; /* [pairs], in the order of the modules' names */
};

/* Is the folder an adapter: has it an adapter_config.json? */
bool adapter_is(const char *folder);

/* NULL with STATUS_CONFIG naming the file and the reason, or STATUS_OUT_OF_MEMORY. */
struct adapter *adapter_open(const char *folder, struct error *e);
void adapter_free(struct adapter *a); /* NULL is fine */

#endif
