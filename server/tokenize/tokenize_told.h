/* tokenize_told: the sections of an answer that tell what texts have become: `tokens`, the
 * `strings` that these stand for, and the `offsets` of what they came from, in characters, and in
 * bytes. */
#ifndef SERVER_TOKENIZE_TOLD_H
#define SERVER_TOKENIZE_TOLD_H

#include "server/answer/answer.h"
#include "server/tokenize/tokenize_texts.h"

enum { TOKENIZE_TOLD_SECTIONS = 4 };

/* Writes these sections: a list for each text, but for one text alone. Returns the status of `e`:
 * no memory. */
enum status tokenize_told(const struct tokenize_texts *d, struct answer_section *section,
                          struct arena *a, struct error *e);

#endif
