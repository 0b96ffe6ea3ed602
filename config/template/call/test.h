/* test: the tests of templates, "x is NAME". */
#ifndef CONFIG_TEMPLATE_TEST_H
#define CONFIG_TEMPLATE_TEST_H

#include "config/template/call/arguments.h"

/* Does a test hold for a value? False after a failure: there is no such test, too. */
bool test_apply(struct bounds *b, struct value name, struct value x, const struct arguments *a,
                bool *holds);

/* x in container. False after a failure. */
bool test_contains(struct bounds *b, struct value container, struct value x, bool *holds);

#endif
