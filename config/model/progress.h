/* progress: the progress of loading models, and its listener.
 *
 * Threads that load models count here; any thread may read. The listener is called by one loading
 * thread at a time: at the beginning, if the models are large and come from checkpoints; then
 * periodically; and, if it was called periodically, at the end. */
#ifndef CONFIG_PROGRESS_H
#define CONFIG_PROGRESS_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROGRESS_TEXT_SIZE = 256, PROGRESS_MS = 2000 };

struct progress_news {
  enum { PROGRESS_BEGIN, PROGRESS_REPORT, PROGRESS_END } event;
  double share;                  /* of the bytes that are loaded, 0 to 1 */
  char text[PROGRESS_TEXT_SIZE]; /* a line for the log; empty at the end */
};

struct progress_listener {
  void (*tell)(void *of, const struct progress_news *news); /* NULL: no listener */
  void *of;
  unsigned every_ms; /* between two reports, or before the first; usually PROGRESS_MS */
};

struct progress {
  struct progress_listener listener; /* set before the loading begins */
  atomic_size_t models, loaded;
  _Atomic uint64_t bytes, loaded_bytes; /* of numbers as float32 */
  uint64_t begun;
  _Atomic uint64_t next; /* time of the next report */
  atomic_int state;
  atomic_bool reported;
};

/* A zeroed struct has no listener. These functions do nothing for NULL. */

/* `definitions` are those of all models; `bytes` is the size of their numbers as float32. */
void progress_begin(struct progress *p, const json_t *definitions, uint64_t bytes);
void progress_loaded(struct progress *p, uint64_t bytes); /* one more model is loaded */
void progress_tick(struct progress *p); /* called often: reports when it is time */
void progress_end(struct progress *p);

/* The listener is not called after it returns, although models may still be loading. */
void progress_silence(struct progress *p);

#endif
