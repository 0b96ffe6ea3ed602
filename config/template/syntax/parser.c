/* parser: where the reading of a template is, for both kinds of what is read. */
#include "config/template/syntax/parser.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void fail_with(struct parser *p, size_t at, const char *format, va_list args) {
  char said[ERROR_DETAIL_SIZE];
  vsnprintf(said, sizeof said, format, args);
  p->b->at = at;
  bounds_fail(p->b, "%s", said);
}

void *parser_fail(struct parser *p, const char *format, ...) {
  va_list args;
  va_start(args, format);
  fail_with(p, p->next->at, format, args);
  va_end(args);
  return NULL;
}

void *parser_fail_at(struct parser *p, size_t at, const char *format, ...) {
  va_list args;
  va_start(args, format);
  fail_with(p, at, format, args);
  va_end(args);
  return NULL;
}

struct node *parser_node(struct parser *p, enum node_kind kind, size_t at) {
  struct node *n = bounds_alloc(p->b, sizeof *n);
  if (n) *n = (struct node){.kind = kind, .at = at};
  return n;
}

bool parser_add(struct parser *p, struct node *to, struct node *item) {
  if (!item || !bounds_grow(p->b, &to->item, &to->room, to->count + 1, sizeof *to->item))
    return false;
  to->item[to->count++] = item;
  return true;
}

bool parser_is(const struct parser *p, enum lexeme_kind kind) { return p->next->kind == kind; }

bool parser_is_name(const struct parser *p, const char *name) {
  return p->next->kind == LEXEME_NAME && strcmp(p->next->value.text, name) == 0;
}

bool parser_take(struct parser *p, enum lexeme_kind kind) {
  if (!parser_is(p, kind)) return false;
  p->next++;
  return true;
}

bool parser_take_name(struct parser *p, const char *name) {
  if (!parser_is_name(p, name)) return false;
  p->next++;
  return true;
}

bool parser_expect(struct parser *p, enum lexeme_kind kind, const char *what) {
  if (parser_take(p, kind)) return true;
  parser_fail(p, "expected '%s', got '%.80s'", what, lexeme_name(p->next));
  return false;
}

bool parser_expect_name(struct parser *p, struct value *name) {
  *name = p->next->value;
  return parser_expect(p, LEXEME_NAME, "name");
}
