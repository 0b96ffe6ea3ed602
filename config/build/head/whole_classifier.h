/* whole_classifier: the classifier of a model, of texts, of tokens, or of the spans that answer
 * questions: the tensors of its layers, the names of its classes, and the function that makes
 * probabilities of their scores. */
#ifndef CONFIG_WHOLE_CLASSIFIER_H
#define CONFIG_WHOLE_CLASSIFIER_H

#include "config/build/plan/whole_plan.h"

/* Finds the layers of the classifier that the definition or config.json names, unless it names
 * another head. STATUS_CONFIG if some layers are there, and one is missing. */
enum status whole_classifier_find(struct whole_plan *p, struct error *e);

/* Sets the form's classifier, the labels and the function. STATUS_CONFIG if the settings of a
 * classifier do not match the tensors or each other, or if there is no classifier. */
enum status whole_classifier_complete(struct whole_plan *p, struct error *e);

#endif
