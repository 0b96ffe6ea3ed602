/* loop: the variable `loop` of a for block. */
#ifndef CONFIG_LOOP_H
#define CONFIG_LOOP_H

#include "config/template/value/iterate.h"

struct loop {
  struct value iterated;     /* what is iterated; no length if it is filtered */
  struct iterator *iterator; /* of it */
  int64_t index0;            /* -1 before the first item */
  int64_t length;            /* -1: not yet known */
  bool peeked;               /* was the item after this one read already? */
  struct value before, current, after;
  struct value changed; /* what loop.changed() was last called with, a tuple; or MISSING */
  int64_t depth0;       /* of a recursive loop within itself */
  const void *block;    /* what renders a recursive loop anew; NULL: it is not recursive */
  void *scope;          /* around it, of a recursive loop */
};

/* Returns the next item. MISSING at the end, and after a failure. */
struct value loop_next(struct bounds *b, struct loop *l);

/* The attribute of a name, *found, or not. VALUE_FAILED after a failure. */
struct value loop_attribute(struct bounds *b, struct loop *l, struct value name, bool *found);

#endif
