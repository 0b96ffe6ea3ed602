/* inspect_path: makes a path start at another folder, by its words alone: links are not followed.
 */
#include "config/inspect/inspect_path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/document/file.h"

static void skip_current_folder(const char **path) {
  while (strncmp(*path, "./", 2) == 0) *path += 2 + strspn(*path + 2, "/");
}

char *inspect_path_for(const char *checkpoint, const char *written, struct error *e) {
  skip_current_folder(&written);
  const char *slash = strrchr(written, '/');
  const size_t length = slash ? (size_t)(slash - written) + 1 : 0; /* of the folder, with its / */
  const char *from = checkpoint;
  char *path = NULL, *here = NULL;
  skip_current_folder(&from);
  if (checkpoint[0] == '/' || length == 0) {
    path = strdup(checkpoint);
  } else if (strncmp(from, written, length) == 0 && from[length]) {
    path = strdup(from + length);
  } else if ((here = getcwd(NULL, 0))) {
    path = file_path(here, from);
  }
  if (!path && !here && errno != ENOMEM)
    error_set(e, STATUS_SYSTEM, "the current folder is not known: %s", strerror(errno));
  if (!path) error_no_memory(e);
  free(here);
  return path;
}
