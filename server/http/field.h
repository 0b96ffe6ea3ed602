/* field: one field of an answer's head, and lists of them. */
#ifndef SERVER_FIELD_H
#define SERVER_FIELD_H

/* A list ends with an empty one. */
struct field {
  const char *name, *value;
};

#endif
