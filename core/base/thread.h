/* thread: the name of a thread, as `top -H` and debuggers show it. */
#ifndef CORE_THREAD_H
#define CORE_THREAD_H

#include <sys/prctl.h>

/* Names the calling thread; at most 15 characters. */
static inline void thread_name(const char *name) { (void)prctl(PR_SET_NAME, name); }

#endif
