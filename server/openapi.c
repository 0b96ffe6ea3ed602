/* openapi: openapi.json, put into the program by the assembler: no array of its bytes has to be
 * generated and compiled. */
#include "server/openapi.h"

__asm__(".pushsection .rodata\n"
        "openapi_begin: .incbin \"server/openapi.json\"\n"
        "openapi_end:\n"
        ".popsection\n");

extern const char openapi_begin[], openapi_end[];

const char *openapi_text(size_t *length) {
  *length = (size_t)(openapi_end - openapi_begin);
  return openapi_begin;
}
