/* thread: the names of our threads, as `top -H` and debuggers show them. */
#ifndef CORE_THREAD_H
#define CORE_THREAD_H

#include <sys/prctl.h>

/* Of the thread that calls; at most 15 characters. */
static inline void thread_name(const char *name) { (void)prctl(PR_SET_NAME, name); }

#endif
