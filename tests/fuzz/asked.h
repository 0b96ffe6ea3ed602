/* asked: a request to a whole model, read from the bytes of its body, and the bytes of an answer:
 * what the targets of both have in common. */
#ifndef TESTS_FUZZ_ASKED_H
#define TESTS_FUZZ_ASKED_H

#include <jansson.h>

#include "config/checkpoint/safetensors.h"
#include "server/answer/answer.h"
#include "server/model/fields/stack_request.h"
#include "tests/fuzz/fuzz.h"

/* A model of this definition; it is made once for each place. */
const struct model *asked_model(const char *definition, const struct model **place);

/* The same with a tokenizer, of this document. */
const struct model *asked_model_of_words(const char *definition, const char *words,
                                         const struct model **place);

struct asked {
  struct budget budget;
  struct arena arena;
  struct stack_request request;
  struct error error; /* else it was refused */
};

void asked_read(struct asked *d, const struct model *m, const struct body_terms *terms,
                struct input body, unsigned cut);
void asked_end(struct asked *d); /* nothing is left charged */

/* What a target looks at in its requests. */
struct asked_target {
  /* The same body, cut in two ways. */
  void (*must_agree)(const struct stack_request *a, const struct stack_request *b);

  /* Computes the request, and checks its answer; an error is the request's. */
  void (*compute)(const struct model *m, struct asked *d, enum answer_form form, unsigned cut);
};

/* Reads a body at once, and cut, which must come to the same, and computes the request. */
void asked_answer(const struct asked_target *t, const struct model *m,
                  const struct body_terms *terms, struct input body, unsigned cut);

/* Memory for a run of any of the model's stacks; the caller frees it. */
void *asked_scratch(const struct model *m);

/* Computes a run, in spans of so many operations. Returns the one that comes behind it; NULL: all
 * is over, or it failed. */
struct run *asked_compute(struct asked *d, struct run *run, double work, void *scratch);

/* Checks of an answer as JSON, and as safetensors; NULL: only its form. */
struct asked_checks {
  void (*json)(const struct stack_request *r, struct input text);
  void (*tensors)(const struct stack_request *r, struct input text);
};

/* Computes a request that has one answer, in small spans, and checks that. */
void asked_compute_answer(const struct asked_checks *c, const struct model *m, struct asked *d,
                          enum answer_form form);

/* Writes all pieces of an answer, the last one first. The caller frees the bytes. */
struct input answer_text(struct answer *a);

json_t *answer_json(struct input text);                    /* an object */
struct safetensors *answer_safetensors(struct input text); /* to be freed */

#endif
