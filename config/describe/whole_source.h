/* whole_source: the files of a whole model: its tensors, and what stands beside them.
 *
 * A folder as Hugging Face saves it, or as sentence-transformers do: then modules.json names the
 * folders of what comes behind the last layer. Or a file of tensors alone. Or a model that the
 * program brings along. Or a seed. */
#ifndef CONFIG_WHOLE_SOURCE_H
#define CONFIG_WHOLE_SOURCE_H

#include <jansson.h>

#include "config/checkpoint/checkpoint.h"
#include "core/stack/stack.h"

/* A module Dense of modules.json. */
struct whole_dense {
  struct checkpoint *file; /* NULL: there is none */
  size_t in, out;
  bool bias, tanh, residual;
};

struct whole_source {
  /* As the definition says it: one of these. */
  const char *path;
  const char *builtin; /* the name of a model that the program brings along */
  bool random;
  uint64_t seed; /* of random */

  struct checkpoint *file;
  json_t *config, *generation; /* config.json, generation_config.json; NULL: there is none */
  json_t *sentences;           /* likewise config_sentence_transformers.json, of a folder */

  /* Of modules.json. */
  bool modules;                               /* there is one */
  enum stack_pool pool;                       /* of 1_Pooling */
  size_t pool_width;                          /* its word_embedding_dimension; 0: not said */
  bool prompt_left_out;                       /* its include_prompt is false */
  bool normalize;                             /* 3_Normalize */
  struct whole_dense dense[STACK_DENSE_MOST]; /* 2_Dense, and maybe 3_Dense */
};

/* Opens what the definition's `transformer` names; relative paths start at `directory`. The
 * definition must outlive it. STATUS_CONFIG with the reason, which names the file, or
 * STATUS_OUT_OF_MEMORY; what is open then is freed by whole_source_close. */
enum status whole_source_open(struct whole_source *s, const json_t *definition,
                              const char *directory, struct error *e);
void whole_source_close(struct whole_source *s);

/* An error that a file's reader has not begun with the path begins with that of the folder. */
enum status whole_source_name_folder(const char *path, struct error *e);

#endif
