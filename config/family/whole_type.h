/* whole_type: the meaning of each model_type of config.json. A table. */
#ifndef CONFIG_WHOLE_TYPE_H
#define CONFIG_WHOLE_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A model_type of config.json, and the defaults of Hugging Face transformers for missing keys. */
struct whole_type {
  const char *name;
  const char *variant; /* what position_embedding_type, or `tower` of a definition, says if there
                          are several rows of the name; NULL: anything else */
  const char *family;  /* NULL: not supported; `why` has the reason */
  const char *tower;   /* the member of config.json about the model; NULL: the whole document */
  const char *within;  /* a part of the prefix of its tensors; NULL: the prefix may be any */
  const char *why;
  size_t heads;           /* 0: those of the tensors */
  size_t head_size;       /* 0: the width divided by the heads */
  double rope_base;       /* of a family with rotary positions, */
  double rope_local;      /* and of its layers with a window if they have another one */
  double epsilon;         /* of norms */
  const char *activation; /* name in config.json */
  bool scaled_embedding;
  bool head_norms;        /* queries and keys are normalized in each head */
  bool both_ways;         /* use_bidirectional_attention makes an encoder of a decoder */
  bool windows;           /* the key of the window is supported; */
  bool window_asked;      /* it is ignored unless use_sliding_window is true */
  bool window_halved;     /* in both directions: a row attends to half as many on each side */
  size_t window;          /* default of the window; 0: none */
  size_t window_from;     /* default of max_window_layers, the first layer with a window; 0: the key
                             is ignored */
  size_t full_every;      /* default of the key of that name; 0: all layers have a window */
  bool full_first;        /* the first of these layers has no window; else the last */
  size_t unrotated_every; /* default of the key of that name */
  bool untied;            /* the output has its own matrix */
  bool may_part;          /* it has share_encoder_decoder_embeddings and decoder_vocab_size */
  bool pad_banned;        /* the padding token is never generated */
  bool first_behind_pad;  /* positions begin after the padding token */
  size_t first_position;
  int64_t begin, end, pad, forced_end;       /* tokens; -1: none */
  double score_scalar, score_cap, logit_cap; /* defaults of these keys; a cap of 0: none */
};

/* The type of this name, and of this variant, which may be NULL; NULL: unknown. */
const struct whole_type *whole_type_find(const char *name, const char *variant);

/* Is it a type that is not supported, but whose attention is that of a layout, except for what
 * config.json says? */
bool whole_type_has_layers(const char *name, const char *layout);

enum { WHOLE_TYPE_LIST_SIZE = 512 };

/* Writes the names of all supported types: "bert, roberta". */
void whole_type_list(char *out, size_t size);

#endif
