/* whole_modules: modules.json of sentence-transformers: the modules after the model. */
#ifndef CONFIG_WHOLE_MODULES_H
#define CONFIG_WHOLE_MODULES_H

#include "config/describe/whole_source.h"

enum { WHOLE_MODULES_PATH = 128 };

/* Reads the modules.json of a folder, if it has one, and the modules that it names. `within`
 * becomes the path of the model itself in the folder, or empty. STATUS_CONFIG naming the module and
 * why, or STATUS_OUT_OF_MEMORY. */
enum status whole_modules_read(struct whole_source *s, const char *folder,
                               char within[WHOLE_MODULES_PATH], struct error *e);

/* Reads how the texts of late interaction become tokens: from artifact.metadata of ColBERT,
 * config_sentence_transformers.json of PyLate, or sentence_bert_config.json of
 * sentence-transformers. The source's other documents are read. STATUS_CONFIG naming the file and
 * the key, or STATUS_OUT_OF_MEMORY. */
enum status whole_late_read(struct whole_source *s, struct error *e);

/* Reads the configuration of a MultiVectorMask, and keeps it. Returns e->status. */
enum status whole_late_mask(struct whole_late *late, json_t *config, struct error *e);

#endif
