/* expression: reads an expression of a template.
 *
 * From the operators that bind least to those that bind most; the grammar is Jinja's, oddities
 * included: -x ** y is (-x) ** y, and "x is y z" takes z for the test's argument. */
#include "config/template/syntax/expression.h"

#include <string.h>

#include "config/template/value/arithmetic.h"
#include "config/template/value/buffer.h"
#include "config/template/value/compare.h"

static struct node *read_or(struct parser *p);
static struct node *read_unary(struct parser *p, bool filters);
static struct node *read_postfix(struct parser *p, struct node *x);

static struct node *unary(struct parser *p, enum node_kind kind, size_t at, struct node *x) {
  struct node *n = x ? parser_node(p, kind, at) : NULL;
  if (n) n->x = x;
  return n;
}

static struct node *binary(struct parser *p, enum node_kind kind, size_t at, struct node *x,
                           struct node *y) {
  struct node *n = y ? unary(p, kind, at, x) : NULL;
  if (n) n->y = y;
  return n;
}

/* --- what is no operator --- */

static struct node *constant(struct parser *p, struct value value) {
  struct node *n = parser_node(p, NODE_CONSTANT, p->next->at);
  if (n) n->value = value;
  return n;
}

static struct node *read_name(struct parser *p) {
  static const struct {
    const char *name, *other;
    struct value value;
  } constants[] = {{"true", "True", {.kind = VALUE_BOOL, .truth = true}},
                   {"false", "False", {.kind = VALUE_BOOL}},
                   {"none", "None", {.kind = VALUE_NONE}}};
  for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
    if (parser_is_name(p, constants[i].name) || parser_is_name(p, constants[i].other)) {
      struct node *n = constant(p, constants[i].value);
      p->next++;
      return n;
    }
  struct node *n = parser_node(p, NODE_NAME, p->next->at);
  if (!n) return NULL;
  n->value = p->next->value;
  if (p->macro) {
    p->macro->varargs |= parser_is_name(p, "varargs");
    p->macro->kwargs |= parser_is_name(p, "kwargs");
    p->macro->caller |= parser_is_name(p, "caller");
  }
  p->next++;
  return n;
}

/* Strings that follow each other are one. */
static struct node *read_strings(struct parser *p) {
  struct node *n = constant(p, p->next->value);
  if (!n || p->next[1].kind != LEXEME_TEXT) return p->next++, n;
  struct buffer text = {0};
  for (; parser_is(p, LEXEME_TEXT); p->next++)
    if (!buffer_add(p->b, &text, p->next->value.text, p->next->value.length)) return NULL;
  n->value = buffer_value(p->b, &text);
  return n->value.kind ? n : NULL;
}

static struct node *read_list(struct parser *p) {
  struct node *n = parser_node(p, NODE_LIST, p->next->at);
  p->next++;
  while (n && !parser_take(p, LEXEME_BRACKET_END)) {
    if (n->count && !parser_expect(p, LEXEME_COMMA, ",")) return NULL;
    if (parser_take(p, LEXEME_BRACKET_END)) break;
    if (!parser_add(p, n, expression_one(p))) return NULL;
  }
  return n;
}

static struct node *read_dict(struct parser *p) {
  struct node *n = parser_node(p, NODE_DICT, p->next->at);
  p->next++;
  while (n && !parser_take(p, LEXEME_BRACE_END)) {
    if (n->count && !parser_expect(p, LEXEME_COMMA, ",")) return NULL;
    if (parser_take(p, LEXEME_BRACE_END)) break;
    if (!parser_add(p, n, expression_one(p)) || !parser_expect(p, LEXEME_COLON, ":") ||
        !parser_add(p, n, expression_one(p)))
      return NULL;
  }
  return n;
}

static struct node *read_primary(struct parser *p) {
  const size_t at = p->next->at;
  struct node *n;
  switch (p->next->kind) {
  case LEXEME_NAME:
    return read_name(p);
  case LEXEME_TEXT:
    return read_strings(p);
  case LEXEME_NUMBER:
    n = constant(p, p->next->value);
    p->next++;
    return n;
  case LEXEME_BRACKET:
    return read_list(p);
  case LEXEME_BRACE:
    return read_dict(p);
  case LEXEME_PARENTHESIS:
    p->next++;
    if (parser_is(p, LEXEME_PARENTHESIS_END))
      n = parser_node(p, NODE_TUPLE, at);
    else
      n = expression_tuple(p, true, NULL);
    return n && parser_expect(p, LEXEME_PARENTHESIS_END, ")") ? n : NULL;
  default:
    return parser_fail(p, "unexpected '%.80s'", lexeme_name(p->next));
  }
}

/* --- calls --- */

static bool add_named(struct parser *p, struct node_arguments *a) {
  if (!bounds_grow(p->b, &a->name, &a->name_room, a->names + 1, sizeof *a->name) ||
      !bounds_grow(p->b, &a->named, &a->named_room, a->names + 1, sizeof(struct node *)))
    return false;
  a->name[a->names] = p->next->value;
  p->next += 2;
  return (a->named[a->names++] = expression_one(p)) != NULL;
}

static bool add_positional(struct parser *p, struct node_arguments *a) {
  struct node *n = expression_one(p);
  if (!n || !bounds_grow(p->b, &a->positional, &a->position_room, a->positions + 1,
                         sizeof(struct node *)))
    return false;
  a->positional[a->positions++] = n;
  return true;
}

static struct node_arguments *no_arguments(struct parser *p) {
  struct node_arguments *a = bounds_alloc(p->b, sizeof *a);
  if (a) *a = (struct node_arguments){0};
  return a;
}

/* Reads "(...)": positions, then names, then *list and **dict. */
static struct node_arguments *read_arguments(struct parser *p) {
  struct node_arguments *a = no_arguments(p);
  if (!a || !parser_expect(p, LEXEME_PARENTHESIS, "(")) return NULL;
  for (bool any = false; !parser_take(p, LEXEME_PARENTHESIS_END); any = true) {
    if (any && !parser_expect(p, LEXEME_COMMA, ",")) return NULL;
    if (any && parser_take(p, LEXEME_PARENTHESIS_END)) break;
    const bool named = parser_is(p, LEXEME_NAME) && p->next[1].kind == LEXEME_ASSIGN;
    bool fits = !a->dict, done;
    if (parser_is(p, LEXEME_MULTIPLY)) {
      fits = fits && !a->list;
      p->next++;
      done = (a->list = expression_one(p)) != NULL;
    } else if (parser_take(p, LEXEME_POWER)) {
      done = (a->dict = expression_one(p)) != NULL;
    } else if (named) {
      done = add_named(p, a);
    } else {
      fits = fits && !a->list && !a->names;
      done = add_positional(p, a);
    }
    if (!done) return NULL;
    if (!fits) return parser_fail(p, "invalid syntax for function call expression");
  }
  return a;
}

static struct node *read_call(struct parser *p, struct node *x) {
  struct node *n = unary(p, NODE_CALL, p->next->at, x);
  return n && (n->arguments = read_arguments(p)) ? n : NULL;
}

/* --- what follows a value --- */

static struct node *read_attribute(struct parser *p, struct node *x) {
  const size_t at = p->next->at;
  p->next++;
  if (parser_is(p, LEXEME_NAME)) {
    struct node *n = unary(p, NODE_ATTRIBUTE, at, x);
    if (n) n->value = p->next->value;
    p->next++;
    return n;
  }
  if (!parser_is(p, LEXEME_NUMBER) || p->next->value.kind != VALUE_INTEGER)
    return parser_fail(p, "expected name or number");
  struct node *n = binary(p, NODE_ITEM, at, x, constant(p, p->next->value));
  p->next++;
  return n;
}

/* A part of a slice, up to a colon or the end: *part is NULL if it is empty. */
static bool read_bound(struct parser *p, struct node **part) {
  *part = NULL;
  if (parser_is(p, LEXEME_COLON) || parser_is(p, LEXEME_BRACKET_END)) return true;
  return (*part = expression_one(p)) != NULL;
}

static struct node *read_subscript(struct parser *p, struct node *x) {
  const size_t at = p->next->at;
  struct node *part[3] = {0};
  p->next++;
  if (parser_is(p, LEXEME_BRACKET_END)) return parser_fail(p, "expected an expression, got ']'");
  if (!read_bound(p, &part[0])) return NULL;
  if (!parser_take(p, LEXEME_COLON)) {
    /* Several subscripts are a tuple. */
    struct node *key = part[0];
    if (parser_is(p, LEXEME_COMMA)) {
      key = parser_node(p, NODE_TUPLE, at);
      if (!key || !parser_add(p, key, part[0])) return NULL;
      while (parser_take(p, LEXEME_COMMA))
        if (!parser_add(p, key, expression_one(p))) return NULL;
    }
    return parser_expect(p, LEXEME_BRACKET_END, "]") ? binary(p, NODE_ITEM, at, x, key) : NULL;
  }
  if (!read_bound(p, &part[1])) return NULL;
  if (parser_take(p, LEXEME_COLON) && !read_bound(p, &part[2])) return NULL;
  struct node *n = unary(p, NODE_SLICE, at, x);
  if (!n || !(n->item = bounds_alloc(p->b, sizeof part))) return NULL;
  memcpy(n->item, part, sizeof part);
  return parser_expect(p, LEXEME_BRACKET_END, "]") ? n : NULL;
}

static struct node *read_postfix(struct parser *p, struct node *x) {
  while (x) {
    if (parser_is(p, LEXEME_DOT))
      x = read_attribute(p, x);
    else if (parser_is(p, LEXEME_BRACKET))
      x = read_subscript(p, x);
    else if (parser_is(p, LEXEME_PARENTHESIS))
      x = read_call(p, x);
    else
      break;
  }
  return x;
}

struct node *expression_filters(struct parser *p, struct node *x, bool started) {
  while (started || parser_take(p, LEXEME_PIPE)) {
    started = false;
    struct node *n = parser_node(p, NODE_FILTER, p->next->at);
    if (!n || !parser_expect_name(p, &n->value)) return NULL;
    n->x = x;
    n->arguments = parser_is(p, LEXEME_PARENTHESIS) ? read_arguments(p) : no_arguments(p);
    if (!n->arguments) return NULL;
    x = n;
  }
  return x;
}

/* Reads "is NAME", with an argument that may lack its parentheses. */
static struct node *read_test(struct parser *p, struct node *x) {
  const size_t at = p->next->at;
  p->next++;
  const bool negated = parser_take_name(p, "not");
  struct node *n = unary(p, NODE_TEST, at, x);
  if (!n || !parser_expect_name(p, &n->value)) return NULL;
  const enum lexeme_kind next = p->next->kind;
  if (next == LEXEME_PARENTHESIS)
    return (n->arguments = read_arguments(p)) ? negated ? unary(p, NODE_NOT, at, n) : n : NULL;
  n->arguments = no_arguments(p);
  if (!n->arguments) return NULL;
  if ((next == LEXEME_NAME && !parser_is_name(p, "else") && !parser_is_name(p, "or") &&
       !parser_is_name(p, "and")) ||
      next == LEXEME_TEXT || next == LEXEME_NUMBER || next == LEXEME_BRACKET ||
      next == LEXEME_BRACE) {
    if (parser_is_name(p, "is")) return parser_fail(p, "tests cannot be chained with is");
    struct node *argument = read_postfix(p, read_primary(p));
    if (!argument || !(n->arguments->positional = bounds_alloc(p->b, sizeof argument))) return NULL;
    n->arguments->positional[n->arguments->positions++] = argument;
  }
  return negated ? unary(p, NODE_NOT, at, n) : n;
}

static struct node *read_filters(struct parser *p, struct node *x) {
  while (x) {
    if (parser_is(p, LEXEME_PIPE))
      x = expression_filters(p, x, false);
    else if (parser_is_name(p, "is"))
      x = read_test(p, x);
    else if (parser_is(p, LEXEME_PARENTHESIS))
      x = read_call(p, x);
    else
      break;
  }
  return x;
}

/* --- operators --- */

static struct node *read_unary(struct parser *p, bool filters) {
  const size_t at = p->next->at;
  struct node *n;
  if (!bounds_enter(p->b)) return NULL;
  if (parser_take(p, LEXEME_SUBTRACT))
    n = unary(p, NODE_NEGATE, at, read_unary(p, false));
  else if (parser_take(p, LEXEME_ADD))
    n = unary(p, NODE_PLUS, at, read_unary(p, false));
  else
    n = read_primary(p);
  n = read_postfix(p, n);
  if (filters) n = read_filters(p, n);
  bounds_leave(p->b);
  return n;
}

/* Operators of one level, which are evaluated from the left. */
static struct node *read_level(struct parser *p, int level) {
  static const struct {
    enum lexeme_kind sign;
    enum arithmetic_operator operator;
    int level;
  } signs[] = {{LEXEME_ADD, ARITHMETIC_ADD, 0},
               {LEXEME_SUBTRACT, ARITHMETIC_SUBTRACT, 0},
               {LEXEME_MULTIPLY, ARITHMETIC_MULTIPLY, 2},
               {LEXEME_DIVIDE, ARITHMETIC_DIVIDE, 2},
               {LEXEME_FLOOR_DIVIDE, ARITHMETIC_FLOOR_DIVIDE, 2},
               {LEXEME_REMAINDER, ARITHMETIC_REMAINDER, 2},
               {LEXEME_POWER, ARITHMETIC_POWER, 3}};
  enum { SIGNS = sizeof signs / sizeof *signs, CONCATENATION = 1, UNARY = 4 };
  if (level == UNARY) return read_unary(p, true);
  struct node *x = read_level(p, level + 1);
  if (level == CONCATENATION && x && parser_is(p, LEXEME_CONCATENATE)) {
    struct node *all = parser_node(p, NODE_CONCATENATE, p->next->at);
    bool done = all && parser_add(p, all, x);
    while (done && parser_take(p, LEXEME_CONCATENATE))
      done = parser_add(p, all, read_level(p, level + 1));
    return done ? all : NULL;
  }
  while (x) {
    size_t i = 0;
    while (i < SIGNS && (signs[i].level != level || !parser_is(p, signs[i].sign))) i++;
    if (i == SIGNS) break;
    const size_t at = p->next->at;
    p->next++;
    x = binary(p, NODE_ARITHMETIC, at, x, read_level(p, level + 1));
    if (x) x->operator=(unsigned char) signs[i].operator;
  }
  return x;
}

/* The operator of a comparison that is next, taken; -1: none. */
static int take_comparison(struct parser *p) {
  static const struct {
    enum lexeme_kind sign;
    enum compare_operator operator;
  } signs[] = {{LEXEME_EQUAL, COMPARE_EQUAL},     {LEXEME_UNEQUAL, COMPARE_UNEQUAL},
               {LEXEME_LESS, COMPARE_LESS},       {LEXEME_LESS_EQUAL, COMPARE_LESS_EQUAL},
               {LEXEME_GREATER, COMPARE_GREATER}, {LEXEME_GREATER_EQUAL, COMPARE_GREATER_EQUAL}};
  for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
    if (parser_take(p, signs[i].sign)) return signs[i].operator;
  if (parser_take_name(p, "in")) return COMPARE_IN;
  if (!parser_is_name(p, "not") || p->next[1].kind != LEXEME_NAME ||
      strcmp(p->next[1].value.text, "in") != 0)
    return -1;
  p->next += 2;
  return COMPARE_NOT_IN;
}

static struct node *read_comparison(struct parser *p) {
  const size_t at = p->next->at;
  struct node *x = read_level(p, 0), *n = NULL;
  while (x) {
    const int operator= take_comparison(p);
    if (operator<0) return n ? n : x;
    if (!n) n = unary(p, NODE_COMPARE, at, x);
    if (!n || !bounds_grow(p->b, &n->operators, &n->operator_room, n->count + 1, 1)) return NULL;
    n->operators[n->count] = (unsigned char)operator;
    if (!parser_add(p, n, read_level(p, 0))) return NULL;
  }
  return NULL;
}

static struct node *read_not(struct parser *p) {
  const size_t at = p->next->at;
  if (!parser_take_name(p, "not")) return read_comparison(p);
  if (!bounds_enter(p->b)) return NULL;
  struct node *n = unary(p, NODE_NOT, at, read_not(p));
  bounds_leave(p->b);
  return n;
}

static struct node *read_and(struct parser *p) {
  struct node *x = read_not(p);
  for (size_t at = p->next->at; x && parser_take_name(p, "and"); at = p->next->at)
    x = binary(p, NODE_AND, at, x, read_not(p));
  return x;
}

static struct node *read_or(struct parser *p) {
  struct node *x = read_and(p);
  for (size_t at = p->next->at; x && parser_take_name(p, "or"); at = p->next->at)
    x = binary(p, NODE_OR, at, x, read_and(p));
  return x;
}

struct node *expression_one(struct parser *p) {
  if (!bounds_enter(p->b)) return NULL;
  struct node *x = read_or(p);
  for (size_t at = p->next->at; x && parser_take_name(p, "if"); at = p->next->at) {
    x = binary(p, NODE_CONDITION, at, x, read_or(p));
    if (!x) break;
    if (parser_take_name(p, "else") && !(x->z = expression_one(p))) x = NULL;
  }
  bounds_leave(p->b);
  return x;
}

/* --- tuples and targets --- */

static bool ends_tuple(const struct parser *p, const char *end) {
  return parser_is(p, LEXEME_VARIABLE_END) || parser_is(p, LEXEME_BLOCK_END) ||
         parser_is(p, LEXEME_PARENTHESIS_END) || (end && parser_is_name(p, end));
}

/* Reads items between commas; several, or one with a comma, are a tuple. */
static struct node *read_items(struct parser *p, struct node *(*read)(struct parser *p),
                               const char *end) {
  const size_t at = p->next->at;
  if (ends_tuple(p, end))
    return parser_fail(p, "expected an expression, got '%.80s'", lexeme_name(p->next));
  struct node *x = read(p);
  if (!x || !parser_is(p, LEXEME_COMMA)) return x;
  struct node *all = parser_node(p, NODE_TUPLE, at);
  if (!all || !parser_add(p, all, x)) return NULL;
  while (parser_take(p, LEXEME_COMMA) && !ends_tuple(p, end))
    if (!parser_add(p, all, read(p))) return NULL;
  return all;
}

struct node *expression_tuple(struct parser *p, bool conditions, const char *end) {
  return read_items(p, conditions ? expression_one : read_or, end);
}

static bool check_target(struct parser *p, const struct node *n) {
  if (n->kind == NODE_NAME) return true;
  if (n->kind != NODE_TUPLE && n->kind != NODE_LIST) {
    parser_fail_at(p, n->at, "cannot assign to this expression");
    return false;
  }
  for (size_t i = 0; i < n->count; i++)
    if (!check_target(p, n->item[i])) return false;
  return true;
}

struct node *expression_target(struct parser *p, bool attributes, const char *end) {
  struct node *n;
  if (attributes && parser_is(p, LEXEME_NAME) && p->next[1].kind == LEXEME_DOT) {
    n = read_name(p);
    return n && n->kind == NODE_NAME ? read_attribute(p, n)
                                     : parser_fail(p, "cannot assign to this expression");
  }
  n = read_items(p, read_primary, end);
  return n && check_target(p, n) ? n : NULL;
}
