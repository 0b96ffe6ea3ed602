/* stack_names: names of the parts of a model in a request, and what is asked of them. */
#include "server/model/fields/stack_names.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "server/json/json_small.h"
#include "server/model/fields/stack_values.h"

enum { THUMBNAIL_MAX = 64, DIGITS_MAX = 5 };

/* --- which parts a name means --- */

/* The parts of one sort that a name means: `first` to `end` - 1. None: both are 0. */
struct stack_named {
  size_t first, end;
};

static bool is_any(struct stack_named p) { return p.end > p.first; }

/* Reads the number, `*` or `-1` at `at`, of `count` parts, and returns the text after it; NULL: it
 * is none of these, or no part has the number. */
static const char *read_number(const char *at, size_t count, struct stack_named *out) {
  size_t number = 0, digits = 0;
  if (*at == '*') {
    *out = (struct stack_named){0, count};
    return at + 1;
  }
  if (at[0] == '-' && at[1] == '1') {
    *out = (struct stack_named){count - 1, count};
    return at + 2;
  }
  for (; at[digits] >= '0' && at[digits] <= '9' && digits < DIGITS_MAX; digits++)
    number = number * 10 + (size_t)(at[digits] - '0');
  if (digits == 0 || (digits > 1 && *at == '0') || number >= count) return NULL;
  *out = (struct stack_named){number, number + 1};
  return at + digits;
}

/* The parts, of `count`, that "STACK.NUMBER" followed by `suffix` means. */
static struct stack_named find_parts(const char *name, size_t length, const char *stack,
                                     const char *suffix, size_t count) {
  struct stack_named found = {0, 0};
  const size_t before = strlen(stack);
  if (strlen(name) != length || strncmp(name, stack, before) != 0 || name[before] != '.')
    return (struct stack_named){0, 0};
  const char *end = read_number(name + before + 1, count, &found);
  return end && strcmp(end, suffix) == 0 ? found : (struct stack_named){0, 0};
}

/* The attentions of a side that a name with this suffix means, by their numbers. */
static struct stack_named find_attentions(const struct stack_side *s, const char *name,
                                          size_t length, const char *suffix) {
  enum { ENDING_SIZE = 16 };
  if (!s->stack) return (struct stack_named){0, 0};
  const size_t layers = s->form->layers;
  for (size_t first = 0; first < stack_form_attentions(s->form); first += layers) {
    char ending[ENDING_SIZE];
    snprintf(ending, sizeof ending, "%s%s", stack_side_ending(s, first), suffix);
    const struct stack_named of = find_parts(name, length, s->form->name, ending, layers);
    if (is_any(of)) return (struct stack_named){first + of.first, first + of.end};
  }
  return (struct stack_named){0, 0};
}

/* The attentions that a name means, of the side that has them; if none has, `*side` is the main
 * one. */
static struct stack_named find_side(struct stack_values *v, const char *name, size_t length,
                                    struct stack_side **side) {
  const struct stack_named of = find_attentions(&v->source, name, length, "");
  *side = is_any(of) ? &v->source : &v->main;
  return is_any(of) ? of : find_attentions(&v->main, name, length, "");
}

/* --- errors --- */

enum { INDEX_SIZE = 8 }; /* bytes of "/9999" after a pointer, and more */

/* Writes a name as it may be shown and, after `within`, as a pointer that leaves room for an index
 * after it. */
static void point_at(const char *within, const char *name, size_t length,
                     char shown[CONTRACT_NAME_SHOWN + 1], char pointer[ERROR_POINTER_SIZE]) {
  const size_t before = (size_t)snprintf(pointer, ERROR_POINTER_SIZE, "%s", within);
  contract_show_name(name, length, shown, pointer + before,
                     ERROR_POINTER_SIZE - INDEX_SIZE - before);
}

/* Reports that a name matches nothing, and lists the names that would. */
static enum status refuse_name(struct stack_values *v, bool hidden, const char *pointer,
                               const char *shown, struct error *e) {
  char states[96] = "", attentions[256] = "";
  const char *const suffix = hidden ? ".input" : "";
  size_t states_used = 0, used = 0;
  for (unsigned i = 0; i < STACK_SIDES; i++) {
    const struct stack_side *s = stack_values_side(v, i);
    if (!s->stack) continue;
    const char *const name = s->form->name;
    const size_t layers = s->form->layers;
    if (hidden)
      states_used +=
          (size_t)snprintf(states + states_used, sizeof states - states_used, "%s%s.0 to %s.%zu",
                           states_used ? ", " : "", name, name, layers);
    /* "encoder.0.self to encoder.2.self", for each sort of attention. */
    for (size_t at = 0; at < stack_form_attentions(s->form); at += layers) {
      const char *ending = stack_side_ending(s, at);
      if (used < sizeof attentions)
        used += (size_t)snprintf(attentions + used, sizeof attentions - used,
                                 "%s%s.0%s%s to %s.%zu%s%s", used ? ", " : "", name, ending, suffix,
                                 name, layers - 1, ending, suffix);
    }
  }
  if (!*attentions) /* a model without layers */
    return hidden
               ? error_at(e, pointer, "unknown hidden state \"%s\". Available: %s", shown, states)
               : error_at(e, pointer, "unknown attention \"%s\": the model has none", shown);
  if (!hidden)
    return error_at(
        e, pointer,
        "unknown attention \"%s\". Available: %s; use * for all layers, -1 for the last", shown,
        attentions);
  return error_at(
      e, pointer,
      "unknown hidden state \"%s\". Available: %s, and %s; use * for all layers, -1 for the last",
      shown, states, attentions);
}

/* --- lists of names --- */

/* A list of names that is being read, and the wish that each name sets. */
struct stack_list {
  struct stack_values *values;
  const char *pointer;    /* the list's place in the body */
  bool hidden;            /* whether the names are of hidden states; else they are of attentions */
  bool ablation;          /* whether the heads of attentions are measured; then `wish` is ignored */
  struct stack_wish wish; /* weights and thumbnail of each attention */
};

static void wish_states(struct stack_side *s, struct stack_named states) {
  for (size_t l = states.first; l < states.end; l++)
    *(l == 0 ? &s->embedded : &s->wish[l - 1].hidden) = true;
}

static void wish_attentions(const struct stack_list *list, struct stack_side *s,
                            struct stack_named of) {
  for (size_t i = of.first; i < of.end; i++) {
    struct stack_wish *wish = &s->wish[i];
    if (list->hidden) {
      wish->input = true;
    } else if (list->ablation) {
      wish->ablation = true;
    } else {
      wish->weights = list->wish.weights;
      wish->thumbnail = list->wish.thumbnail;
    }
  }
}

/* Whether all parts of a sort were named before. If a list repeats `*`, only the first one costs a
 * loop over all layers. */
struct stack_complete {
  bool states, self, cross;
};

/* Whether a name means parts that may not have been named before. Sets `complete` if it means all
 * `count` of them. */
static bool is_new(struct stack_named p, size_t count, bool *complete) {
  const bool before = *complete;
  *complete = before || p.end - p.first == count;
  return is_any(p) && !before;
}

/* Sets the wishes for the parts of one side that a name means. False: it means none. */
static bool wish_parts(const struct stack_list *list, struct stack_side *s, const char *name,
                       size_t length, struct stack_complete *complete) {
  if (!s->stack) return false;
  const size_t layers = s->form->layers;
  const struct stack_named states = list->hidden
                                        ? find_parts(name, length, s->form->name, "", layers + 1)
                                        : (struct stack_named){0, 0};
  const struct stack_named of = find_attentions(s, name, length, list->hidden ? ".input" : "");
  if (is_new(states, layers + 1, &complete->states)) wish_states(s, states);
  if (is_new(of, layers, stack_side_is_across(s, of.first) ? &complete->cross : &complete->self))
    wish_attentions(list, s, of);
  return is_any(states) || is_any(of);
}

static enum status read_list(const struct stack_list *list, const json_t *names, struct error *e) {
  struct stack_complete complete[STACK_SIDES] = {0};
  for (size_t i = 0; i < json_array_size(names); i++) {
    const json_t *name = json_array_get(names, i);
    char pointer[ERROR_POINTER_SIZE], shown[CONTRACT_NAME_SHOWN + 1], unused[ERROR_POINTER_SIZE];
    snprintf(pointer, sizeof pointer, "%s/%zu", list->pointer, i);
    if (!json_is_string(name)) return error_at(e, pointer, "a name must be a string");
    bool known = false;
    for (unsigned side = 0; side < STACK_SIDES; side++)
      known |= wish_parts(list, stack_values_side(list->values, side), json_string_value(name),
                          json_string_length(name), &complete[side]);
    if (known) continue;
    contract_show_name(json_string_value(name), json_string_length(name), shown, unused,
                       sizeof unused);
    return refuse_name(list->values, list->hidden, pointer, shown, e);
  }
  return STATUS_OK;
}

/* --- return_hidden --- */

enum status stack_names_hidden(const json_t *value, const struct contract_field *field, void *to,
                               struct error *e) {
  struct stack_values *v = to;
  const struct stack_list list = {.values = v, .pointer = field->pointer, .hidden = true};
  const bool all = json_small_is_text(value, "all");
  if (json_is_array(value)) return read_list(&list, value, e);
  if (json_is_false(value)) return STATUS_OK;
  if (!all && !json_is_true(value))
    return error_at(e, field->pointer,
                    "return_hidden must be true, false, \"all\" or a list of names");
  for (unsigned i = 0; i < STACK_SIDES; i++) {
    struct stack_side *s = stack_values_side(v, i);
    const size_t states = s->stack ? s->form->layers + 1 : 0;
    if (states) wish_states(s, (struct stack_named){all ? 0 : states - 1, states});
  }
  return STATUS_OK;
}

/* --- return_attention --- */

static enum status read_form(const json_t *value, struct stack_wish *wish, struct error *e) {
  const json_t *n = json_object_get(value, "thumbnails");
  const bool heads = json_small_is_text(value, "heads");
  if (heads || json_small_is_text(value, "average")) {
    wish->weights = heads ? STACK_WEIGHTS_PER_HEAD : STACK_WEIGHTS_AVERAGE;
    return STATUS_OK;
  }
  if (!json_is_object(value) || json_object_size(value) != 1 || !n)
    return error_at(e, "/return_attention/as",
                    "\"as\" must be \"heads\", \"average\" or {\"thumbnails\": n}");
  if (!json_is_integer(n) || json_integer_value(n) < 1 || json_integer_value(n) > THUMBNAIL_MAX)
    return error_at(e, "/return_attention/as/thumbnails",
                    "thumbnails must be an integer from 1 to %d", THUMBNAIL_MAX);
  wish->weights = STACK_WEIGHTS_THUMBNAILS;
  wish->thumbnail = (size_t)json_integer_value(n);
  return STATUS_OK;
}

/* Reads {"of": names, "as": form}, with both and nothing else. */
static enum status read_named(struct stack_values *v, const json_t *value, struct error *e) {
  const json_t *of = json_object_get(value, "of"), *as = json_object_get(value, "as");
  struct stack_list list = {.values = v, .pointer = "/return_attention/of"};
  const char *key;
  json_t *unused;
  json_object_foreach((json_t *)value, key, unused) {
    char shown[CONTRACT_NAME_SHOWN + 1], pointer[ERROR_POINTER_SIZE];
    point_at("/return_attention", key, strlen(key), shown, pointer);
    if (strcmp(key, "of") != 0 && strcmp(key, "as") != 0)
      return error_at(e, pointer, "unknown key \"%s\": expected \"of\" and \"as\"", shown);
  }
  if (!json_is_array(of))
    return error_at(e, of ? list.pointer : "/return_attention", "\"of\" must be a list of names");
  if (!as) return error_at(e, "/return_attention", "\"as\" is missing (for example \"heads\")");
  if (read_form(as, &list.wish, e)) return e->status;
  return read_list(&list, of, e);
}

enum status stack_names_attention(const json_t *value, const struct contract_field *field, void *to,
                                  struct error *e) {
  struct stack_values *v = to;
  const bool averaged = json_small_is_text(value, "average");
  const struct stack_list list = {.values = v,
                                  .pointer = field->pointer,
                                  .wish.weights =
                                      averaged ? STACK_WEIGHTS_AVERAGE : STACK_WEIGHTS_PER_HEAD};
  if (json_is_array(value)) return read_list(&list, value, e);
  if (json_is_object(value)) return read_named(v, value, e);
  if (json_is_false(value)) return STATUS_OK;
  if (!averaged && !json_is_true(value) && !json_small_is_text(value, "all"))
    return error_at(
        e, field->pointer,
        "return_attention must be true, false, \"all\", \"average\", a list of names, or "
        "{\"of\": names, \"as\": form}");
  for (unsigned i = 0; i < STACK_SIDES; i++) {
    struct stack_side *s = stack_values_side(v, i);
    const size_t count = s->stack ? stack_form_attentions(s->form) : 0;
    wish_attentions(&list, s, (struct stack_named){0, count});
  }
  return STATUS_OK;
}

/* --- attentions --- */

enum status stack_names_ablation(const json_t *value, const struct contract_field *field, void *to,
                                 struct error *e) {
  const struct stack_list list = {.values = to, .pointer = field->pointer, .ablation = true};
  if (!json_is_array(value) || json_array_size(value) == 0)
    return error_at(e, field->pointer,
                    "attentions must be a list of at least one name; without the field, the heads "
                    "of all attentions are measured");
  return read_list(&list, value, e);
}

/* --- head_mask --- */

/* [heads] the numbers of a mask. NULL with an error, at `pointer` or in it. */
static const float *read_mask(struct arena *a, size_t heads, const json_t *value,
                              const char *pointer, struct error *e) {
  if (!json_is_array(value) || json_array_size(value) != heads) {
    error_at(e, pointer, "the head mask must be a list of %zu numbers, one for each head", heads);
    return NULL;
  }
  float *mask = arena_alloc(a, heads, sizeof *mask, e);
  for (size_t i = 0; mask && i < heads; i++) {
    const json_t *n = json_array_get(value, i);
    mask[i] = (float)json_number_value(n);
    if (json_is_number(n) && isfinite(mask[i])) continue;
    char at[ERROR_POINTER_SIZE + 32]; /* the compiler warns of less: `pointer` leaves room */
    snprintf(at, sizeof at, "%s/%zu", pointer, i);
    error_at(e, at, "expected a number within the float32 range");
    return NULL;
  }
  return mask;
}

enum status stack_names_head_mask(const json_t *value, const struct contract_field *field, void *to,
                                  struct error *e) {
  struct stack_values *v = to;
  const char *name;
  json_t *numbers;
  if (!json_is_object(value))
    return error_at(
        e, field->pointer,
        "head_mask must be an object: for each attention, a list of one number per head");
  json_object_foreach((json_t *)value, name, numbers) {
    char shown[CONTRACT_NAME_SHOWN + 1], pointer[ERROR_POINTER_SIZE];
    struct stack_side *s;
    const struct stack_named of = find_side(v, name, strlen(name), &s);
    point_at(field->pointer, name, strlen(name), shown, pointer);
    if (!is_any(of)) return refuse_name(v, false, pointer, shown, e);
    const float *mask =
        read_mask(v->arena, stack_side_shape(s, of.first)->heads, numbers, pointer, e);
    if (!mask) return e->status;
    for (size_t i = of.first; i < of.end; i++) {
      if (s->wish[i].head_mask)
        return error_at(e, pointer, "duplicate mask for the attention %s.%zu%s", s->form->name,
                        stack_side_layer(s, i), stack_side_ending(s, i));
      s->wish[i].head_mask = mask;
    }
  }
  return STATUS_OK;
}

/* --- trace --- */

enum status stack_names_trace(const json_t *value, const struct contract_field *field, void *to,
                              struct error *e) {
  static const char pointer[] = "/trace/attention";
  struct stack_values *v = to;
  const json_t *name;
  char shown[CONTRACT_NAME_SHOWN + 1], unused[ERROR_POINTER_SIZE];
  if (attention_traced_read(value, field->pointer, &name, &v->trace, e)) return e->status;
  if (!json_is_string(name))
    return error_at(e, pointer, "the name of an attention must be a string");
  const size_t length = json_string_length(name);
  struct stack_side *side;
  const struct stack_named of = find_side(v, json_string_value(name), length, &side);
  contract_show_name(json_string_value(name), length, shown, unused, sizeof unused);
  if (!is_any(of)) return refuse_name(v, false, pointer, shown, e);
  if (of.end - of.first > 1)
    return error_at(e, pointer, "\"%s\" names %zu attentions, but a trace requires one", shown,
                    of.end - of.first);
  v->traced = of.first;
  v->traced_source = side == &v->source;
  return STATUS_OK;
}
