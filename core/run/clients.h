/* clients: when each job would end in an ideal round, in which all workers compute for every client
 * that has work at the same time, each at the same rate, and for one client first come, first
 * served. Private to the pool.
 *
 * Time in the round is virtual: it passes as fast as each of the clients is served. So what a job
 * needs ends at the same virtual time whoever comes behind it, and the pool can compare jobs by
 * that time. A client that has nothing left to be done in the round is forgotten; what it brings
 * next begins now. */
#ifndef CORE_CLIENTS_H
#define CORE_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/run/heap.h"

struct client;

struct clients {
  double now;        /* virtual: operations that each client has had */
  size_t count;      /* clients that have work left in the round */
  struct heap order; /* of these, by when they have none */
  struct client **bucket, *client, *free;
};

bool clients_init(struct clients *c); /* false: no memory */
void clients_done(struct clients *c); /* after a clients_init that failed, too */

/* A client brings a job that costs so many operations. Returns when it ends in the round. */
double clients_add(struct clients *c, uint64_t client, double cost);

/* A job of a client costs so many operations more than was said, or less. */
void clients_correct(struct clients *c, uint64_t client, double more);

void clients_advance(struct clients *c, double work); /* so many operations were done, of all */

void clients_forget(struct clients *c); /* there is no job left */

#endif
