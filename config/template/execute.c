/* execute: runs the statements of a template, which write its text.
 *
 * Names are looked up where a block is written, and a macro keeps the scope that it was defined in,
 * as does a recursive loop, as in Jinja: what is set within a loop, a macro or a block does not
 * reach beyond it. */
#include "config/template/execute.h"

#include <string.h>

#include "config/template/call/loop.h"
#include "config/template/syntax/lexeme.h"
#include "config/template/value/compare.h"
#include "config/template/value/iterate.h"
#include "config/template/value/print.h"

enum execute_end { EXECUTE_NEXT, EXECUTE_BREAK, EXECUTE_CONTINUE, EXECUTE_FAILED };

static enum execute_end run_all(struct evaluate *r, const struct node *n);

/* --- assignments --- */

static bool assign(struct evaluate *r, const struct node *target, struct value v);

static bool assign_attribute(struct evaluate *r, const struct node *target, struct value v) {
  const struct value space = evaluate_expression(r, target->x);
  r->b.at = target->at;
  if (!space.kind) return false;
  if (space.kind != VALUE_NAMESPACE)
    return bounds_fail(&r->b, "cannot assign attribute on non-namespace object");
  return compare_put(&r->b, space, target->value, v);
}

/* Assigns each item of a value to a target. */
static bool assign_items(struct evaluate *r, const struct node *target, struct value v) {
  struct iterator *i = iterate_value(&r->b, v);
  struct value item;
  size_t count = 0;
  if (!i || !bounds_enter(&r->b)) return false;
  for (; (item = iterate_next(&r->b, i)).kind; count++) {
    if (count == target->count)
      return bounds_fail(&r->b, "too many values to unpack (expected %zu)", target->count);
    if (!assign(r, target->item[count], item)) return false;
  }
  bounds_leave(&r->b);
  return !r->b.e->status &&
         (count == target->count ||
          bounds_fail(&r->b, "not enough values to unpack (expected %zu, got %zu)", target->count,
                      count));
}

static bool assign(struct evaluate *r, const struct node *target, struct value v) {
  if (target->kind == NODE_NAME) return evaluate_set(r, target->value, v);
  return target->kind == NODE_ATTRIBUTE ? assign_attribute(r, target, v)
                                        : assign_items(r, target, v);
}

/* --- blocks whose text is a value --- */

/* Runs statements within a scope of their own, and writes into a new text. */
static enum execute_end run_aside(struct evaluate *r, const struct node *body, struct value *text) {
  struct buffer *const out = r->out, inner = {.most = out->most};
  struct buffer aside = inner;
  struct evaluate_scope *const scope = r->scope;
  if (!evaluate_enter(r)) return EXECUTE_FAILED;
  r->out = &aside;
  const enum execute_end end = run_all(r, body);
  r->out = out;
  r->scope = scope;
  *text = end == EXECUTE_NEXT ? buffer_value(&r->b, &aside) : VALUE_FAILED;
  return end == EXECUTE_NEXT && !text->kind ? EXECUTE_FAILED : end;
}

static enum execute_end run_set_block(struct evaluate *r, const struct node *n) {
  struct value text;
  const enum execute_end end = run_aside(r, n->body, &text);
  if (end != EXECUTE_NEXT) return end;
  text = evaluate_filters(r, n->y, text);
  return text.kind && assign(r, n->x, text) ? EXECUTE_NEXT : EXECUTE_FAILED;
}

static bool write_value(struct evaluate *r, struct value v) {
  return v.kind && print_value(&r->b, r->out, v);
}

static enum execute_end run_filter_block(struct evaluate *r, const struct node *n) {
  struct value text;
  const enum execute_end end = run_aside(r, n->body, &text);
  if (end != EXECUTE_NEXT) return end;
  return write_value(r, evaluate_filters(r, n->y, text)) ? EXECUTE_NEXT : EXECUTE_FAILED;
}

/* --- macros --- */

struct macro {
  const struct node *block;
  struct evaluate_scope *scope; /* where it was defined */
};

static struct value macro_of(struct evaluate *r, const struct node *block) {
  struct macro *m = bounds_alloc(&r->b, sizeof *m);
  if (!m) return VALUE_FAILED;
  *m = (struct macro){block, r->scope};
  r->kept++;
  return (struct value){.kind = VALUE_MACRO, .object = m};
}

/* Looks an argument up by its name; *at is its place. */
static bool find_named(const struct arguments *a, const char *name, size_t *at) {
  for (*at = 0; *at < a->names; ++*at)
    if (strcmp(a->name[*at].text, name) == 0) return true;
  return false;
}

static bool is_parameter(const struct node_parameters *p, const char *name) {
  for (size_t i = 0; i < p->count; i++)
    if (strcmp(p->name[i].text, name) == 0) return true;
  return false;
}

/* Sets varargs, kwargs and caller, for a body that names them; what they would hold is an error
 * for another one. */
static bool set_rest(struct evaluate *r, const struct node *n, const struct arguments *a) {
  struct bounds *b = &r->b;
  const struct node_parameters *p = n->parameters;
  const struct value rest = value_list(b, VALUE_TUPLE), named = value_dict(b, VALUE_DICT);
  size_t at;
  if (!rest.kind || !named.kind) return false;
  const char *name = n->kind == NODE_MACRO ? n->value.text : "caller";
  if (!p->varargs && a->positions > p->count)
    return bounds_fail(b, "macro '%.80s' takes not more than %zu argument(s)", name, p->count);
  for (size_t i = p->count; i < a->positions; i++)
    if (!value_append(b, rest, a->position[i])) return false;
  for (size_t i = 0; i < a->names; i++) {
    if (!bounds_step(b, p->count)) return false;
    if (is_parameter(p, a->name[i].text) || (p->caller && strcmp(a->name[i].text, "caller") == 0))
      continue;
    if (!p->kwargs)
      return bounds_fail(b, "macro '%.80s' takes no keyword argument '%.80s'", name,
                         a->name[i].text);
    if (!compare_put(b, named, a->name[i], a->named[i])) return false;
  }
  const bool called = p->caller && find_named(a, "caller", &at);
  const struct value caller = called ? a->named[at] : value_hint(b, "No caller defined");
  return caller.kind && (!p->varargs || evaluate_set(r, lexeme_word(LEXEME_VARARGS), rest)) &&
         (!p->kwargs || evaluate_set(r, lexeme_word(LEXEME_KWARGS), named)) &&
         (!p->caller || is_parameter(p, "caller") ||
          evaluate_set(r, lexeme_word(LEXEME_CALLER), caller));
}

static bool set_parameters(struct evaluate *r, const struct node *n, const struct arguments *a) {
  const struct node_parameters *p = n->parameters;
  size_t at;
  for (size_t i = 0; i < p->count; i++) {
    struct value v;
    if (!bounds_step(&r->b, a->names)) return false;
    const bool named = find_named(a, p->name[i].text, &at);
    if (named && i < a->positions)
      return bounds_fail(&r->b, "got multiple values for argument '%.80s'", p->name[i].text);
    if (i < a->positions)
      v = a->position[i];
    else if (named)
      v = a->named[at];
    else if (p->fallback[i])
      v = evaluate_expression(r, p->fallback[i]);
    else
      v = value_undefined(&r->b, p->name[i], VALUE_FAILED);
    if (!v.kind || !evaluate_set(r, p->name[i], v)) return false;
  }
  return set_rest(r, n, a);
}

static struct value call_macro(struct evaluate *r, struct value macro, const struct arguments *a) {
  const struct macro *m = macro.object;
  struct evaluate_scope *const scope = r->scope;
  struct value text = VALUE_FAILED;
  if (!bounds_enter(&r->b)) return VALUE_FAILED;
  r->scope = m->scope;
  if (evaluate_enter(r) && set_parameters(r, m->block, a)) run_aside(r, m->block->body, &text);
  r->scope = scope;
  bounds_leave(&r->b);
  return text;
}

static enum execute_end run_call_block(struct evaluate *r, const struct node *n) {
  const struct value caller = macro_of(r, n),
                     text = caller.kind ? evaluate_call(r, n->x, caller) : caller;
  return write_value(r, text) ? EXECUTE_NEXT : EXECUTE_FAILED;
}

/* --- loops --- */

/* The items of a loop that its condition holds for. */
struct filtered {
  struct evaluate *r;
  struct evaluate_scope *scope; /* around the loop */
  const struct node *block;
};

static struct value next_filtered(struct bounds *b, struct iterator *i) {
  const struct filtered *f = i->how;
  struct evaluate *r = f->r;
  struct evaluate_scope *const scope = r->scope;
  struct value item;
  while ((item = iterate_next(b, i->from)).kind) {
    r->scope = f->scope;
    const bool set = evaluate_enter(r) && assign(r, f->block->x, item);
    const struct value holds = set ? evaluate_expression(r, f->block->z) : VALUE_FAILED;
    r->scope = scope;
    if (!holds.kind) return holds;
    if (value_truth(holds)) break;
  }
  return item;
}

static bool begin_loop(struct evaluate *r, const struct node *n, struct value iterated,
                       struct loop *l) {
  struct bounds *b = &r->b;
  l->iterated = iterated;
  l->iterator = iterate_value(b, iterated);
  if (!l->iterator || !n->z) return l->iterator != NULL;
  struct filtered *f = bounds_alloc(b, sizeof *f);
  if (!f) return false;
  *f = (struct filtered){r, r->scope, n};
  r->kept++;
  l->iterated = iterate_lazily(b, next_filtered, l->iterator, f);
  l->iterator = l->iterated.iterator;
  return l->iterated.kind;
}

/* Runs the body for each item, and what is there for none. */
static enum execute_end run_loop(struct evaluate *r, const struct node *n, struct value iterated,
                                 int64_t depth0) {
  struct evaluate_scope *const scope = r->scope;
  struct loop *l = bounds_alloc(&r->b, sizeof *l);
  if (!l) return EXECUTE_FAILED;
  *l = (struct loop){
      .index0 = -1, .length = -1, .depth0 = depth0, .block = n->flag ? n : NULL, .scope = scope};
  r->kept += n->flag;
  const struct value loop = {.kind = VALUE_LOOP, .object = l};
  enum execute_end end = EXECUTE_NEXT;
  bool completed = false; /* an item, without a break or continue: only then is there no else */
  r->b.at = n->y->at;
  if (!begin_loop(r, n, iterated, l)) return EXECUTE_FAILED;
  struct evaluate_scope *own = NULL; /* of the iteration before, if nothing has kept it */
  while (end != EXECUTE_BREAK) {
    const struct value item = loop_next(&r->b, l);
    const size_t kept = r->kept;
    if (!item.kind) break;
    if (own) r->scope = own, evaluate_clear(r);
    const bool set = (own || evaluate_enter(r)) &&
                     evaluate_set(r, lexeme_word(LEXEME_LOOP), loop) && assign(r, n->x, item);
    end = set ? run_all(r, n->body) : EXECUTE_FAILED;
    own = r->kept == kept ? r->scope : NULL;
    r->scope = scope;
    if (end == EXECUTE_FAILED) return end;
    completed |= end == EXECUTE_NEXT;
  }
  if (r->b.e->status) return EXECUTE_FAILED;
  if (completed || !n->otherwise) return EXECUTE_NEXT;
  if (!evaluate_enter(r)) return EXECUTE_FAILED;
  end = run_all(r, n->otherwise);
  r->scope = scope;
  return end;
}

static enum execute_end run_for(struct evaluate *r, const struct node *n) {
  const struct value iterated = evaluate_expression(r, n->y);
  return iterated.kind ? run_loop(r, n, iterated, 0) : EXECUTE_FAILED;
}

/* loop(ITEMS) within a recursive loop: its text for other items, one level deeper. */
static struct value call_loop(struct evaluate *r, struct value loop, const struct arguments *a) {
  const struct loop *l = loop.object;
  struct buffer *const out = r->out, inner = {.most = out->most};
  struct buffer aside = inner;
  struct evaluate_scope *const scope = r->scope;
  if (!l->block)
    return bounds_fail(&r->b,
                       "The loop must have the 'recursive' marker to be called recursively."),
           VALUE_FAILED;
  if (a->positions != 1 || a->names)
    return bounds_fail(&r->b, "a loop is called with one argument"), VALUE_FAILED;
  if (!bounds_enter(&r->b)) return VALUE_FAILED;
  r->out = &aside;
  r->scope = l->scope;
  const enum execute_end end = run_loop(r, l->block, a->position[0], l->depth0 + 1);
  r->out = out;
  r->scope = scope;
  bounds_leave(&r->b);
  return end == EXECUTE_FAILED ? VALUE_FAILED : buffer_value(&r->b, &aside);
}

/* --- the others --- */

static enum execute_end run_if(struct evaluate *r, const struct node *n) {
  for (;;) {
    const struct value condition = evaluate_expression(r, n->x);
    if (!condition.kind) return EXECUTE_FAILED;
    if (value_truth(condition)) return run_all(r, n->body);
    if (!n->otherwise) return EXECUTE_NEXT;
    if (n->otherwise->kind != NODE_IF || n->otherwise->next) return run_all(r, n->otherwise);
    n = n->otherwise;
  }
}

/* The values are those of the scope around the block. */
static enum execute_end run_with(struct evaluate *r, const struct node *n) {
  struct evaluate_scope *const outer = r->scope;
  if (!evaluate_enter(r)) return EXECUTE_FAILED;
  struct evaluate_scope *const inner = r->scope;
  for (size_t i = 0; i < n->count; i += 2) {
    r->scope = outer;
    const struct value v = evaluate_expression(r, n->item[i + 1]);
    r->scope = inner;
    if (!v.kind || !assign(r, n->item[i], v)) return EXECUTE_FAILED;
  }
  const enum execute_end end = run_all(r, n->body);
  r->scope = outer;
  return end;
}

static enum execute_end run_scope(struct evaluate *r, const struct node *n) {
  struct evaluate_scope *const outer = r->scope;
  if (!evaluate_enter(r)) return EXECUTE_FAILED;
  const enum execute_end end = run_all(r, n->body);
  r->scope = outer;
  return end;
}

static bool run_set(struct evaluate *r, const struct node *n) {
  const struct value v = evaluate_expression(r, n->y);
  r->b.at = n->at;
  return v.kind && assign(r, n->x, v);
}

static bool run_output(struct evaluate *r, const struct node *n) {
  const struct value v = evaluate_expression(r, n->x);
  r->b.at = n->at;
  return write_value(r, v);
}

static bool define_macro(struct evaluate *r, const struct node *n) {
  const struct value macro = macro_of(r, n);
  return macro.kind && evaluate_set(r, n->value, macro);
}

static enum execute_end run_one(struct evaluate *r, const struct node *n) {
  bool done;
  switch (n->kind) {
  case NODE_DATA:
    done = buffer_add(&r->b, r->out, n->value.text, n->value.length);
    break;
  case NODE_OUTPUT:
    done = run_output(r, n);
    break;
  case NODE_SET:
    done = run_set(r, n);
    break;
  case NODE_MACRO:
    done = define_macro(r, n);
    break;
  case NODE_IF:
    return run_if(r, n);
  case NODE_FOR:
    return run_for(r, n);
  case NODE_SET_BLOCK:
    return run_set_block(r, n);
  case NODE_CALL_BLOCK:
    return run_call_block(r, n);
  case NODE_FILTER_BLOCK:
    return run_filter_block(r, n);
  case NODE_WITH:
    return run_with(r, n);
  case NODE_SCOPE:
    return run_scope(r, n);
  default:
    return n->kind == NODE_BREAK ? EXECUTE_BREAK : EXECUTE_CONTINUE;
  }
  return done ? EXECUTE_NEXT : EXECUTE_FAILED;
}

static enum execute_end run_all(struct evaluate *r, const struct node *n) {
  enum execute_end end = EXECUTE_NEXT;
  if (!bounds_enter(&r->b)) return EXECUTE_FAILED;
  for (; n && end == EXECUTE_NEXT; n = n->next) {
    r->b.at = n->at;
    end = bounds_step(&r->b, 1) ? run_one(r, n) : EXECUTE_FAILED;
  }
  bounds_leave(&r->b);
  return end;
}

bool execute_template(struct evaluate *r, const struct node *first) {
  r->call_macro = call_macro;
  r->call_loop = call_loop;
  return evaluate_enter(r) && run_all(r, first) != EXECUTE_FAILED;
}
