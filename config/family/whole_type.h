/* whole_type: what each model_type of config.json means. Tables, no more. */
#ifndef CONFIG_WHOLE_TYPE_H
#define CONFIG_WHOLE_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A model_type of config.json, with what the library that writes it takes for a missing key. */
struct whole_type {
  const char *name;
  const char *family; /* NULL: it is not served, and `why` says so */
  const char *tower;  /* the member of config.json that is about its stack; NULL: all of it is */
  const char *why;
  size_t heads;           /* 0: as many as the tensors tell */
  size_t head_size;       /* 0: as wide as all heads together */
  double rope_base;       /* of a family whose positions turn queries and keys */
  double epsilon;         /* of norms */
  const char *activation; /* as config.json says it */
  bool scaled_embedding;
  bool head_norms;       /* queries and keys are normalised head by head */
  bool windows;          /* sliding_window is served, of all layers or none; */
  bool window_asked;     /* but counts only where use_sliding_window says so */
  size_t window;         /* what a missing one is; 0: none */
  bool untied;           /* the output has a matrix of its own */
  bool may_part;         /* share_encoder_decoder_embeddings and decoder_vocab_size count */
  bool pad_banned;       /* the token that pads is never chosen */
  bool first_behind_pad; /* positions begin behind the token that pads */
  size_t first_position;
  int64_t begin, end, pad, forced_end; /* tokens; -1: none */
};

/* The type of this name; NULL: it is not known. */
const struct whole_type *whole_type_find(const char *name);

/* Writes the names of all that are served: "bert, roberta". */
void whole_type_list(char *out, size_t size);

/* Which families a guard is about, where it names none. */
enum whole_guard_of { WHOLE_GUARD_ALL, WHOLE_GUARD_ENCODERS, WHOLE_GUARD_DECODERS };

/* A value of config.json that would change what is computed; only one is served. */
struct whole_type_guard {
  const char *family; /* NULL: any */
  enum whole_guard_of of;
  const char *key;
  const char *only; /* as JSON; null and [], {} always are */
  const char *but;  /* a family that serves others, too; NULL: none */
  bool rotary;      /* families whose positions turn queries and keys serve others, too */
  const char *moot; /* where this key is false the value has no effect; NULL: it always has */
};

size_t whole_type_guard_count(void);
const struct whole_type_guard *whole_type_guard_at(size_t index);

#endif
