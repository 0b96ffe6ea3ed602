/* metrics_process: the resources that this process uses, as the system reports them. */
#include "server/watch/metrics_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PATH_SIZE = 256 };

/* Fields of the file stat, in its order. `start_ticks` counts from the boot. */
struct metrics_process_stat {
  unsigned long threads, start_ticks, virtual_bytes, resident_pages;
};

static bool read_stat(struct metrics_process_stat *s, const char *folder) {
  char path[PATH_SIZE], text[1024];
  snprintf(path, sizeof path, "%s/stat", folder);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  if (n <= 0) return false;
  text[n] = '\0';
  const char *after = strrchr(text, ')'); /* the program's name before it may hold any byte */
  return after && sscanf(after + 1,
                         " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                         "%lu %*d %lu %lu %lu",
                         &s->threads, &s->start_ticks, &s->virtual_bytes, &s->resident_pages) == 4;
}

/* Since Linux 6.2 the size of the folder is the number of its entries; before it was 0. */
static bool count_fds(const char *folder, uint64_t *count) {
  char path[PATH_SIZE];
  struct stat s;
  snprintf(path, sizeof path, "%s/fd", folder);
  if (stat(path, &s)) return false;
  *count = (uint64_t)s.st_size;
  if (s.st_size > 0) return true;
  DIR *d = opendir(path);
  if (!d) return false;
  for (const struct dirent *entry; (entry = readdir(d));)
    if (entry->d_name[0] != '.') ++*count;
  if (*count) --*count; /* the descriptor that reads the folder */
  closedir(d);
  return true;
}

static double clock_seconds(clockid_t clock) {
  struct timespec now = {0};
  clock_gettime(clock, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void metrics_process_read(struct metrics_process *p, const char *folder) {
  struct metrics_process_stat s;
  struct rlimit fds;
  *p = (struct metrics_process){.cpu_seconds = clock_seconds(CLOCK_PROCESS_CPUTIME_ID)};
  p->has_memory = read_stat(&s, folder);
  if (p->has_memory) {
    p->resident_bytes = s.resident_pages * (uint64_t)sysconf(_SC_PAGESIZE);
    p->virtual_bytes = s.virtual_bytes;
    p->threads = s.threads;
  }
  p->has_fds = count_fds(folder, &p->open_fds);
  p->has_max_fds = getrlimit(RLIMIT_NOFILE, &fds) == 0 && fds.rlim_cur != RLIM_INFINITY;
  if (p->has_max_fds) p->max_fds = fds.rlim_cur;
}

double metrics_process_start(const char *folder) {
  struct metrics_process_stat s;
  if (!read_stat(&s, folder)) return 0;
  return clock_seconds(CLOCK_REALTIME) - clock_seconds(CLOCK_BOOTTIME) +
         (double)s.start_ticks / (double)sysconf(_SC_CLK_TCK);
}
