/* layout_place: compares the ends of tensors' names with the stems and paths of the families. */
#include "config/build/layer/layout_place.h"

#include <stdio.h>
#include <string.h>

#include "config/checkpoint/checkpoint.h"
#include "config/describe/definition.h"
#include "core/base/size.h"

enum { LAYER_DIGITS = 4 };

_Static_assert(DEFINITION_LAYER_MAX == 9999, "LAYER_DIGITS digits");

/* The end of a tensor's name by which a place is recognised. */
struct layout_mark {
  const char *stem, *end; /* no mark if `stem` is NULL */
  size_t stem_length, end_length;
};

/* A search: the definition, and the marks of each family that follow from it. */
struct layout_hunt {
  const struct definition *d;
  struct layout_mark mark[LAYOUT_FAMILIES_MOST][2];
};

/* --- one name --- */

/* The rest of a name, whose end is cut off part by part. */
struct layout_rest {
  const char *name;
  size_t length;
};

static bool cut_end(struct layout_rest *r, const char *end, size_t length) {
  if (r->length < length || memcmp(r->name + r->length - length, end, length) != 0) return false;
  r->length -= length;
  return true;
}

static bool cut_number(struct layout_rest *r, size_t *number) {
  size_t digits = 0, unit = 1;
  *number = 0;
  for (; digits < r->length && r->name[r->length - 1 - digits] >= '0' &&
         r->name[r->length - 1 - digits] <= '9';
       digits++, unit *= 10) {
    if (digits == LAYER_DIGITS) return false;
    *number += unit * (size_t)(r->name[r->length - 1 - digits] - '0');
  }
  r->length -= digits;
  return digits == 1 || (digits > 1 && r->name[r->length] != '0');
}

/* May this precede the family's path? */
static bool is_prefix(const struct layout_rest *before, const struct layout_family *family,
                      const struct definition *d) {
  if (d->prefix && strlen(d->prefix) == before->length &&
      memcmp(d->prefix, before->name, before->length) == 0)
    return true;
  if (before->length == 0) return true;
  return (!family->alone || d->prefix) && before->name[before->length - 1] == '.';
}

/* Is the tensor `name` the mark of a place of this family? `d` says which prefixes there may be;
 * NULL: any. */
static bool match_mark(struct layout_place *p, const struct layout_family *family,
                       const struct layout_mark *mark, const struct layout_rest *name,
                       const struct definition *d) {
  struct layout_rest rest = *name;
  if (!cut_end(&rest, mark->end, mark->end_length) ||
      !cut_end(&rest, mark->stem, mark->stem_length) || rest.length >= LAYOUT_ADDRESS_SIZE)
    return false;
  *p = (struct layout_place){.family = family};
  const size_t length = rest.length;
  const char *path = layout_family_layer(family), *within = layout_family_within(family);
  const char *number = strstr(path, "{i}");
  const char *end = number ? number + 3 : path; /* of the path, after the number */
  p->numbered = number != NULL;
  if (!cut_end(&rest, within, strlen(within)) || !cut_end(&rest, end, strlen(end))) return false;
  if (number && !(cut_number(&rest, &p->layer) && cut_end(&rest, path, (size_t)(number - path))))
    return false;
  if (d && !is_prefix(&rest, family, d)) return false;
  memcpy(p->address, name->name, length);
  p->address[length] = '\0';
  p->before = rest.length;
  return true;
}

/* --- all names --- */

/* Does the place have the definition's layer and prefix? The prefix may include words
 * of the path. */
static bool is_allowed(const struct definition *d, const struct layout_place *p) {
  if (d->has_layer && (!p->numbered || p->layer != d->layer)) return false;
  if (!d->prefix) return true;
  const size_t length = strlen(d->prefix);
  if (length < p->before || strncmp(d->prefix, p->address, length) != 0) return false;
  return length == p->before || p->address[length - 1] == '.';
}

static bool is_auto(const struct definition *d) { return strcmp(d->layout, "auto") == 0; }

static bool is_layout(const struct definition *d, const struct layout_family *family) {
  return is_auto(d) || strcmp(d->layout, family->layout) == 0;
}

static struct layout_mark make_mark(const char *stem, const char *end) {
  return (struct layout_mark){
      .stem = stem, .end = end, .stem_length = strlen(stem), .end_length = strlen(end)};
}

/* Makes the marks of each family: the projection of queries; without projections that of the
 * output; without that a parameter of the score. */
static struct layout_hunt make_hunt(const struct definition *d) {
  struct layout_hunt h = {.d = d};
  const enum role role = d->output_projected            ? ROLE_OUTPUT
                         : d->compare == SCORE_ADDITIVE ? ROLE_SCORE_VECTOR
                         : d->compare == SCORE_BILINEAR ? ROLE_SCORE_WEIGHT
                                                        : ROLE_RELATIVE;
  for (size_t f = 0; f < layout_family_count(); f++) {
    const struct layout_family *family = layout_family_at(f);
    const char *stem = layout_family_stem(family, d->projected ? ROLE_QUERY : role);
    const char *packed = layout_family_packed(family);
    if (d->projected && packed) {
      h.mark[f][0] = make_mark(packed, "weight");
      if (!family->names->across) h.mark[f][1] = make_mark(layout_family_separate[0], "");
    } else if (stem && (d->projected || family->unprojected)) {
      h.mark[f][0] = make_mark(stem, ".weight");
      if (!d->projected && role != ROLE_OUTPUT) h.mark[f][1] = make_mark(stem, "");
    }
  }
  return h;
}

/* Is the definition's prefix the whole address of this place? */
static bool is_whole(const struct definition *d, const struct layout_place *p) {
  return d->prefix && strcmp(d->prefix, p->address) == 0;
}

/* Finds the place whose mark is this tensor; among several families, that of the longest path. The
 * definition's layout only selects among such places: it never gives a place to another family. */
static bool find_place_of(struct layout_place *p, const char *name, const struct layout_hunt *h,
                          bool cross) {
  const struct definition *d = h->d;
  const struct layout_rest whole = {.name = name, .length = strlen(name)};
  size_t longest = 0;
  bool found = false;
  for (size_t f = 0; f < layout_family_count(); f++) {
    const struct layout_family *family = layout_family_at(f);
    const struct layout_mark *marks = h->mark[f];
    for (size_t i = 0; i < 2; i++) {
      struct layout_place one;
      if (!marks[i].stem || !match_mark(&one, family, &marks[i], &whole, d) || !is_allowed(d, &one))
        continue;
      const size_t length =
          strlen(layout_family_layer(family)) + strlen(layout_family_within(family));
      if (found && length <= longest) continue;
      *p = one;
      longest = length;
      found = true;
    }
  }
  return found && is_layout(d, p->family) && (cross || !p->family->cross || is_whole(d, p));
}

/* Could this tensor be the mark of a place, whatever a definition says? */
static bool may_be_mark(const char *name) {
  static const enum role roles[] = {ROLE_QUERY, ROLE_OUTPUT, ROLE_SCORE_VECTOR, ROLE_SCORE_WEIGHT,
                                    ROLE_RELATIVE};
  const struct layout_rest whole = {.name = name, .length = strlen(name)};
  struct layout_place p;
  for (size_t f = 0; f < layout_family_count(); f++) {
    const struct layout_family *family = layout_family_at(f);
    const char *packed = layout_family_packed(family);
    struct layout_mark marks[2 + 2 * sizeof roles / sizeof *roles] = {{0}};
    if (packed) marks[0] = make_mark(packed, "weight");
    if (packed && !family->names->across) marks[1] = make_mark(layout_family_separate[0], "");
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
      const char *stem = layout_family_stem(family, roles[i]);
      if (stem) marks[2 + 2 * i] = make_mark(stem, "");
      if (stem) marks[3 + 2 * i] = make_mark(stem, ".weight");
    }
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
      if (marks[i].stem && match_mark(&p, family, &marks[i], &whole, NULL)) return true;
  }
  return false;
}

enum status layout_place_mark(struct checkpoint *file, struct error *e) {
  return checkpoint_mark(file, may_be_mark, e);
}

size_t layout_place_list(const struct checkpoint *file, const struct definition *d, bool cross,
                         struct layout_place *out, size_t most) {
  const struct layout_hunt hunt = make_hunt(d);
  char number[LAYER_DIGITS + 24];
  size_t count = 0;
  snprintf(number, sizeof number, ".%zu.", d->layer);
  for (size_t i = 0; i < checkpoint_marked_count(file); i++) {
    struct layout_place one;
    bool known = false;
    const char *name = checkpoint_marked_at(file, i)->name;
    if (d->has_layer && !strstr(name, number)) continue; /* a fast test for most names */
    if (!find_place_of(&one, name, &hunt, cross)) continue;
    for (size_t j = 0; j < size_min(count, most) && !known; j++)
      known = out[j].family == one.family && strcmp(out[j].address, one.address) == 0;
    if (known) continue;
    if (count < most) out[count] = one;
    count++;
  }
  return count;
}

bool layout_place_of_tensor(struct layout_place *p, const char *name) {
  const struct definition any = {.layout = "auto", .projected = true, .output_projected = true};
  const struct layout_hunt hunt = make_hunt(&any);
  const struct layout_rest whole = {.name = name, .length = strlen(name)};
  if (find_place_of(p, name, &hunt, true)) return p->numbered;
  for (size_t f = 0; f < layout_family_count(); f++) {
    const struct layout_family *family = layout_family_at(f);
    const struct layout_mark mark = make_mark(layout_family_stem(family, ROLE_OUTPUT), ".weight");
    if (match_mark(p, family, &mark, &whole, &any) && p->numbered) return true;
  }
  return false;
}

size_t layout_place_stack(const struct layout_place *p) {
  const char *path = layout_family_layer(p->family), *number = strstr(path, "{i}");
  size_t length = number ? (size_t)(number - path) : 0;
  if (length > 0) length--; /* the dot before the number */
  while (length > 0 && path[length - 1] != '.') length--;
  return p->before + length;
}

/* --- errors: none or too many --- */

/* Reports how many places there are without this condition, and the first one. False if there are
 * none. */
static bool suggest_places(const char *what, const struct checkpoint *file,
                           const struct definition *d, struct error *e) {
  struct layout_place first;
  const size_t count = layout_place_list(file, d, true, &first, 1);
  if (count == 0) return false;
  if (count == 1) {
    error_set(e, STATUS_CONFIG, "%s; there is one at \"%.150s\"", what, first.address);
  } else {
    error_set(e, STATUS_CONFIG, "%s; there are %zu, from \"%.150s\" on", what, count,
              first.address);
  }
  return true;
}

/* If the words of the prefix occur in the address of this place, maybe without the dot at their
 * end: the length of the address up to their end; else 0. */
static size_t matching_prefix(const char *prefix, const struct layout_place *p) {
  size_t length = strlen(prefix);
  if (length > 0 && prefix[length - 1] == '.') length--;
  for (const char *at = p->address; length > 0 && (at = strstr(at, prefix)); at++)
    if ((at == p->address || at[-1] == '.') && at[length] == '.' &&
        (size_t)(at - p->address) + length + 1 >= p->before)
      return (size_t)(at - p->address) + length + 1;
  return 0;
}

static bool suggest_prefix(const struct checkpoint *file, const struct definition *d,
                           struct error *e) {
  struct definition any = *d;
  any.prefix = NULL;
  const struct layout_hunt hunt = make_hunt(&any);
  for (size_t i = 0; i < checkpoint_marked_count(file); i++) {
    struct layout_place p;
    const size_t length = find_place_of(&p, checkpoint_marked_at(file, i)->name, &hunt, true)
                              ? matching_prefix(d->prefix, &p)
                              : 0;
    if (length == 0) continue;
    error_set(e, STATUS_CONFIG, "prefix: no attention has this prefix; try \"%.*s\"", (int)length,
              p.address);
    return true;
  }
  return false;
}

/* Reports how to choose a cross-attention, which a number alone does not. False if
 * there is none. */
static bool suggest_cross(const struct checkpoint *file, const struct definition *d,
                          struct error *e) {
  struct layout_place p;
  if (layout_place_list(file, d, true, &p, 1) == 0) return false;
  error_set(e, STATUS_CONFIG, "prefix: cross-attention needs the full prefix: \"%.150s\"",
            p.address);
  return true;
}

/* Reports what names there are, and what could be done. */
static enum status refuse_names(const struct checkpoint *file, const struct definition *d,
                                struct error *e) {
  struct definition any = *d;
  struct layout_place other;
  char names[160] = "", layouts[120] = "", instead[240] = "name them with \"tensors\"";
  const char *last = NULL;
  size_t used = 0, listed = 0;
  for (size_t i = 0; i < checkpoint_count(file) && i < 2 && used < sizeof names; i++)
    used += (size_t)snprintf(names + used, sizeof names - used, "%s%.72s", i ? ", " : "",
                             checkpoint_at(file, i)->name);
  for (size_t f = 0; f < layout_family_count() && listed < sizeof layouts; f++) {
    const struct layout_family *one = layout_family_at(f);
    if (!is_layout(d, one) || (last && strcmp(last, one->layout) == 0)) continue;
    if (is_auto(d) && !d->projected && !one->unprojected) continue;
    last = one->layout;
    listed += (size_t)snprintf(layouts + listed, sizeof layouts - listed, "%s%s",
                               listed ? ", " : "", last);
  }
  any.layout = "auto";
  if (layout_place_list(file, &any, true, &other, 1) > 0)
    snprintf(instead, sizeof instead, "at \"%.150s\" they are those of %s", other.address,
             other.family->layout);
  return error_set(e, STATUS_CONFIG, "layout: the names of its tensors (%s%s) fit none of %s%s; %s",
                   names, checkpoint_count(file) > 2 ? ", ..." : "", layouts,
                   d->prefix ? " after this prefix, which ends with its dot" : "", instead);
}

/* Reports what would fit, or what the file contains. */
static enum status refuse_none(const struct checkpoint *file, const struct definition *d,
                               struct error *e) {
  struct definition any = *d;
  if (d->has_layer && suggest_cross(file, d, e)) return e->status;
  any.has_layer = false;
  if (d->has_layer && suggest_places("layer: no attention here has this number", file, &any, e))
    return e->status;
  if (d->prefix && suggest_prefix(file, d, e)) return e->status;
  any.prefix = NULL;
  if (d->prefix && suggest_places("prefix: no attention has this prefix", file, &any, e))
    return e->status;
  return refuse_names(file, d, e);
}

/* Reports which key would decide between several places. */
static enum status refuse_many(const struct layout_place p[2], size_t count,
                               const struct definition *d, struct error *e) {
  int lengths[2];
  for (size_t i = 0; i < 2; i++)
    lengths[i] = (int)(d->has_layer ? layout_place_stack(&p[i]) : strlen(p[i].address));
  if (strcmp(p[0].family->layout, p[1].family->layout) != 0)
    return error_set(e, STATUS_CONFIG, "layout: required: the tensor names match both %s and %s",
                     p[0].family->layout, p[1].family->layout);
  return error_set(e, STATUS_CONFIG, "prefix%s: required: \"%.*s\" or \"%.*s\"%s",
                   !d->has_layer && p[0].numbered ? " or layer" : "", lengths[0], p[0].address,
                   lengths[1], p[1].address, count > 2 ? " or another one" : "");
}

/* Finds a place in another stack: a number alone is then ambiguous, even if only one stack has that
 * many layers. */
static bool find_other_stack(const struct layout_place *p, const struct checkpoint *file,
                             const struct definition *d, struct layout_place *other) {
  const size_t length = layout_place_stack(p);
  struct definition any = *d;
  any.has_layer = false;
  const struct layout_hunt hunt = make_hunt(&any);
  for (size_t i = 0; i < checkpoint_marked_count(file); i++)
    if (find_place_of(other, checkpoint_marked_at(file, i)->name, &hunt, false) &&
        other->numbered &&
        (layout_place_stack(other) != length || strncmp(other->address, p->address, length) != 0))
      return true;
  return false;
}

/* Rejects a prefix that ends within a family's own names: it excludes some of
 * the layer's tensors. */
static enum status check_prefix_depth(const struct layout_place *p, const struct checkpoint *file,
                                      const struct definition *d, struct error *e) {
  struct definition any = *d;
  const size_t length = strlen(p->address);
  any.prefix = NULL;
  const struct layout_hunt hunt = make_hunt(&any);
  for (size_t i = 0; i < checkpoint_marked_count(file) && is_auto(d) && !p->numbered; i++) {
    const char *name = checkpoint_marked_at(file, i)->name;
    struct layout_place whole;
    if (strncmp(name, p->address, length) == 0 && find_place_of(&whole, name, &hunt, true) &&
        strlen(whole.address) < length)
      return error_set(e, STATUS_CONFIG, "prefix: ends within the names of %s; try \"%.150s\"",
                       whole.family->layout, whole.address);
  }
  return e->status;
}

enum status layout_place_find(struct layout_place *p, const struct checkpoint *file,
                              const struct definition *d, struct error *e) {
  struct layout_place found[2];
  if (d->prefix && strlen(d->prefix) >= LAYOUT_ADDRESS_SIZE)
    return error_set(e, STATUS_CONFIG, "prefix: longer than %d bytes", LAYOUT_ADDRESS_SIZE - 1);
  bool has_numbers = false; /* among the layout's families */
  for (size_t f = 0; f < layout_family_count(); f++)
    has_numbers |= is_layout(d, layout_family_at(f)) &&
                   strstr(layout_family_layer(layout_family_at(f)), "{i}");
  if (d->has_layer && !has_numbers)
    return error_set(e, STATUS_CONFIG, "layer: the layout %s has no numbered layers", d->layout);
  const size_t count = layout_place_list(file, d, !d->has_layer, found, 2);
  if (count == 0) return refuse_none(file, d, e);
  if (count > 1) return refuse_many(found, count, d, e);
  if (d->has_layer && find_other_stack(&found[0], file, d, &found[1]))
    return refuse_many(found, 2, d, e);
  if (found[0].family->cross && !is_whole(d, &found[0])) suggest_cross(file, d, e);
  *p = found[0];
  return check_prefix_depth(p, file, d, e);
}
