/* metrics_process: what the system knows of this process. */
#ifndef SERVER_METRICS_PROCESS_H
#define SERVER_METRICS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

struct process {
  double cpu_seconds;
  bool has_memory; /* the three below are known */
  uint64_t resident_bytes, virtual_bytes, threads;
  bool has_fds;
  uint64_t open_fds;
  bool has_max_fds; /* or there is no limit */
  uint64_t max_fds;
};

/* `folder` is /proc/self; where it is missing, so is what only it tells. Takes some ten
 * microseconds, but longer with thousands of open descriptors on a system older than Linux 6.2. */
void process_read(struct process *p, const char *folder);

/* When the process began, in Unix time; 0: unknown. */
double process_started(const char *folder);

#endif
