/* page: the page for a browser, as the server sends it. The build has put it into PAGE_FILE.
 *
 * openapi.c says why the assembler puts it into the program. */
#include "server/describe/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/document/digest.h"
#include "config/settings/origins.h"
#include "core/base/status.h"
#include "server/text/base64.h"

__asm__(".pushsection .rodata\n"
        ".globl page_plain_begin, page_plain_end, page_gzip_begin, page_gzip_end\n"
        ".hidden page_plain_begin, page_plain_end, page_gzip_begin, page_gzip_end\n"
        "page_plain_begin: .incbin \"" PAGE_FILE "\"\n"
        "page_plain_end:\n"
        "page_gzip_begin: .incbin \"" PAGE_FILE ".gz\"\n"
        "page_gzip_end:\n"
        ".popsection\n");

extern const char page_plain_begin[], page_plain_end[], page_gzip_begin[], page_gzip_end[];

enum { HASH_SIZE = 44 + 1 }; /* a digest in base64, and the NUL */

static void write_hash(const char *bytes, size_t size, char out[HASH_SIZE]) {
  unsigned char digest[DIGEST_SIZE];
  char text[HASH_SIZE + BASE64_WRITE_MARGIN];
  digest_bytes(bytes, size, digest);
  *base64_write(text, digest, sizeof digest) = '\0';
  memcpy(out, text, HASH_SIZE);
}

/* Writes the hash of the text between `begin` and `end`, the tags of an element that occurs once.
 */
static void write_element_hash(const struct page_form *page, const char *begin, const char *end,
                               char out[HASH_SIZE]) {
  const char *from = memmem(page->bytes, page->size, begin, strlen(begin));
  must(from);
  from += strlen(begin);
  const char *to = memmem(from, (size_t)(page->bytes + page->size - from), end, strlen(end));
  must(to);
  write_hash(from, (size_t)(to - from), out);
}

static void init_form(struct page *p, enum page_coding coding, const char *begin, const char *end) {
  struct page_form *f = &p->form[coding];
  char hash[HASH_SIZE];
  f->bytes = begin;
  f->size = (size_t)(end - begin);
  write_hash(f->bytes, f->size, hash);
  snprintf(f->tag, sizeof f->tag, "\"%s\"", hash);
  p->tags[coding] = f->tag;
  const struct reply_field fields[] = {
      {"ETag", f->tag},
      {"Vary", "Accept-Encoding"},
      {"Cache-Control", "no-cache"},
      {"Content-Security-Policy", p->policy},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
      {NULL, NULL},
  };
  _Static_assert(sizeof fields == sizeof f->fields, "room for all fields");
  memcpy(f->fields, fields, sizeof fields);
}

enum status page_init(struct page *p, const char *origins, struct error *e) {
  *p = (struct page){0};
  size_t size;
  FILE *out = open_memstream(&p->policy, &size);
  if (!out) return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for the page");
  const struct page_form plain = {.bytes = page_plain_begin,
                                  .size = (size_t)(page_plain_end - page_plain_begin)};
  char script[HASH_SIZE], style[HASH_SIZE];
  write_element_hash(&plain, "<script>", "</script>", script);
  write_element_hash(&plain, "<style>", "</style>", style);
  fprintf(out,
          "default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; connect-src 'self'; "
          "img-src blob: data:; base-uri 'none'; form-action 'none'; "
          "require-trusted-types-for 'script'; trusted-types 'none'; frame-ancestors",
          script, style);
  const char *origin;
  size_t length;
  if (!*origins) fprintf(out, " 'none'");
  while ((origins = origins_next(origins, &origin, &length)))
    fprintf(out, " %.*s", (int)length, origin);
  if (fclose(out)) return error_set(e, STATUS_OUT_OF_MEMORY, "no memory for the page");
  init_form(p, PAGE_PLAIN, page_plain_begin, page_plain_end);
  init_form(p, PAGE_GZIP, page_gzip_begin, page_gzip_end);
  p->form[PAGE_GZIP].coding = "gzip";
  return STATUS_OK;
}

void page_done(struct page *p) { free(p->policy); }
