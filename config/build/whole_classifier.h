/* whole_classifier: the classifier of an encoder: which tensors are its layers, how its classes are
 * called, and what becomes of their scores. */
#ifndef CONFIG_WHOLE_CLASSIFIER_H
#define CONFIG_WHOLE_CLASSIFIER_H

#include "config/build/whole.h"
#include "config/build/whole_plan.h"

/* Finds the layers of a classifier of items, where the file has both and config.json does not say
 * that they are another head's. STATUS_CONFIG where it says that they are such, and one of them is
 * not there. */
enum status whole_classifier_find(struct whole_plan *p, struct error *e);

/* Sets the form's classifier, the labels and the function. STATUS_CONFIG where what is said of them
 * does not go with the tensors, or with each other, or where there is no classifier. */
enum status whole_classifier_settle(struct whole_plan *p, struct error *e);

/* The same of the model that is made. STATUS_OUT_OF_MEMORY. */
enum status whole_classifier_describe(struct whole *w, const struct whole_plan *p, struct error *e);

#endif
