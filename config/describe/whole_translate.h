/* whole_translate: the config.json of a family of the library, in the words of a definition. */
#ifndef CONFIG_WHOLE_TRANSLATE_H
#define CONFIG_WHOLE_TRANSLATE_H

#include "config/describe/whole_words.h"

/* Fills the words, whose type is set. What the library does with other keys of generating than are
 * served is noted. STATUS_CONFIG naming the first key whose value is not served, or
 * STATUS_OUT_OF_MEMORY. */
void whole_translate(struct whole_words *w, const struct whole_documents *of,
                     const struct whole_family *family, struct notes *n, struct error *e);

#endif
