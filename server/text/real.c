/* real: tries ever more digits until a real reads back the same. */
#include "server/text/real.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/number/number.h"

enum { DIGITS_MOST = 17, TEXT_SIZE = 40 };

double real_of_float(float value) {
  char text[NUMBER_TEXT_MAX + NUMBER_WRITE_MARGIN];
  *number_write(text, value) = '\0';
  return strtod(text, NULL);
}

/* A number without a fraction below this size is written without an exponent, too. */
static const double plain_most = 1e15;

/* Writes `value` in the fewest digits and, as Jansson does, with a point or an exponent. */
static size_t write_shortest(double value, char out[TEXT_SIZE]) {
  for (int digits = 1; digits <= DIGITS_MOST; digits++) {
    snprintf(out, TEXT_SIZE, "%.*g", digits, value);
    const bool plain = !strchr(out, 'e') || fabs(value) < 1 || fabs(value) >= plain_most;
    if (plain && strtod(out, NULL) == value) break;
  }
  const size_t length = strlen(out);
  if (strpbrk(out, ".e")) return length;
  memcpy(out + length, ".0", sizeof ".0");
  return length + 2;
}

/* The end of the string, the number or the other character that begins here. */
static const char *word_end(const char *at) {
  if (*at == '"') {
    for (at++; *at != '"'; at++)
      if (*at == '\\') at++;
    return at + 1;
  }
  const size_t number = strspn(at, "+-.0123456789eE");
  return *at == '-' || (*at >= '0' && *at <= '9') ? at + number : at + 1;
}

size_t real_shorten(char *text) {
  char *to = text, shortest[TEXT_SIZE];
  for (const char *at = text, *end; *at; at = end) {
    end = word_end(at);
    const size_t length = (size_t)(end - at);
    const bool real = *at != '"' && strcspn(at, ".eE") < length && length > 1;
    const size_t shorter = real ? write_shortest(strtod(at, NULL), shortest) : length;
    const bool better = shorter < length;
    memmove(to, better ? shortest : at, better ? shorter : length);
    to += better ? shorter : length;
  }
  *to = '\0';
  return (size_t)(to - text);
}
