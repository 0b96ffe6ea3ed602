/* inspect_whole: makes the plan of a whole model, and prints it. */
#include "config/inspect/inspect_whole.h"

#include <stdlib.h>
#include <string.h>

#include "config/build/model.h"
#include "config/build/whole_plan_make.h"
#include "config/checkpoint/floats.h"
#include "config/describe/whole_modules.h"
#include "config/document/file.h"
#include "config/document/text.h"

enum { LISTED_MOST = 5 };

/* --- sizes and classes --- */

static void print_stack_sizes(const struct whole_stack *s, FILE *out) {
  const struct stack_form *f = &s->form;
  fprintf(out, ": layers %zu, ", f->layers);
  if (f->layers) fprintf(out, "heads %zu, ", f->kind->self.heads);
  fprintf(out, "width %zu", f->width);
  if (f->layers) fprintf(out, ", feed_forward %zu", f->forward_size);
  if (stack_form_embedded(f) != f->width)
    fprintf(out, ", embedding width %zu", stack_form_embedded(f));
  if (f->embedding.tokens) fprintf(out, ", vocabulary %zu", f->embedding.tokens);
  if (s->positions) fprintf(out, ", positions %zu", s->positions);
  fputc('\n', out);
}

static void print_sizes(const struct whole_plan *p, FILE *out) {
  const struct whole_stack *reader = whole_plan_reader(p), *decoder = &p->stack[WHOLE_DECODER];
  const struct stack_form *f = &reader->form;
  fprintf(out, "model: family %s, kind %s", p->family->name, model_kind_name(p->kind));
  print_stack_sizes(reader, out);
  if (p->kind == MODEL_SEQ2SEQ) {
    fputs("  its decoder", out);
    print_stack_sizes(decoder, out);
  }
  if (decoder->family && decoder->form.output.tied)
    fputs("  the token embeddings are tied to the output\n", out);
  if (!f->embedding.tokens) fputs("  no token embeddings: it takes embeddings only\n", out);
  if (p->pool != STACK_POOL_NONE)
    fprintf(out, "  pool %s%s%s\n", stack_pool_names[p->pool],
            !f->pooling.dense[0].size || f->pooling.each != (p->pool == STACK_POOL_MULTI_VECTOR)
                ? ""
            : f->pooling.dense[1].size ? ", then two dense layers"
                                       : ", then a dense layer",
            p->normalize ? ", normalize" : "");
}

/* Prints how the texts of late interaction become tokens. */
static void print_late(const struct whole_late *late, FILE *out) {
  static const char *const names[WHOLE_TEXTS] = {"documents", "queries"};
  char marker[TEXT_SHOWN];
  if (!late->file) return;
  for (unsigned t = 0; t < WHOLE_TEXTS; t++) {
    const struct whole_late_text *text = &late->text[t];
    fprintf(out, "%s%s: ", t ? "; " : "  late interaction: ", names[t]);
    if (text->marker) fprintf(out, "marker \"%s\", ", text_shown(text->marker, marker));
    if (text->longest)
      fprintf(out, "at most %zu tokens", text->longest);
    else
      fputs("any length", out);
    if (text->skips && (late->punctuation || json_array_size(late->skipped)))
      fputs(", no vectors of skipped tokens", out);
    if (t == WHOLE_TEXT_QUERY && late->expanded)
      fprintf(out, ", padded to %zu%s", late->expanded, late->attends ? " (attended to)" : "");
  }
  fprintf(out, " (%s)\n", late->file);
}

/* Prints the heads that make something of each token of the vocabulary. */
static void print_vocabulary_heads(const struct whole_plan *p, FILE *out) {
  const struct whole_stack *s = whole_plan_reader(p);
  if (p->masked)
    fprintf(out, "  a masked language modeling head: %s, %s\n", p->masked->matrix,
            s->form.output.tied ? "tied to the token embeddings" : "a matrix of its own");
  if (s->part[WHOLE_WEIGHER].found) fputs("  weights of tokens: sparse_linear\n", out);
}

/* Prints the first classes. */
static void print_classes(const struct whole_plan *p, FILE *out) {
  const size_t count = json_array_size(p->labels);
  char name[TEXT_SHOWN];
  if (p->head == WHOLE_HEAD_SPANS && whole_plan_reader(p)->form.classifier.count)
    fputs("  a head that answers questions from a text\n", out);
  if (count == 0) return;
  fprintf(out, "  a classifier %s %zu class%s, function %s: ",
          p->head == WHOLE_HEAD_TOKENS ? "of tokens with" : "of", count, count == 1 ? "" : "es",
          whole_function_names[p->function]);
  for (size_t i = 0; i < count && i < LISTED_MOST; i++)
    fprintf(out, "%s%s", i ? ", " : "",
            text_shown(json_string_value(json_array_get(p->labels, i)), name));
  if (count > LISTED_MOST) fprintf(out, " and %zu more", count - LISTED_MOST);
  fputc('\n', out);
}

/* --- files and memory --- */

/* Bytes of the keys and values of a row in all layers, as float32. */
static size_t row_bytes(const struct layer_shape *s, size_t layers) {
  return layers * s->kv_heads * (s->key_head_size + s->value_head_size) * sizeof(float);
}

/* Bytes of the used tensors as stored; `used` is NULL if all are used. */
static double stored_bytes(const struct checkpoint *file, const bool *used) {
  double bytes = 0;
  for (size_t i = 0; i < checkpoint_count(file); i++) {
    const struct checkpoint_entry *t = checkpoint_at(file, i);
    const enum floats_type type = floats_type_of(t->dtype);
    if (type != FLOAT_NONE && (!used || used[i]))
      bytes += (double)t->count * (double)floats_type_size(type);
  }
  return bytes;
}

static bool is_quantized(enum whole_role role) {
  return whole_roles[role].kind == WHOLE_IS_MATRIX && !whole_role_is_projected(role);
}

/* Bytes of the numbers in memory, in a quantized mode. All that is not quantized is float32, except
 * a table of tokens that is stored in 16 bits. */
static double quantized_bytes(const struct whole_plan *p, enum compute compute) {
  double bytes = (double)whole_plan_bytes(p);
  for (enum whole_side side = 0; side < WHOLE_SIDES; side++) {
    const struct whole_stack *s = &p->stack[side];
    for (enum whole_role role = 0; s->family && role < WHOLE_ROLES; role++) {
      const size_t layers = role < WHOLE_LAYER_ROLES ? s->form.layers : 1;
      size_t out, in;
      whole_plan_size(s, role, &out, &in);
      for (size_t i = 0; i < layers && is_quantized(role); i++)
        if (whole_plan_part(s, role, i)->found &&
            (role >= WHOLE_LAYER_ROLES || whole_plan_origin(p, s, i) == i))
          bytes += (double)gemm_quantized_bytes(out, in, compute) - 4.0 * (double)(out * in);
    }
    const struct layout_part *token = &s->part[WHOLE_TOKEN].weight;
    if (!token->tensor || whole_plan_is_lent(p, s, WHOLE_TOKEN)) continue;
    const bool tied = s->form.output.tied;
    const double numbers = (double)(token->rows * token->columns);
    if (tied) bytes += (double)gemm_quantized_bytes(token->rows, token->columns, compute);
    if (tied && compute == COMPUTE_INT8_BLOCK)
      bytes -= 4 * numbers; /* the quantized matrix is the table, too */
    else if (floats_type_size(floats_type_of(token->tensor->dtype)) == 2)
      bytes -= 2 * numbers;
  }
  return bytes;
}

/* Prints the size of the numbers in each mode, and of a decoder's KV cache for texts and sources.
 */
static void print_memory(const struct whole_plan *p, FILE *out) {
  const struct stack_form *f = &p->stack[WHOLE_DECODER].form;
  double stored = stored_bytes(p->source.file, p->used);
  for (size_t i = 0; i < WHOLE_DENSES; i++)
    if (p->source.dense[i].file) stored += stored_bytes(p->source.dense[i].file, NULL);
  fprintf(out, "  %ju numbers: %.2f MB as stored, %.2f MB as float32", (uintmax_t)p->count,
          stored * 1e-6, (double)whole_plan_bytes(p) * 1e-6);
  for (enum compute c = COMPUTE_FLOAT32 + 1; c < COMPUTE_COUNT; c++)
    fprintf(out, ", %.2f MB as %s", quantized_bytes(p, c) * 1e-6, compute_names[c]);
  if (f->layers)
    fprintf(out, "; %.2f MB for 1000 tokens of a text",
            (double)row_bytes(&f->kind->self, f->layers) * 1e-3);
  if (f->cross.heads)
    fprintf(out, ", %.2f MB for 1000 of a source", (double)row_bytes(&f->cross, f->layers) * 1e-3);
  fputc('\n', out);
}

static void print_source(const struct whole_plan *p, FILE *out) {
  const struct checkpoint *tensors = p->source.file;
  char prefix[TEXT_SHOWN], file[TEXT_SHOWN], name[TEXT_SHOWN];
  fprintf(out, "  %zu tensors of %s", checkpoint_count(tensors) - p->aside,
          text_shown(text_file_name(checkpoint_path(tensors)), file));
  if (*p->prefix) fprintf(out, ", layers begin with \"%s\"", text_shown(p->prefix, prefix));
  fprintf(out, "; %s%s%s\n",
          p->words.type ? "other values are from config.json" : "there is no config.json",
          p->source.generation ? " and generation_config.json" : "",
          p->source.modules ? ", the pool from modules.json" : "");
  if (p->aside > 0) {
    size_t listed = 0;
    fprintf(out, "  ignored: ");
    for (size_t i = 0; i < checkpoint_count(tensors) && listed < LISTED_MOST; i++)
      if (!p->used[i])
        fprintf(out, "%s%s", listed++ ? ", " : "",
                text_shown(checkpoint_at(tensors, i)->name, name));
    if (p->aside > listed) fprintf(out, " and %zu more", p->aside - listed);
    fputc('\n', out);
  }
  print_memory(p, out);
  for (size_t i = 0; i < p->notes.count; i++) fprintf(out, "note: %s\n", p->notes.text[i]);
}

/* --- the model --- */

static json_t *make_definition(const char *path, size_t heads) {
  json_t *definition = json_pack("{s:s}", "transformer", path);
  if (definition && heads &&
      json_object_set_new(definition, "heads", json_integer((json_int_t)heads)) != 0) {
    json_decref(definition);
    return NULL;
  }
  return definition;
}

/* Does the folder show a whole model, or could it? Then the reason of its rejection is printed. */
static bool is_expected(const struct whole_plan *p) {
  const struct whole_source *s = &p->source;
  const json_t *type = json_object_get(s->config, "model_type");
  if (type && !json_is_string(type)) return true;
  if (s->modules || (type && whole_type_find(json_string_value(type), NULL))) return true;
  /* A config.json that cannot be read. */
  char *config = s->file && !json_is_object(s->config)
                     ? file_beside(checkpoint_path(s->file), "config.json")
                     : NULL;
  const bool there = config && file_is_there(config);
  free(config);
  return there;
}

/* Is it a whole model whose number of heads is unknown? */
static bool lacks_heads(const struct whole_plan *p) {
  return p->family && (!p->said.of[WHOLE_ENCODER].heads || !p->said.of[WHOLE_DECODER].heads);
}

enum status inspect_whole_print(const struct inspect_ask *ask, FILE *out, struct error *e) {
  struct whole_plan p = {0};
  struct error why = {0};
  size_t heads = 0; /* in the definition */
  json_t *definition = make_definition(ask->path, 0);
  if (!definition) /* memory ran out, or the path is not UTF-8, which the list of layers reports */
    return STATUS_OK;
  whole_plan_make(&p, definition, ".", &why);
  if (why.status == STATUS_CONFIG && lacks_heads(&p) && ask->heads) {
    heads = ask->heads;
    whole_plan_free(&p);
    json_decref(definition);
    why = (struct error){0};
    if (!(definition = make_definition(ask->path, heads))) return error_no_memory(e);
    whole_plan_make(&p, definition, ".", &why);
  }
  if (why.status == STATUS_OK) {
    print_sizes(&p, out);
    print_late(&p.source.late, out);
    print_vocabulary_heads(&p, out);
    print_classes(&p, out);
    print_source(&p, out);
    json_t *named = make_definition(ask->named, heads);
    char *text = named ? json_dumps(named, JSON_ENSURE_ASCII) : NULL;
    if (text) fprintf(out, "  its definition: %s\n", text);
    free(text);
    json_decref(named);
    fputc('\n', out);
  } else if (why.status == STATUS_OUT_OF_MEMORY) {
    error_set(e, why.status, "%s", why.detail);
  } else if (is_expected(&p) || lacks_heads(&p)) {
    text_plain(&why);
    fprintf(out, "note: it cannot be served as a model: %s\n", why.detail);
  }
  whole_plan_free(&p);
  json_decref(definition);
  return e->status;
}

enum status inspect_whole_place(const struct inspect_ask *ask, char **place, char **named,
                                struct error *why, struct error *e) {
  struct whole_source source = {0};
  char within[WHOLE_MODULES_PATH] = "";
  if (whole_modules_read(&source, ask->path, within, why)) whole_source_name_folder(ask->path, why);
  whole_source_close(&source);
  *place = *within ? file_path(ask->path, within) : strdup(ask->path);
  *named = *within ? file_path(ask->named, within) : strdup(ask->named);
  if (why->status == STATUS_OUT_OF_MEMORY || !*place || !*named) return error_no_memory(e);
  return STATUS_OK;
}
