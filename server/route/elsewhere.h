/* elsewhere: paths of other services that this server does not have, with the path to use instead
 * and the form of errors that their clients show. */
#ifndef SERVER_ELSEWHERE_H
#define SERVER_ELSEWHERE_H

/* The form of the errors of a path. */
enum error_form {
  ERROR_PROBLEM, /* RFC 9457 */
  ERROR_V1,      /* RFC 9457 with OpenAI's member `error` */
  ERROR_OPENAI,  /* {"error": {"message": ..., "type", "param", "code"}} */
  ERROR_COHERE,  /* ERROR_OPENAI with a member `message`, which Cohere's clients show */
  ERROR_V2,      /* {"error": ...}, a sentence, as in the Open Inference Protocol */
  ERROR_TEI      /* ERROR_V2 with `error_type`, as in text-embeddings-inference */
};

struct elsewhere {
  const char *path; /* this path, and all below it */
  enum error_form errors;
  const char *instead;
};

/* The first row that has the path, or a path above it; NULL: none. The path may have a query. */
const struct elsewhere *elsewhere_find(const char *path);

#endif
