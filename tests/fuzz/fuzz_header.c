/* fuzz_header: the header of a request: its method, its path and its fields.
 *
 * The first line is `METHOD PATH`, each of the others a field `NAME:VALUE`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/settings/address.h"
#include "server/http/header.h"
#include "server/route/routes.h"
#include "tests/fuzz/fuzz.h"

static void check_route(const char *path, const char *word) {
  struct route_names names, other;
  memset(&names, 1, sizeof names);
  const enum route route = route_find(path, &names);
  const enum method method = method_find(word);
  must(route < ROUTE_COUNT && memchr(names.model, '\0', sizeof names.model));
  must(memchr(names.layer, '\0', sizeof names.layer) && method < METHOD_COUNT);
  must(route_has_layer(route) || !*names.layer);
  must(route_template(route) && method_name(method));
  must(!route_allows(route, method) || route_exists(route));
  must(!route_exists(route) || route_allow(route));
  /* A query does not change the route. */
  char *cut = strdup(path);
  must(cut);
  cut[strcspn(cut, "?")] = '\0';
  must(route_find(cut, &other) == route && strcmp(names.model, other.model) == 0);
  must(strcmp(names.layer, other.layer) == 0);
  free(cut);
}

static void check_header(const struct header *h) {
  const struct header_accept *a = &h->accept;
  for (size_t i = 0; i < MEDIA_OTHER; i++) must(a->named[i] >= -1 && a->named[i] <= 1000);
  must(a->any >= -1 && a->any <= 1000 && a->application >= -1 && a->application <= 1000);
  must(h->content <= MEDIA_NONE);
  for (int binary = 0; binary < 2; binary++) {
    const enum header_wish wish = header_wish(h, binary);
    must(wish <= WISH_NEITHER);
    must(a->given || wish == (binary ? WISH_BINARY : WISH_JSON));
  }
  const enum header_media type = header_binary_type(h);
  must(type == MEDIA_SAFETENSORS || type == MEDIA_OCTETS);
  must(header_media_type(type));
  must(!h->chunked || h->body_bytes == 0);
  must(!(h->length && h->codings) || h->error.status == STATUS_BAD_FRAMING);
  must(h->hosts < 2 || h->error.status);
  must(!h->request_id || (*h->request_id && strlen(h->request_id) <= 128));
  must(!h->error.status || (h->error.detail[0] && !strchr(h->error.detail, '\n')));
  const struct header_codings *c = &h->takes;
  must(c->any <= 1000 && c->gzip <= 1000 && c->identity <= 1000);
  must(!header_takes_gzip(h) || c->gzip > 0 || c->any > 0);
  header_has_body(h);
}

/* Ends the line at `at` and returns the next one, or NULL. */
static char *end_line(char *at) {
  char *end = strchr(at, '\n');
  if (!end) return NULL;
  *end = '\0';
  return end + 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text = input_text((struct input){(const char *)data, size});
  struct header h;
  struct address address;
  header_init(&h);
  h.tags = (const char *const[]){"\"tag\"", "\"other\"", NULL};
  char *next = end_line(text);
  char *path = strchr(text, ' ');
  if (path) {
    *path = '\0';
    check_route(path + 1, text);
  }
  while (next) {
    char *line = next;
    next = end_line(line);
    char *colon = strchr(line, ':');
    const size_t name = colon ? (size_t)(colon - line) : strlen(line);
    header_add(&h, line, name, colon ? colon + 1 : NULL);
    if (colon && address_parse(&address, colon + 1)) address_reach(&address);
  }
  header_finish(&h);
  check_header(&h);
  free(text);
  return 0;
}
