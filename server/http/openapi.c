/* openapi: openapi.json, put into the program by the assembler: no array of its bytes has to be
 * generated and compiled. Its path begins where the compiler runs: at the top of the repository.
 *
 * The symbols are global (though hidden), as C takes them to be: with -flto the assembler may see
 * them in another file than the compiler. */
#include "server/http/openapi.h"

__asm__(".pushsection .rodata\n"
        ".globl openapi_begin, openapi_end\n"
        ".hidden openapi_begin, openapi_end\n"
        "openapi_begin: .incbin \"server/http/openapi.json\"\n"
        "openapi_end:\n"
        ".popsection\n");

extern const char openapi_begin[], openapi_end[];

const char *openapi_text(size_t *length) {
  *length = (size_t)(openapi_end - openapi_begin);
  return openapi_begin;
}
