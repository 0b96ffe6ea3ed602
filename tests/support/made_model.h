/* made_model: the one small whole model of a group of tests. */
#ifndef TESTS_MADE_MODEL_H
#define TESTS_MADE_MODEL_H

#include "tests/support/whole_made.h"

static struct whole_made_how made_model_how; /* set by main */
static struct whole_made model;

/* As cmocka's group set-up and tear-down want it. */
static inline int made_model_enter(void **state) {
  (void)state;
  whole_made_init(&model, &made_model_how);
  return 0;
}

static inline int made_model_leave(void **state) {
  (void)state;
  whole_made_free(&model);
  return 0;
}

#endif
