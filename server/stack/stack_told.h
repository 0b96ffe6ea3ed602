/* stack_told: the sections that tell what texts have become: `tokens`, the `strings` that
 * these stand for, and the `offsets` of what they came from, in characters, and in bytes. */
#ifndef SERVER_STACK_TOLD_H
#define SERVER_STACK_TOLD_H

#include "server/stack/stack_answer_scores.h"
#include "server/stack/stack_tokenize.h"

enum { STACK_TOLD_SECTIONS = 4 };

/* Writes the values of these sections, in the order of their names, one without the lists around
 * them where there is one text alone. Returns the status of `e`: no memory. */
enum status stack_told_write(const struct stack_tokenized *d, struct arena *a,
                             const char *value[STACK_TOLD_SECTIONS], struct error *e);
extern const char *const stack_told_names[STACK_TOLD_SECTIONS];

/* Appends them. */
enum status stack_told_add(struct stack_listing *l, struct arena *a, struct error *e);

#endif
