/* template: chat templates: the subset of Jinja that turns the messages of a conversation into the
 * text that a model was trained on.
 *
 * It computes what jinja2 3.1 does in an ImmutableSandboxedEnvironment with trim_blocks,
 * lstrip_blocks and loop controls, as Hugging Face transformers sets it up: also raise_exception,
 * strftime_now, tojson without HTML escapes and {% generation %}. server/docs/chat.md lists what it
 * lacks; a test compares the list with jinja2's tables. The texts that Python makes of the
 * addresses of objects are lacking, too.
 *
 * A template is foreign data: what it may use is in the table of its limits, and there is nothing
 * of the host that it could reach. A template that was read is immutable: any number of threads may
 * render it. */
#ifndef CONFIG_TEMPLATE_H
#define CONFIG_TEMPLATE_H

#include <jansson.h>

#include "config/template/call/format.h"
#include "core/base/arena.h"

struct template_limits {
  size_t source;             /* bytes of a template */
  size_t memory;             /* bytes to read a template, and to render one */
  size_t output;             /* bytes that are rendered, of a macro or block, too */
  uint64_t steps;            /* expressions, statements, items; a long text takes several */
  unsigned depth;            /* levels of blocks, expressions, calls, and of values within values */
  struct patience *patience; /* of the caller, asked during a rendering; or NULL */
};

/* The largest conversations need a hundredth of the steps. The depth takes 400 KiB of stack. */
static const struct template_limits TEMPLATE_LIMITS = {
    .source = 1 << 20, .memory = 64 << 20, .output = 16 << 20, .steps = 5000000, .depth = 400};

struct template;

/* Reads a template, UTF-8. NULL after a failure: STATUS_INVALID_REQUEST with "line L, column C: ",
 * or STATUS_OUT_OF_MEMORY. */
struct template *template_parse(const char *text, size_t length,
                                const struct template_limits *limits, struct error *e);
void template_free(struct template *t); /* NULL is fine */

/* Renders a template with the variables of an object, into the memory of an arena. Nothing of the
 * variables is changed or copied. `now` is the time that strftime_now takes. Fails as
 * template_parse does, and as the arena does. The text ends with a zero. */
enum status template_render(const struct template *t, const json_t *variables,
                            const struct format_time *now, const struct template_limits *limits,
                            struct arena *a, const char **text, size_t *length, struct error *e);

#endif
