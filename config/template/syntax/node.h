/* node: a template as a tree of expressions and statements. */
#ifndef CONFIG_NODE_H
#define CONFIG_NODE_H

#include "config/template/value/value.h"

enum node_kind {
  /* Expressions. */
  NODE_CONSTANT,  /* `value` */
  NODE_NAME,      /* `value` */
  NODE_ATTRIBUTE, /* x.value */
  NODE_ITEM,      /* x[y] */
  NODE_SLICE,     /* x[item[0]:item[1]:item[2]], each of which may be NULL */
  NODE_LIST,      /* the items */
  NODE_TUPLE,
  NODE_DICT,   /* keys and values in turn */
  NODE_CALL,   /* x(arguments) */
  NODE_FILTER, /* x | value(arguments); x is NULL in a block's filter */
  NODE_TEST,   /* x is value(arguments) */
  NODE_AND,    /* x and y */
  NODE_OR,
  NODE_NOT, /* not x */
  NODE_NEGATE,
  NODE_PLUS,
  NODE_ARITHMETIC,  /* x OPERATOR y: one of arithmetic.h */
  NODE_CONCATENATE, /* the items, by ~ */
  NODE_COMPARE,     /* x OPERATOR item[0] OPERATOR item[1] ...: operators of compare.h */
  NODE_CONDITION,   /* x if y else z; z may be NULL */
  /* Statements. */
  NODE_DATA,         /* writes `value` */
  NODE_OUTPUT,       /* writes x */
  NODE_IF,           /* if x: body; otherwise */
  NODE_FOR,          /* for x in y if z: body; otherwise; `flag`: recursive */
  NODE_SET,          /* x = y */
  NODE_SET_BLOCK,    /* x = body | y */
  NODE_MACRO,        /* value(parameters): body */
  NODE_CALL_BLOCK,   /* x is the call; the body is its caller, with parameters */
  NODE_FILTER_BLOCK, /* y, a filter, of the body */
  NODE_WITH,         /* targets and values in turn; body */
  NODE_SCOPE,        /* the body, whose variables stay within */
  NODE_BREAK,
  NODE_CONTINUE
};

struct node_arguments {
  struct node **positional;
  struct node **named; /* [names] */
  struct value *name;
  size_t positions, names, position_room, named_room, name_room;
  struct node *list, *dict; /* *list and **dict, or NULL */
};

/* A macro's, or those of a call block's body. */
struct node_parameters {
  struct value *name;
  struct node **fallback; /* the default, or NULL */
  size_t count, name_room, fallback_room;
  bool varargs, kwargs, caller; /* does the body name these? */
};

struct node {
  enum node_kind kind;
  unsigned char operator;
  bool flag;
  size_t at; /* byte of the source */
  struct value value;
  struct node *x, *y, *z;
  struct node **item;
  unsigned char *operators; /* of a comparison: [count] */
  size_t count, room, operator_room;
  struct node_arguments *arguments;
  struct node_parameters *parameters;
  struct node *body, *otherwise; /* first statements */
  struct node *next;             /* the statement after this one */
};

#endif
