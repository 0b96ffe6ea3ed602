/* metrics_process: the resources that this process uses, as the system reports them. */
#ifndef SERVER_METRICS_PROCESS_H
#define SERVER_METRICS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

struct metrics_process {
  double cpu_seconds;
  bool has_memory; /* the three below are known */
  uint64_t resident_bytes, virtual_bytes, threads;
  bool has_fds;
  uint64_t open_fds;
  bool has_max_fds; /* there is a limit */
  uint64_t max_fds;
};

/* `folder` is /proc/self. If it is missing, memory and descriptors are unknown. Takes some ten
 * microseconds; before Linux 6.2 longer, with thousands of open descriptors. */
void metrics_process_read(struct metrics_process *p, const char *folder);

/* The start of the process, in Unix time; 0: unknown. */
double metrics_process_start(const char *folder);

#endif
