/* clients: the times at which jobs would end in an ideal round, in which all workers serve all
 * clients with work at the same time, at the same rate, and each client's jobs in order. Private to
 * the pool.
 *
 * Time in the ideal round is virtual: it passes as fast as each client is served. So the virtual
 * end of a job does not depend on jobs that come later, and the pool can compare jobs by it. A
 * client without work in the round is forgotten; its next job begins now. */
#ifndef CORE_CLIENTS_H
#define CORE_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/run/heap.h"

struct client;

struct clients {
  double now;        /* virtual time: operations that each client has had */
  size_t count;      /* clients that have work left in the round */
  struct heap order; /* these clients, by the time at which they have none */
  struct client **bucket, *client, *free;
};

bool clients_init(struct clients *c); /* false: no memory */
void clients_done(struct clients *c); /* also after a clients_init that failed */

/* Adds a job of a client that costs `cost` operations. Returns its virtual end. */
double clients_add(struct clients *c, uint64_t client, double cost);

/* Corrects the cost of a client's job by `more` operations, which may be negative. */
void clients_correct(struct clients *c, uint64_t client, double more);

/* Moves the time on: `work` operations were computed, of all clients. */
void clients_advance(struct clients *c, double work);

void clients_forget(struct clients *c); /* no job is left */

#endif
