/* whole_source: the files of a model: its tensors and the documents in their folder.
 *
 * A source is a folder as Hugging Face or sentence-transformers saves it (there modules.json names
 * the folders of the modules after the model), a file of tensors, a builtin model, or a seed. */
#ifndef CONFIG_WHOLE_SOURCE_H
#define CONFIG_WHOLE_SOURCE_H

#include <jansson.h>

#include "config/checkpoint/checkpoint.h"
#include "core/stack/stack.h"

/* The last of them is for the scores of a cross-encoder, which a vector of the pool becomes. */
enum { WHOLE_DENSE_SCORES = STACK_DENSE_MOST, WHOLE_DENSES };

/* A Dense module of modules.json, or colbert_linear of bge-m3. */
struct whole_dense {
  struct checkpoint *file; /* NULL: no such module */
  const char *stem;        /* of its tensors' names, before "weight" */
  size_t in, out;
  bool bias, tanh, residual;
};

enum { WHOLE_SCORE_TOKENS = 2 };

/* The tokens whose logits at the last row are the score of a text: that of the first, less that of
 * the second. */
struct whole_logit_score {
  size_t tokens; /* 0: there is no such score */
  int64_t token[WHOLE_SCORE_TOKENS];
};

/* The texts of late interaction. */
enum whole_text { WHOLE_TEXT_DOCUMENT, WHOLE_TEXT_QUERY, WHOLE_TEXTS };
extern const char *const whole_text_names[WHOLE_TEXTS + 1]; /* the last is NULL */

/* Late interaction, as of ColBERT: how queries and documents become tokens, and which of these have
 * no vector. Strings and lists belong to its documents. */
struct whole_late {
  const char *file; /* the source of its settings, static text; NULL: all texts are embedded alike */
  struct whole_late_text {
    const char *key, *marker; /* the token after the first one, and its key; NULL: there is none */
    size_t longest;           /* tokens that a text is truncated to; 0: not given */
    const char *length_key;   /* of that, static text */
    bool skips;               /* whether tokens of `skipped` or `punctuation` have no vector */
  } text[WHOLE_TEXTS];
  const json_t *skipped; /* words, a list of strings; or NULL */
  bool punctuation;      /* instead of `skipped`: all punctuation characters of ASCII */
  bool cut;              /* a word skips the first token of its text, not the token of its name */
  const json_t *only;    /* ids of the only tokens of documents that have a vector; NULL: all */
  size_t expanded;       /* queries are padded to so many tokens; 0: they are not */
  const char *filler;    /* with this one; NULL: the mask token, else the end token */
  bool attends;          /* whether padding is attended to */
  size_t size;           /* of a vector; 0: not given */
  bool own;              /* whether the dense layer is among the model's own tensors */
  bool pylate;           /* whether modules.json has a module of PyLate */
  const char *mask;      /* the path of its MultiVectorMask; NULL: it has none */
  json_t *settings;      /* the document at `file`, if it is of late interaction alone; or NULL */
  json_t *masking;       /* config.json of `mask`, or NULL */
};

struct whole_source {
  /* The definition's choice, one of these three; strings belong to the definition. */
  const char *path;
  const char *builtin; /* the name of a builtin model; static text once it is open */
  bool random;
  uint64_t seed; /* of a random model */

  struct checkpoint *file;
  json_t *config, *generation; /* config.json, generation_config.json; NULL: there is none */
  bool each;                   /* the dense layers are for vectors of rows */
  struct whole_late late;
  struct checkpoint *weigher; /* sparse_linear of a folder, or NULL */
  json_t *sentences;          /* config_sentence_transformers.json of a folder, or NULL */

  /* From modules.json. */
  bool modules;                           /* whether there is one */
  json_t *listed;                         /* what it has, or NULL */
  bool fixed;                             /* the model is a StaticEmbedding */
  enum stack_pool pool;                   /* of 1_Pooling; none if a Dense makes scores */
  enum stack_pool scored;                 /* the pool whose vectors become scores */
  struct stack_sparse sparse;             /* of STACK_POOL_SPARSE */
  size_t pool_width;                      /* its word_embedding_dimension; 0: not given */
  bool prompt_left_out;                   /* whether its include_prompt is false */
  bool normalize;                         /* 3_Normalize */
  struct whole_dense dense[WHOLE_DENSES]; /* 2_Dense, and maybe 3_Dense */
  struct whole_logit_score logit_score;   /* 1_LogitScore */
};

/* Opens what the definition's `transformer` names; relative paths start at `directory`. The
 * definition must outlive it. STATUS_CONFIG with the reason, which names the file, or
 * STATUS_OUT_OF_MEMORY. The caller closes it in any case. */
enum status whole_source_open(struct whole_source *s, const json_t *definition,
                              const char *directory, struct error *e);
void whole_source_close(struct whole_source *s);

/* Puts the folder's path before an error, unless the error has it already. Returns e->status. */
enum status whole_source_name_folder(const char *path, struct error *e);

#endif
