/* page: the page for a browser, as the server sends it: one HTML file, which fetches only the API.
 *
 * The build packs server/page/ into that file. Its fields are computed once, at the start. */
#ifndef SERVER_PAGE_H
#define SERVER_PAGE_H

#include <stddef.h>

#include "core/base/status.h"
#include "server/http/reply.h"

#define PAGE_TYPE "text/html; charset=utf-8"

enum page_coding { PAGE_PLAIN, PAGE_GZIP, PAGE_FORMS };

enum { PAGE_TAG_SIZE = 96 };

struct page {
  struct page_form {
    const char *bytes; /* static */
    size_t size;
    const char *coding; /* Content-Encoding, or NULL */
    struct reply_field fields[9];
    char tag[PAGE_TAG_SIZE]; /* ETag, with its quotes */
  } form[PAGE_FORMS];
  const char *tags[PAGE_FORMS + 1]; /* of all forms; the last one is NULL */
  char *policy; /* Content-Security-Policy: only the page's own script runs, frames only in
                   `origins` */
};

/* `origins`: whose pages may show this one in a frame, as the setting cors_origins lists them. `p`
 * points into itself, and must not be moved afterwards. */
enum status page_init(struct page *p, const char *origins, struct error *e);
void page_done(struct page *p);

#endif
