/* activation: listening sockets that a supervisor hands to the process. */
#include "server/life/activation.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/document/text.h"

enum { FIRST = 3 }; /* descriptor: they come in a row */

/* Are the variables there, and meant for this process, not for one that has started it? */
static bool is_called(void) {
  const char *text = getenv("LISTEN_PID");
  uint64_t pid;
  return text && text_decimal(text, &pid) && pid == (uint64_t)getpid();
}

/* The next name of the list, cut off it; "" behind its end. */
static void take_name(const char **names, char *out, size_t size) {
  const size_t length = strcspn(*names, ":"), kept = length < size ? length : size - 1;
  memcpy(out, *names, kept);
  out[kept] = '\0';
  *names += length + ((*names)[length] == ':');
}

enum status activation_find(int fd[DOOR_COUNT], struct error *e) {
  fd[DOOR_MAIN] = fd[DOOR_ADMIN] = ACTIVATION_NONE;
  const char *text = getenv("LISTEN_FDS"), *names = getenv("LISTEN_FDNAMES");
  uint64_t count;
  if (!text || !is_called()) return STATUS_OK;
  if (!text_decimal(text, &count))
    return error_set(e, STATUS_CONFIG, "LISTEN_FDS: \"%.40s\" is no number of sockets", text);
  if (count > DOOR_COUNT)
    return error_set(e, STATUS_CONFIG,
                     "LISTEN_FDS: there are %llu sockets; attend takes one, and another one that "
                     "is named admin (FileDescriptorName=admin)",
                     (unsigned long long)count);
  if (!names) names = "";
  for (int i = 0; i < (int)count; i++) {
    char name[8];
    take_name(&names, name, sizeof name);
    const enum door_kind kind = strcmp(name, "admin") == 0 ? DOOR_ADMIN : DOOR_MAIN;
    if (fd[kind] != ACTIVATION_NONE)
      return error_set(e, STATUS_CONFIG,
                       "LISTEN_FDS: two sockets are for the same: name one of them admin "
                       "(FileDescriptorName=admin)");
    fd[kind] = FIRST + i;
  }
  return STATUS_OK;
}
