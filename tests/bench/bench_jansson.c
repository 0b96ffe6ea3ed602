/* bench_jansson: the yardstick of a request's text: CPU time of json_loadb and json_dumps.
 *
 *   bench_jansson REQUEST ANSWER [TURNS]
 *
 * Loads the request's text and dumps a document of the answer's numbers, as a service made with
 * Jansson would, without any mathematics between. Prints the best of TURNS as milliseconds of CPU:
 * "load dump". Without arguments there is nothing to measure and nothing is printed. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double cpu_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* The whole file, or NULL. */
static char *read_file(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  char *text = NULL;
  if (fseek(file, 0, SEEK_END) == 0 && ftell(file) >= 0) {
    *size = (size_t)ftell(file);
    rewind(file);
    text = malloc(*size + 1);
    if (text && fread(text, 1, *size, file) != *size) {
      free(text);
      text = NULL;
    }
  }
  fclose(file);
  return text;
}

int main(int argc, char **argv) {
  if (argc < 3) return 0;
  const int turns = argc > 3 ? atoi(argv[3]) : 3;
  size_t request_size = 0, answer_size = 0;
  char *request = read_file(argv[1], &request_size);
  char *answer = read_file(argv[2], &answer_size);
  int status = 1;
  double load = 1e300, dump = 1e300;
  if (!request || !answer) goto out;
  for (int i = 0; i < turns; i++) {
    const double begun = cpu_ms();
    json_t *document = json_loadb(request, request_size, JSON_REJECT_DUPLICATES, NULL);
    const double loaded = cpu_ms();
    if (!document) goto out;
    json_decref(document); /* counted to neither: kind to the yardstick */
    if (loaded - begun < load) load = loaded - begun;
    document = json_loadb(answer, answer_size, JSON_REJECT_DUPLICATES, NULL);
    if (!document) goto out;
    const double ready = cpu_ms();
    char *text = json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(9));
    const double dumped = cpu_ms();
    json_decref(document);
    if (!text) goto out;
    free(text);
    if (dumped - ready < dump) dump = dumped - ready;
  }
  printf("%.3f %.3f\n", load, dump);
  status = 0;
out:
  if (status) fprintf(stderr, "bench_jansson: cannot read or parse %s or %s\n", argv[1], argv[2]);
  free(request);
  free(answer);
  return status;
}
