/* stack_listing: the sections of a response while they are listed. Private to the files of this
 * folder. */
#ifndef SERVER_STACK_LISTING_H
#define SERVER_STACK_LISTING_H

#include <stdio.h>

#include "server/answer/answer.h"
#include "server/model/fields/stack_request.h"

enum { STACK_PART_NAME_SIZE = 48 };

struct stack_listing {
  const struct stack_request *r;
  struct answer_content *content;
  char (*part)[STACK_PART_NAME_SIZE]; /* [sections] names of the model's parts; NULL: no section
                                         gets one, because they are only counted */
  const size_t *side[STACK_SIDES];    /* [items] rows of the thumbnails of the source and of main;
                                         NULL: not listed yet */
};

/* Appends a section of one list; the array has room for it. */
static inline struct answer_section *stack_listing_add(struct stack_listing *l, const char *group,
                                                       const char *name) {
  struct answer_section *s = &l->content->section[l->content->sections++];
  *s = (struct answer_section){.group = group, .name = name, .items = 1, .heads = 1};
  return s;
}

/* Appends a section that one call of `write` writes, as text in any case, in `room` bytes. */
static inline void stack_listing_add_text(struct stack_listing *l, const char *name, size_t room,
                                          char *(*write)(const struct answer_rows *, char *),
                                          void *data) {
  static const size_t one = 1, zero = 0;
  struct answer_section *s = stack_listing_add(l, NULL, name);
  s->number = NUMBER_TOKEN;
  s->batch = s->single = true;
  s->rows = (struct answer_sizes){&one, 0};
  s->width = s->begin = (struct answer_sizes){&zero, 0};
  s->row_room = room;
  s->data = data;
  s->write = write;
}

/* Names the section that was added last: "decoder.3.cross.input" is number 3 of main with the
 * ending
 * ".cross" and `after` ".input". */
static inline void stack_listing_name(struct stack_listing *l, const struct stack_side *side,
                                      size_t number, const char *ending, const char *after) {
  const size_t last = l->content->sections - 1;
  if (!l->part) return;
  snprintf(l->part[last], STACK_PART_NAME_SIZE, "%.12s.%zu%s%s", side->form->name, number, ending,
           after);
  l->content->section[last].name = l->part[last];
}

#endif
