/* statement: reads a whole template, statements and data. */
#include "config/template/syntax/statement.h"

#include <string.h>

#include "config/template/syntax/expression.h"

static bool read_body(struct parser *p, const char *const *ends, struct node **first);

/* Reads "%} body {% END", and takes END. The block's own end follows. */
static bool read_block(struct parser *p, const char *end, struct node **first) {
  const char *const ends[] = {end, NULL};
  return read_body(p, ends, first) && parser_take_name(p, end);
}

static struct node *read_set(struct parser *p, struct node *n) {
  n->x = expression_target(p, true, NULL);
  if (!n->x) return NULL;
  if (parser_take(p, LEXEME_ASSIGN)) return (n->y = expression_tuple(p, true, NULL)) ? n : NULL;
  n->kind = NODE_SET_BLOCK;
  if (parser_is(p, LEXEME_PIPE) && !(n->y = expression_filters(p, NULL, false))) return NULL;
  return read_block(p, "endset", &n->body) ? n : NULL;
}

static struct node *read_for(struct parser *p, struct node *n) {
  static const char *const ends[] = {"endfor", "else", NULL};
  n->x = expression_target(p, false, "in");
  if (!n->x) return NULL;
  if (!parser_take_name(p, "in"))
    return parser_fail(p, "expected 'in', got '%.80s'", lexeme_name(p->next));
  n->y = expression_tuple(p, false, "recursive");
  if (!n->y || (parser_take_name(p, "if") && !(n->z = expression_one(p)))) return NULL;
  n->flag = parser_take_name(p, "recursive");
  p->loops++;
  const bool done = read_body(p, ends, &n->body);
  p->loops--;
  if (!done) return NULL;
  if (parser_take_name(p, "endfor")) return n;
  p->next++;
  return read_block(p, "endfor", &n->otherwise) ? n : NULL;
}

static struct node *read_if(struct parser *p, struct node *n) {
  static const char *const ends[] = {"elif", "else", "endif", NULL};
  for (struct node *branch = n;;) {
    branch->x = expression_tuple(p, false, NULL);
    if (!branch->x || !read_body(p, ends, &branch->body)) return NULL;
    const size_t at = p->next->at;
    if (parser_take_name(p, "endif")) return n;
    if (parser_take_name(p, "else")) return read_block(p, "endif", &branch->otherwise) ? n : NULL;
    p->next++;
    branch->otherwise = parser_node(p, NODE_IF, at);
    branch = branch->otherwise;
    if (!branch) return NULL;
  }
}

/* Reads "(NAME, NAME=default, ...)". */
static bool read_parameters(struct parser *p, struct node_parameters *to) {
  if (!parser_expect(p, LEXEME_PARENTHESIS, "(")) return false;
  bool defaults = false;
  while (!parser_take(p, LEXEME_PARENTHESIS_END)) {
    if (to->count && !parser_expect(p, LEXEME_COMMA, ",")) return false;
    if (!bounds_grow(p->b, &to->name, &to->name_room, to->count + 1, sizeof *to->name) ||
        !bounds_grow(p->b, &to->fallback, &to->fallback_room, to->count + 1,
                     sizeof(struct node *)) ||
        !parser_expect_name(p, &to->name[to->count]))
      return false;
    to->fallback[to->count] = NULL;
    if (parser_take(p, LEXEME_ASSIGN)) {
      to->fallback[to->count] = expression_one(p);
      if (!to->fallback[to->count]) return false;
      defaults = true;
    } else if (defaults) {
      parser_fail(p, "non-default argument follows default argument");
      return false;
    }
    to->count++;
  }
  return true;
}

/* Reads the body of a macro, in which no loop around it can be ended. */
static bool read_macro_body(struct parser *p, struct node *n, const char *end) {
  struct node_parameters *const outer = p->macro;
  const size_t loops = p->loops;
  p->macro = n->parameters;
  p->loops = 0;
  const bool done = read_block(p, end, &n->body);
  p->macro = outer;
  p->loops = loops;
  if (outer) { /* what a macro within this one names, this one takes, too */
    outer->varargs |= n->parameters->varargs;
    outer->kwargs |= n->parameters->kwargs;
    outer->caller |= n->parameters->caller;
  }
  return done;
}

static struct node *read_macro(struct parser *p, struct node *n) {
  if (!parser_expect_name(p, &n->value) || !read_parameters(p, n->parameters)) return NULL;
  return read_macro_body(p, n, "endmacro") ? n : NULL;
}

static struct node *read_call_block(struct parser *p, struct node *n) {
  if (parser_is(p, LEXEME_PARENTHESIS) && !read_parameters(p, n->parameters)) return NULL;
  const size_t at = p->next->at;
  n->x = expression_one(p);
  if (!n->x) return NULL;
  if (n->x->kind != NODE_CALL) return parser_fail_at(p, at, "expected call");
  return read_macro_body(p, n, "endcall") ? n : NULL;
}

static struct node *read_filter_block(struct parser *p, struct node *n) {
  n->y = expression_filters(p, NULL, true);
  return n->y && read_block(p, "endfilter", &n->body) ? n : NULL;
}

static struct node *read_with(struct parser *p, struct node *n) {
  while (!parser_is(p, LEXEME_BLOCK_END)) {
    if (n->count && !parser_expect(p, LEXEME_COMMA, ",")) return NULL;
    if (!parser_add(p, n, expression_target(p, false, NULL)) ||
        !parser_expect(p, LEXEME_ASSIGN, "=") || !parser_add(p, n, expression_one(p)))
      return NULL;
  }
  return read_block(p, "endwith", &n->body) ? n : NULL;
}

static struct node *read_generation(struct parser *p, struct node *n) {
  return read_macro_body(p, n, "endgeneration") ? n : NULL;
}

static struct node *read_jump(struct parser *p, struct node *n) {
  return p->loops ? n : parser_fail_at(p, n->at, "this tag needs a loop around it");
}

/* Writes each of the expressions. */
static struct node *read_print(struct parser *p, struct node *n) {
  struct node *last = n;
  n->x = expression_one(p);
  while (last->x && parser_take(p, LEXEME_COMMA)) {
    last->next = parser_node(p, NODE_OUTPUT, n->at);
    last = last->next;
    if (!last) return NULL;
    last->x = expression_one(p);
  }
  return last->x ? n : NULL;
}

static const struct {
  const char *name;
  struct node *(*read)(struct parser *p, struct node *n);
  enum node_kind kind;
  bool parameters; /* is it a macro, or like one? */
} tags[] = {{"if", read_if, NODE_IF, false},
            {"for", read_for, NODE_FOR, false},
            {"set", read_set, NODE_SET, false},
            {"macro", read_macro, NODE_MACRO, true},
            {"call", read_call_block, NODE_CALL_BLOCK, true},
            {"filter", read_filter_block, NODE_FILTER_BLOCK, false},
            {"with", read_with, NODE_WITH, false},
            {"generation", read_generation, NODE_SCOPE, true},
            {"print", read_print, NODE_OUTPUT, false},
            {"break", read_jump, NODE_BREAK, false},
            {"continue", read_jump, NODE_CONTINUE, false}};
enum { TAGS = sizeof tags / sizeof *tags };

/* Reads a statement after "{%", up to its last "%}". */
static struct node *read_tag(struct parser *p) {
  size_t i = 0;
  if (!parser_is(p, LEXEME_NAME)) return parser_fail(p, "tag name expected");
  while (i < TAGS && strcmp(p->next->value.text, tags[i].name) != 0) i++;
  if (i == TAGS) return parser_fail(p, "unknown or unsupported tag '%.80s'", p->next->value.text);
  struct node *n = parser_node(p, tags[i].kind, p->next->at);
  if (n && tags[i].parameters) {
    n->parameters = bounds_alloc(p->b, sizeof *n->parameters);
    if (!n->parameters) return NULL;
    *n->parameters = (struct node_parameters){0};
  }
  p->next++;
  if (!n || !bounds_enter(p->b)) return NULL;
  n = tags[i].read(p, n);
  bounds_leave(p->b);
  return n && parser_expect(p, LEXEME_BLOCK_END, "%}") ? n : NULL;
}

static bool is_end(const struct parser *p, const char *const *ends) {
  for (; ends && *ends; ends++)
    if (parser_is_name(p, *ends)) return true;
  return false;
}

/* Reads statements up to one of the end tags, whose name is next then; or all, without ends. */
static bool read_statements(struct parser *p, const char *const *ends, struct node **last) {
  while (!parser_is(p, LEXEME_END)) {
    struct node *n = NULL;
    if (parser_is(p, LEXEME_DATA)) {
      n = parser_node(p, NODE_DATA, p->next->at);
      if (n) n->value = p->next->value;
      p->next++;
    } else if (parser_is(p, LEXEME_VARIABLE_BEGIN)) {
      n = parser_node(p, NODE_OUTPUT, p->next->at);
      p->next++;
      if (n) n->x = expression_tuple(p, true, NULL);
      if (!n || !n->x || !parser_expect(p, LEXEME_VARIABLE_END, "}}")) return false;
    } else {
      p->next++;
      if (is_end(p, ends)) return true;
      n = read_tag(p);
    }
    if (!n) return false;
    *last = n;
    while (*last) last = &(*last)->next;
  }
  if (!ends) return true;
  parser_fail(p, "unexpected end of template: '%s' is missing", *ends);
  return false;
}

static bool read_body(struct parser *p, const char *const *ends, struct node **first) {
  *first = NULL;
  parser_take(p, LEXEME_COLON);
  return parser_expect(p, LEXEME_BLOCK_END, "%}") && read_statements(p, ends, first);
}

bool statement_all(struct parser *p, struct node **first) {
  *first = NULL;
  return read_statements(p, NULL, first);
}
