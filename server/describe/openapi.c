/* openapi: the description of the service in OpenAPI 3.1.
 *
 * Both files have short forms. A schema that is a string, and a $ref without '#', are the name of a
 * schema. A schema with properties and no type is an object with no other members. "like" names
 * another schema, to which the rest is applied as a merge patch (RFC 7396), or another operation,
 * whose request and response are the same. "binary" adds the binary forms of a body. The examples
 * of an operation have both of its bodies; a response that is a string is a stream of events. */
#include "server/describe/openapi.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "config/document/json_reserve.h"
#include "server/describe/write_json.h"
#include "server/route/routes.h"

/* The assembler puts the files into the program, so that no array of their bytes has to be
 * generated and compiled. Their paths begin at the top of the repository, where the compiler runs.
 * The symbols are global (but hidden), because with -flto the assembler may see them in another
 * file than the compiler. */
__asm__(".pushsection .rodata\n"
        ".globl openapi_begin, openapi_end, schemas_begin, schemas_end\n"
        ".hidden openapi_begin, openapi_end, schemas_begin, schemas_end\n"
        "openapi_begin: .incbin \"server/describe/openapi.json\"\n"
        "openapi_end:\n"
        "schemas_begin: .incbin \"server/describe/schemas.json\"\n"
        "schemas_end:\n"
        ".popsection\n");

extern const char openapi_begin[], openapi_end[], schemas_begin[], schemas_end[];

struct printer {
  json_t *document;   /* openapi.json, which becomes the document */
  json_t *operations; /* object: what openapi.json has of each operation, by its name */
  json_t *components;
  bool lost; /* there was no memory for a part */
};

/* Sets a member and drops the value. Jansson's json_copy and json_object_update_missing leave
 * members out without an error where there is no memory: they are not used here. */
static void set(struct printer *p, json_t *object, const char *key, json_t *value) {
  if (json_object_set_new(object, key, value)) p->lost = true;
}

/* Sets a member to the member of another object, if that has it. */
static void set_from(struct printer *p, json_t *object, const char *key, const json_t *from) {
  json_t *value = json_object_get(from, key);
  if (value) set(p, object, key, json_incref(value));
}

static json_t *reference(const char *kind, const char *name) {
  return json_pack("{s:o}", "$ref", json_sprintf("#/components/%s/%s", kind, name));
}

static json_t *load(struct printer *p, const char *begin, const char *end) {
  json_error_t why;
  bool no_memory = false;
  json_t *value = json_reserve_load(begin, (size_t)(end - begin), &why, &no_memory);
  must(value || no_memory);
  p->lost = p->lost || !value;
  return value;
}

/* --- schemas --- */

static void merge(struct printer *p, json_t *to, json_t *patch) {
  const char *key;
  json_t *value;
  json_object_foreach(patch, key, value) {
    json_t *old = json_object_get(to, key);
    if (json_is_null(value))
      json_object_del(to, key);
    else if (json_is_object(value) && json_is_object(old))
      merge(p, old, value);
    else
      set(p, to, key, json_incref(value));
  }
}

/* Writes the short forms in a schema, or a list or object of schemas, in full. */
static void expand(struct printer *p, json_t *schema) {
  const char *key, *name = json_string_value(json_object_get(schema, "$ref"));
  json_t *value;
  size_t i;
  if (name && *name != '#') set(p, schema, "$ref", json_sprintf("#/components/schemas/%s", name));
  if (json_object_get(schema, "properties") && !json_object_get(schema, "type")) {
    set(p, schema, "type", json_string("object"));
    set(p, schema, "additionalProperties", json_false());
  }
  json_object_foreach(schema, key, value) expand(p, value);
  json_array_foreach(schema, i, value) expand(p, value);
}

static void add_schemas(struct printer *p) {
  json_t *schemas = load(p, schemas_begin, schemas_end), *schema;
  const char *name;
  json_object_foreach(schemas, name, schema) {
    const char *like = json_string_value(json_object_get(schema, "like"));
    if (!like) continue;
    json_t *whole = json_deep_copy(json_object_get(schemas, like));
    merge(p, whole, schema);
    json_object_del(whole, "like");
    set(p, schemas, name, whole);
  }
  expand(p, schemas);
  set(p, p->components, "schemas", schemas);
}

/* --- bodies --- */

/* The examples of one of the two bodies that are a stream or, if not `streamed`, are not. */
static json_t *make_examples(struct printer *p, json_t *examples, const char *body, bool streamed) {
  json_t *made = json_object(), *example;
  const char *name;
  json_object_foreach(examples, name, example) {
    json_t *value = json_object_get(example, body);
    if (value && json_is_string(value) == streamed)
      set(p, made, name, json_pack("{s:O}", "value", value));
  }
  return made;
}

static void add_media(struct printer *p, json_t *content, const char *type, json_t *schema,
                      json_t *examples) {
  json_t *media = json_pack("{s:o}", "schema", schema);
  if (json_object_size(examples))
    set(p, media, "examples", examples);
  else
    json_decref(examples);
  set(p, content, type, media);
}

/* The media types of a body, from its description in openapi.json. */
static json_t *make_content(struct printer *p, const json_t *from, json_t *examples,
                            const char *body) {
  static const char *const binary[] = {"application/x-safetensors", "application/octet-stream"};
  json_t *content = json_object(), *schema = json_object_get(from, "schema");
  const char *type = json_string_value(json_object_get(from, "type"));
  expand(p, schema);
  add_media(p, content, type ? type : "application/json",
            json_is_string(schema) ? reference("schemas", json_string_value(schema))
                                   : json_incref(schema),
            make_examples(p, examples, body, false));
  json_t *streams = make_examples(p, examples, body, true);
  if (json_object_size(streams))
    add_media(p, content, "text/event-stream", json_pack("{s:s}", "type", "string"), streams);
  else
    json_decref(streams);
  for (size_t i = 0; json_is_true(json_object_get(from, "binary")) && i < 2; i++)
    add_media(p, content, binary[i], json_pack("{s:s, s:s}", "type", "string", "format", "binary"),
              NULL);
  json_t *more = json_object_get(from, "content");
  if (more) merge(p, content, more);
  return content;
}

static void add_request(struct printer *p, json_t *bodies, const char *name,
                        const json_t *operation) {
  const json_t *from = json_object_get(operation, "request");
  json_t *examples = json_object_get(operation, "examples"), *body = json_object();
  set_from(p, body, "description", from);
  set(p, body, "required", json_true());
  set(p, body, "content", make_content(p, from, examples, "request"));
  set(p, bodies, name, body);
}

static void add_response(struct printer *p, json_t *responses, const char *name, const json_t *from,
                         json_t *examples, bool computed) {
  json_t *response = json_object(), *headers = json_object();
  set(p, headers, "X-Request-Id", reference("headers", "RequestId"));
  if (computed) set(p, headers, "Server-Timing", reference("headers", "ServerTiming"));
  json_t *more = json_object_get(from, "headers");
  if (more) merge(p, headers, more);
  set_from(p, response, "description", from);
  set(p, response, "headers", headers);
  set(p, response, "content", make_content(p, from, examples, "response"));
  set(p, responses, name, response);
}

/* Adds the errors and the bodies of all operations. */
static void add_bodies(struct printer *p) {
  json_t *bodies = json_object(), *responses = json_object(), *value;
  const char *name;
  json_object_foreach(json_object_get(p->document, "errors"), name, value)
      add_response(p, responses, name, value, NULL, false);
  json_object_foreach(p->operations, name, value) {
    const bool computed = json_object_get(value, "request");
    if (json_object_get(value, "like")) continue;
    if (computed) add_request(p, bodies, name, value);
    add_response(p, responses, name, json_object_get(value, "response"),
                 json_object_get(value, "examples"), computed);
  }
  set(p, p->components, "requestBodies", bodies);
  set(p, p->components, "responses", responses);
}

/* --- paths --- */

/* The parameters of a path with their values in examples, and others that the operation has. */
static json_t *make_parameters(struct printer *p, const char *template, const json_t *operation,
                               bool computed) {
  json_t *list = json_array(), *more;
  size_t i;
  while ((template = strchr(template, '{'))) {
    const size_t length = strcspn(++template, "}");
    char name[16];
    must(length < sizeof name);
    memcpy(name, template, length), name[length] = '\0';
    json_t *made = json_object();
    merge(p, made, json_object_get(json_object_get(p->document, "parameters"), name));
    json_t *value = json_object_get(json_object_get(operation, "values"), name), *one;
    if (json_is_string(value)) {
      set(p, made, "example", json_incref(value));
    } else if (value) {
      json_t *examples = json_object();
      const char *key;
      json_object_foreach(value, key, one) set(p, examples, key, json_pack("{s:O}", "value", one));
      set(p, made, "examples", examples);
    }
    if (json_array_append_new(list, made)) p->lost = true;
  }
  json_array_foreach(json_object_get(operation, "parameters"), i,
                     more) if (json_array_append(list, more)) p->lost = true;
  if (computed && json_array_append_new(list, reference("parameters", "Timeout"))) p->lost = true;
  return list;
}

/* Whether a path may have this error. */
static bool has_error(const struct route_row *row, const char *template, unsigned code) {
  if (code == 401) return row->key != KEY_NEVER;
  if (code == 404) return row->computed || row->setting || strchr(template, '{');
  if (code == 406) return row->computed && row->errors != ERROR_V2; /* there Accept is ignored */
  if (code == 503) return row->computed || row->readiness;
  return row->computed;
}

static json_t *make_responses(struct printer *p, const struct route_row *row, const char *template,
                              const char *body, const json_t *operation) {
  static const unsigned codes[] = {400, 401, 404, 405, 406, 408, 413, 415, 422, 429, 501, 503, 504};
  static const char *const forms[][2] = {[ERROR_PROBLEM] = {"Problem", "Unauthorized"},
                                         [ERROR_V1] = {"Problem", "Unauthorized"},
                                         [ERROR_OPENAI] = {"OpenAIError", "OpenAIUnauthorized"},
                                         [ERROR_COHERE] = {"OpenAIError", "OpenAIUnauthorized"},
                                         [ERROR_V2] = {"V2Error", "V2Unauthorized"},
                                         [ERROR_TEI] = {"TeiError", "TeiUnauthorized"}};
  json_t *responses = json_pack("{s:o}", "200", reference("responses", body));
  json_t *more = json_object_get(operation, "responses");
  if (more) merge(p, responses, more);
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
    char code[8];
    snprintf(code, sizeof code, "%u", codes[i]);
    if (has_error(row, template, codes[i]))
      set(p, responses, code, reference("responses", forms[row->errors][codes[i] == 401]));
  }
  return responses;
}

/* Adds the operation of one of the paths of a route. */
static void add_operation(struct printer *p, json_t *paths, const struct route_row *row, size_t i) {
  const char *template = row->path[i].template, *name = row->path[i].name;
  const json_t *from = json_object_get(p->operations, name);
  must(from || p->lost); /* every operation is in openapi.json */
  const char *like = json_string_value(json_object_get(from, "like")), *body = like ? like : name;
  if (!json_object_get(paths, template)) set(p, paths, template, json_object());
  json_t *o = json_pack("{s:s, s:[O], s:s}", "operationId", name, "tags",
                        json_object_get(from, "tag"), "summary", row->summary);
  set_from(p, o, "summary", from);
  set_from(p, o, "description", from);
  if (row->key == KEY_NEVER) set(p, o, "security", json_array());
  json_t *parameters = make_parameters(p, template, from, row->computed);
  if (json_array_size(parameters))
    set(p, o, "parameters", parameters);
  else
    json_decref(parameters);
  if (row->computed) set(p, o, "requestBody", reference("requestBodies", body));
  set(p, o, "responses", make_responses(p, row, template, body, from));
  set(p, json_object_get(paths, template), row->computed ? "post" : "get", o);
}

/* Takes the operations out of the tags, and completes each with the name of its tag, and with the
 * members of the operation that it is like. */
static void collect_operations(struct printer *p) {
  json_t *tag, *operation, *value;
  const char *name, *key;
  size_t i;
  json_array_foreach(json_object_get(p->document, "tags"), i, tag) {
    json_object_foreach(json_object_get(tag, "operations"), name, operation) {
      set_from(p, p->operations, name, json_object_get(tag, "operations"));
      set(p, operation, "tag", json_incref(json_object_get(tag, "name")));
    }
    json_object_del(tag, "operations");
  }
  json_object_foreach(p->operations, name, operation) {
    const char *like = json_string_value(json_object_get(operation, "like"));
    json_t *other = like ? json_object_get(p->operations, like) : NULL;
    json_object_foreach(other, key, value) if (!json_object_get(operation, key))
        set(p, operation, key, json_incref(value));
  }
}

static char *print(size_t *length) {
  struct printer p = {.operations = json_object()};
  p.document = load(&p, openapi_begin, openapi_end);
  p.components = json_object_get(p.document, "components");
  json_t *paths = json_object();
  collect_operations(&p);
  add_schemas(&p);
  add_bodies(&p);
  for (unsigned r = 0; r < ROUTE_COUNT; r++) {
    const struct route_row *row = route_row((enum route)r);
    for (size_t i = 0; i < ROUTE_PATHS && row->path[i].name; i++) add_operation(&p, paths, row, i);
  }
  set(&p, p.document, "paths", paths);
  json_object_del(p.document, "parameters");
  json_object_del(p.document, "errors");
  json_decref(p.operations);
  if (!p.lost) return write_json(p.document, length);
  json_decref(p.document);
  return NULL;
}

const char *openapi_text(struct openapi *o, size_t *length) {
  char *text = atomic_load(&o->text);
  if (!text) {
    char *made = print(length);
    if (!made) return NULL;
    if (atomic_compare_exchange_strong(&o->text, &text, made))
      text = made;
    else
      free(made); /* another thread was first */
  }
  *length = strlen(text);
  return text;
}

void openapi_free(struct openapi *o) { free(atomic_load(&o->text)); }
