/* progress: how far the loading of models is, and who is told.
 *
 * Threads that load count; any thread may read. A listener is told by one thread at a time, on any
 * of those that load: once what will be loaded, if that is much and comes from checkpoints, then
 * now and then how far it is, and, if it was told that, once the end. */
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
  char text[PROGRESS_TEXT_SIZE]; /* a line about it; none about the end */
};

struct progress_listener {
  void (*tell)(void *of, const struct progress_news *news); /* NULL: there is none */
  void *of;
  unsigned every_ms; /* between two steps, or from the begin to the first; mostly PROGRESS_MS */
};

struct progress {
  struct progress_listener listener; /* set before the loading begins */
  atomic_size_t models, loaded;
  _Atomic uint64_t bytes, loaded_bytes; /* of numbers, as float32 */
  uint64_t begun;
  _Atomic uint64_t next; /* when to tell a step */
  atomic_int state;
  atomic_bool reported;
};

/* Zeroed, it has no listener. All of these do nothing on NULL. */

/* `definitions` are those of all models. */
void progress_begin(struct progress *p, const json_t *definitions, uint64_t bytes);
void progress_loaded(struct progress *p, uint64_t bytes); /* one model more */
void progress_tick(struct progress *p); /* often: tells a step when it is time for one */
void progress_end(struct progress *p);

/* From its return on the listener is told nothing more, though models may still be loaded. */
void progress_silence(struct progress *p);

#endif
