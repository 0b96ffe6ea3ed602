/* iterate: one item of a value after the other, as Python's iterators give them. */
#include "config/template/value/iterate.h"

#include "config/tokenizer/pattern/unicode.h"

static struct value next_item(struct bounds *b, struct iterator *i) {
  size_t count;
  (void)b;
  return value_items(i->of, &count) && i->at < count ? value_at(i->of, i->at++) : VALUE_FAILED;
}

static struct value next_character(struct bounds *b, struct iterator *i) {
  if (i->at >= i->of.length) return VALUE_FAILED;
  size_t length;
  unicode_read(i->of.text + i->at, &length);
  i->at += length;
  return value_copy(b, i->of.text + i->at - length, length);
}

static struct value entry_of(struct bounds *b, enum value_part part, struct value key,
                             struct value value) {
  return part == VALUE_ITEMS ? value_pair(b, key, value) : part == VALUE_VALUES ? value : key;
}

static struct value next_entry(struct bounds *b, struct iterator *i) {
  const enum value_part part = i->of.kind == VALUE_VIEW ? i->of.part : VALUE_KEYS;
  if (!i->of.foreign) {
    if (i->at >= i->of.dict->count) return VALUE_FAILED;
    i->at++;
    return entry_of(b, part, i->of.dict->key[i->at - 1], i->of.dict->value[i->at - 1]);
  }
  void *entry = i->entry;
  if (!entry) return VALUE_FAILED;
  i->entry = json_object_iter_next((json_t *)i->of.json, entry);
  const struct value key = value_word(json_object_iter_key(entry));
  if (!bounds_text(b, key.length)) return VALUE_FAILED;
  return entry_of(b, part, key, value_of_json(json_object_iter_value(entry)));
}

static struct value next_none(struct bounds *b, struct iterator *i) {
  (void)b, (void)i;
  return VALUE_FAILED;
}

bool iterate_can(struct value v) {
  size_t length;
  return v.kind == VALUE_ITERATOR || v.kind == VALUE_TEXT || value_items(v, &length);
}

struct iterator *iterate_value(struct bounds *b, struct value v) {
  if (v.kind == VALUE_ITERATOR) return v.iterator;
  if (!iterate_can(v)) {
    bounds_fail(b, "'%s' object is not iterable", value_type(v));
    return NULL;
  }
  struct iterator *i = bounds_alloc(b, sizeof *i);
  if (!i) return NULL;
  *i = (struct iterator){.next = next_item, .of = v};
  if (v.kind == VALUE_TEXT) i->next = next_character;
  if (v.kind == VALUE_UNDEFINED) i->next = next_none;
  if (v.kind == VALUE_DICT || v.kind == VALUE_VIEW) {
    i->next = next_entry;
    if (v.foreign) i->entry = json_object_iter((json_t *)v.json);
  }
  return i;
}

struct value iterate_lazily(struct bounds *b,
                            struct value (*next)(struct bounds *b, struct iterator *i),
                            struct iterator *from, const void *how) {
  struct iterator *i = from ? bounds_alloc(b, sizeof *i) : NULL;
  if (!i) return VALUE_FAILED;
  *i = (struct iterator){.next = next, .from = from, .how = how};
  return (struct value){.kind = VALUE_ITERATOR, .iterator = i};
}

struct value iterate_next(struct bounds *b, struct iterator *i) {
  /* Iterators may read iterators that read others. */
  if (!bounds_step(b, 1) || !bounds_enter(b)) return VALUE_FAILED;
  const struct value item = i->next(b, i);
  bounds_leave(b);
  return b->e->status ? VALUE_FAILED : item;
}

struct value iterate_list(struct bounds *b, struct iterator *i, enum value_kind kind) {
  const struct value list = value_list(b, kind);
  struct value item;
  while (list.kind && (item = iterate_next(b, i)).kind)
    if (!value_append(b, list, item)) break;
  return b->e->status ? VALUE_FAILED : list;
}
