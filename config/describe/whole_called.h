/* whole_called: what definitions call the values that the library calls otherwise, for the hints of
 * refusals. */
#ifndef CONFIG_WHOLE_CALLED_H
#define CONFIG_WHOLE_CALLED_H

#include "config/describe/definition_value.h"

/* Writes how a definition says it: `"begin"`, or `"beams" in "generate"`. False: that is not
 * known. */
bool whole_called(const char *key, char out[DEFINITION_CALLED]);

/* The same within `generate`. */
bool whole_called_generating(const char *key, char out[DEFINITION_CALLED]);

#endif
