/* coretype: OpenBLAS takes some new processors for old ones. */
#ifndef SERVER_CORETYPE_H
#define SERVER_CORETYPE_H

#include "config/settings/config.h"

/* Executes the program again, once, where OpenBLAS is to multiply and has taken this processor for
 * an old one: it computes several times slower then, with other bits, and reads OPENBLAS_CORETYPE
 * only before main. To be called before anything is opened or read; `argv` as main was given it. */
void coretype_correct(const struct config *c, char **argv);

#endif
