/* clients: the times at which jobs would end in an ideal round. */
#include "core/run/clients.h"

#include <stdlib.h>

/* If more clients have work at a time, each job of the others begins now. */
enum { CLIENTS_MOST = 4096 };

struct client {
  uint64_t name;
  struct heap_node ends; /* the virtual time at which it has no work left */
  struct client *next;   /* in its bucket, or in the list of free ones */
};

bool clients_init(struct clients *c) {
  *c = (struct clients){.bucket = calloc(CLIENTS_MOST, sizeof *c->bucket),
                        .client = calloc(CLIENTS_MOST, sizeof *c->client)};
  for (size_t i = 0; c->client && i < CLIENTS_MOST; i++) {
    c->client[i].next = c->free;
    c->free = &c->client[i];
  }
  return c->bucket && c->client;
}

void clients_done(struct clients *c) {
  free(c->bucket);
  free(c->client);
}

/* The link to the client of this name, or to its place. */
static struct client **find(struct clients *c, uint64_t name) {
  struct client **at = &c->bucket[(name * 0x9e3779b97f4a7c15) >> 32 & (CLIENTS_MOST - 1)];
  while (*at && (*at)->name != name) at = &(*at)->next;
  return at;
}

static void forget(struct clients *c, struct client *one) {
  struct client **at = find(c, one->name);
  *at = one->next;
  one->next = c->free;
  c->free = one;
  heap_remove(&c->order, &one->ends);
  c->count--;
}

static struct client *client_of(struct heap_node *ends) {
  return (struct client *)((char *)ends - offsetof(struct client, ends));
}

static void move_end(struct clients *c, struct client *one, double by) {
  heap_remove(&c->order, &one->ends);
  one->ends.key += by;
  heap_add(&c->order, &one->ends);
}

double clients_add(struct clients *c, uint64_t client, double cost) {
  struct client **at = find(c, client), *one = *at;
  if (one) {
    move_end(c, one, cost);
    return one->ends.key;
  }
  if (!c->free) return c->now + cost;
  one = *at = c->free;
  c->free = one->next;
  *one = (struct client){.name = client, .ends.key = c->now + cost};
  heap_add(&c->order, &one->ends);
  c->count++;
  return one->ends.key;
}

void clients_correct(struct clients *c, uint64_t client, double more) {
  struct client *one = *find(c, client);
  if (!one || more == 0) return;
  move_end(c, one, more);
  if (one->ends.key <= c->now) forget(c, one);
}

void clients_advance(struct clients *c, double work) {
  while (c->count > 0) {
    const double left = (c->order.root->key - c->now) * (double)c->count;
    if (work < left) {
      c->now += work / (double)c->count;
      return;
    }
    work -= left;
    c->now = c->order.root->key;
    forget(c, client_of(c->order.root));
  }
}

void clients_forget(struct clients *c) {
  while (c->count > 0) forget(c, client_of(c->order.root));
  c->now = 0;
}
