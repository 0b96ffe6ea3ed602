/* stack_items: the items of a request that is being checked: where each stands in the body, and how
 * many of its rows, tokens or targets count. For the files of stack_check alone. */
#ifndef SERVER_STACK_ITEMS_H
#define SERVER_STACK_ITEMS_H

#include "server/model/check/stack_checking.h"

/* Refuses an item: at "/tokens/3", or at "/tokens" where there is but one, which is no batch. */
enum status stack_items_refuse(struct stack_check *k, enum stack_field field, size_t item,
                               const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Refuses a number of an item: at "/tokens/3/17". */
enum status stack_items_refuse_number(struct stack_check *k, enum stack_field field, size_t item,
                                      size_t number, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* The numbers or rows that an item has in a field with a list of them for each item. */
size_t stack_items_count(const struct stack_check *k, enum stack_field field, size_t item);

/* Do the lists of integers of a field belong to the same items as the rows? */
enum status stack_items_beside(struct stack_check *k, enum stack_field field);

/* And are there as many to each as in that field? */
enum status stack_items_alike(struct stack_check *k, enum stack_field field, enum stack_field as);

/* How many of an item's numbers or rows in the field `of` count, of all items: those that the field
 * of lengths says; all of them, where it is absent or null. */
enum status stack_items_lens(struct stack_check *k, enum stack_field lengths, enum stack_field of,
                             int32_t *lens);

/* Likewise, as a mask of ones says, with zeros behind them. */
enum status stack_items_mask(struct stack_check *k, enum stack_field mask, enum stack_field of,
                             int32_t *lens);

/* Is each number of an item, of so many in this field, one of those from 0 to before `end`? */
enum status stack_items_below(struct stack_check *k, enum stack_field field, size_t item,
                              const int32_t *number, size_t count, size_t end);

#endif
