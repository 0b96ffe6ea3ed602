/* stack_items: the items of a request that is being checked: their places in the body, and their
 * valid rows, tokens or targets. Private to the files of this folder. */
#ifndef SERVER_STACK_ITEMS_H
#define SERVER_STACK_ITEMS_H

#include "server/model/check/stack_checking.h"

/* Reports an error at an item: "/tokens/3", or "/tokens" if the request is one item without a
 * batch. Returns its status. */
enum status stack_items_refuse(struct stack_check *k, enum stack_field field, size_t item,
                               const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The same at a number of an item: "/tokens/3/17". */
enum status stack_items_refuse_number(struct stack_check *k, enum stack_field field, size_t item,
                                      size_t number, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Numbers or rows of an item in a field that has a list for each item. */
size_t stack_items_count(const struct stack_check *k, enum stack_field field, size_t item);

/* Fails unless the field has a list of integers for each item. */
enum status stack_items_beside(struct stack_check *k, enum stack_field field);

/* The same, and each list must be as long as the item's in the field `as`. */
enum status stack_items_alike(struct stack_check *k, enum stack_field field, enum stack_field as);

/* Writes the valid numbers or rows of each item in the field `of` to `lens`, [items]: as many as
 * the field of lengths says; all of them if that is absent or null. */
enum status stack_items_lens(struct stack_check *k, enum stack_field lengths, enum stack_field of,
                             int32_t *lens);

/* The same by a mask: ones followed by zeros. */
enum status stack_items_mask(struct stack_check *k, enum stack_field mask, enum stack_field of,
                             int32_t *lens);

/* Fails unless each of the item's `count` numbers in this field is from 0 to `end` - 1. */
enum status stack_items_below(struct stack_check *k, enum stack_field field, size_t item,
                              const int32_t *number, size_t count, size_t end);

#endif
