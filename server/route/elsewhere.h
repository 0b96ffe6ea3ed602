/* elsewhere: paths that clients of other services ask for and that are not here: what there is
 * instead, and in which form the client shows an error. */
#ifndef SERVER_ELSEWHERE_H
#define SERVER_ELSEWHERE_H

/* How the errors of a path are written. */
enum error_form {
  ERROR_PROBLEM, /* RFC 9457 */
  ERROR_V1,      /* likewise, with OpenAI's member `error` in it */
  ERROR_OPENAI,  /* {"error": {"message": ..., "type", "param", "code"}} */
  ERROR_COHERE,  /* likewise, with `message` beside, which Cohere's clients show */
  ERROR_V2,      /* {"error": ...}, a sentence, as in the Open Inference Protocol */
  ERROR_TEI      /* likewise, with its kind, as in text-embeddings-inference */
};

struct elsewhere {
  const char *path; /* itself, and all below it */
  enum error_form errors;
  const char *instead;
};

/* The first that the path is or is below; NULL: none. The path may have a query. */
const struct elsewhere *elsewhere_find(const char *path);

#endif
