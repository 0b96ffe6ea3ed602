/* whole_modules: modules.json, in which sentence-transformers say what comes behind a model. */
#ifndef CONFIG_WHOLE_MODULES_H
#define CONFIG_WHOLE_MODULES_H

#include "config/describe/whole_source.h"

enum { WHOLE_MODULES_PATH = 128 };

/* Reads the modules.json of a folder, if it is one and has one, and what it names; `within` becomes
 * the folder of the model itself in it, or empty. STATUS_CONFIG naming the module and why. */
enum status whole_modules_read(struct whole_source *s, const char *folder,
                               char within[WHOLE_MODULES_PATH], struct error *e);

#endif
