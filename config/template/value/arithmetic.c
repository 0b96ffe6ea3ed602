/* arithmetic: the operators of numbers, texts and lists, with Python's results. */
#include "config/template/value/arithmetic.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/template/value/buffer.h"

static const char *const signs[] = {
    [ARITHMETIC_ADD] = "+",    [ARITHMETIC_SUBTRACT] = "-",      [ARITHMETIC_MULTIPLY] = "*",
    [ARITHMETIC_DIVIDE] = "/", [ARITHMETIC_FLOOR_DIVIDE] = "//", [ARITHMETIC_REMAINDER] = "%",
    [ARITHMETIC_POWER] = "**"};

static struct value fail_size(struct bounds *b) {
  bounds_fail(b, "the result is an integer of more than 64 bits, which is not supported");
  return VALUE_FAILED;
}

static struct value fail_zero(struct bounds *b) {
  bounds_fail(b, "division by zero");
  return VALUE_FAILED;
}

/* --- integers --- */

static struct value power_of_integers(struct bounds *b, int64_t x, int64_t y) {
  if (y < 0) return x == 0 ? fail_zero(b) : value_real(pow((double)x, (double)y));
  int64_t result = 1;
  if (x == 0 || x == 1) return value_integer(y == 0 ? 1 : x);
  if (x == -1) return value_integer(y % 2 ? -1 : 1);
  while (y-- > 0)
    if (__builtin_mul_overflow(result, x, &result)) return fail_size(b);
  return value_integer(result);
}

/* Python divides towards minus infinity; the remainder has the sign of the divisor. */
static struct value divide_integers(struct bounds *b, int64_t x, int64_t y, bool remainder) {
  if (y == 0) return fail_zero(b);
  if (y == -1) {
    int64_t negative;
    if (remainder) return value_integer(0);
    return __builtin_sub_overflow(0, x, &negative) ? fail_size(b) : value_integer(negative);
  }
  const int64_t left = x % y, quotient = x / y;
  const bool other_sign = left != 0 && (left < 0) != (y < 0);
  return value_integer(remainder ? (other_sign ? left + y : left) : quotient - other_sign);
}

static struct value of_integers(struct bounds *b, enum arithmetic_operator is, int64_t x,
                                int64_t y) {
  int64_t result = 0;
  bool overflow = false;
  switch (is) {
  case ARITHMETIC_ADD:
    overflow = __builtin_add_overflow(x, y, &result);
    break;
  case ARITHMETIC_SUBTRACT:
    overflow = __builtin_sub_overflow(x, y, &result);
    break;
  case ARITHMETIC_MULTIPLY:
    overflow = __builtin_mul_overflow(x, y, &result);
    break;
  case ARITHMETIC_DIVIDE:
    return y == 0 ? fail_zero(b) : value_real((double)((long double)x / (long double)y));
  case ARITHMETIC_POWER:
    return power_of_integers(b, x, y);
  default:
    return divide_integers(b, x, y, is == ARITHMETIC_REMAINDER);
  }
  return overflow ? fail_size(b) : value_integer(result);
}

/* --- reals --- */

static struct value divide_reals(struct bounds *b, double x, double y, bool remainder) {
  if (y == 0) return fail_zero(b);
  double left = fmod(x, y), quotient = (x - left) / y;
  if (left != 0 && (left < 0) != (y < 0)) {
    left += y;
    quotient -= 1;
  } else if (left == 0) {
    left = copysign(0, y);
  }
  if (remainder) return value_real(left);
  if (quotient == 0) return value_real(copysign(0, x / y));
  double whole = floor(quotient);
  if (quotient - whole > 0.5) whole += 1;
  return value_real(whole);
}

static struct value power_of_reals(struct bounds *b, double x, double y) {
  if (x == 0 && y < 0) return fail_zero(b);
  if (x < 0 && isfinite(x) && isfinite(y) && y != floor(y)) {
    bounds_fail(b, "the result is a complex number, which is not supported");
    return VALUE_FAILED;
  }
  const double result = pow(x, y);
  if (isinf(result) && isfinite(x) && isfinite(y)) {
    bounds_fail(b, "the result of ** is too large");
    return VALUE_FAILED;
  }
  return value_real(result);
}

static struct value of_reals(struct bounds *b, enum arithmetic_operator is, double x, double y) {
  switch (is) {
  case ARITHMETIC_ADD:
    return value_real(x + y);
  case ARITHMETIC_SUBTRACT:
    return value_real(x - y);
  case ARITHMETIC_MULTIPLY:
    return value_real(x * y);
  case ARITHMETIC_DIVIDE:
    return y == 0 ? fail_zero(b) : value_real(x / y);
  case ARITHMETIC_POWER:
    return power_of_reals(b, x, y);
  default:
    return divide_reals(b, x, y, is == ARITHMETIC_REMAINDER);
  }
}

/* --- texts and lists --- */

static bool append_all(struct bounds *b, struct value to, struct value from) {
  size_t count;
  value_items(from, &count);
  for (size_t i = 0; i < count; i++)
    if (!value_append(b, to, value_at(from, i))) return false;
  return true;
}

static bool is_list(struct value v) { return v.kind == VALUE_LIST || v.kind == VALUE_TUPLE; }

static struct value join(struct bounds *b, struct value x, struct value y) {
  if (x.kind == VALUE_TEXT) {
    struct buffer text = {0};
    return buffer_add(b, &text, x.text, x.length) && buffer_add(b, &text, y.text, y.length)
               ? buffer_value(b, &text)
               : VALUE_FAILED;
  }
  const struct value list = value_list(b, x.kind);
  return list.kind && append_all(b, list, x) && append_all(b, list, y) ? list : VALUE_FAILED;
}

static struct value repeat(struct bounds *b, struct value x, int64_t times) {
  if (x.kind == VALUE_TEXT) {
    struct buffer text = {0};
    return buffer_repeat(b, &text, x.text, x.length, times) ? buffer_value(b, &text) : VALUE_FAILED;
  }
  const struct value list = value_list(b, x.kind);
  size_t count;
  value_items(x, &count);
  for (int64_t i = 0; list.kind && count > 0 && i < times; i++)
    if (!append_all(b, list, x)) return VALUE_FAILED;
  return list;
}

struct value arithmetic_values(struct bounds *b, enum arithmetic_operator is, struct value x,
                               struct value y) {
  if (x.kind == VALUE_UNDEFINED) return value_fail_undefined(b, x);
  if (y.kind == VALUE_UNDEFINED) return value_fail_undefined(b, y);
  if (value_is_integer(x) && value_is_integer(y))
    return of_integers(b, is, value_as_integer(x), value_as_integer(y));
  if (value_is_number(x) && value_is_number(y))
    return of_reals(b, is, value_as_real(x), value_as_real(y));
  if (is == ARITHMETIC_ADD && x.kind == y.kind && (x.kind == VALUE_TEXT || is_list(x)))
    return join(b, x, y);
  if (is == ARITHMETIC_MULTIPLY && (x.kind == VALUE_TEXT || is_list(x)) && value_is_integer(y))
    return repeat(b, x, value_as_integer(y));
  if (is == ARITHMETIC_MULTIPLY && (y.kind == VALUE_TEXT || is_list(y)) && value_is_integer(x))
    return repeat(b, y, value_as_integer(x));
  bounds_fail(b, "unsupported operand types for %s: '%s' and '%s'", signs[is], value_type(x),
              value_type(y));
  return VALUE_FAILED;
}

struct value arithmetic_negate(struct bounds *b, struct value x) {
  if (x.kind == VALUE_REAL) return value_real(-x.real);
  if (value_is_integer(x)) return of_integers(b, ARITHMETIC_SUBTRACT, 0, value_as_integer(x));
  if (x.kind == VALUE_UNDEFINED) return value_fail_undefined(b, x);
  bounds_fail(b, "bad operand type for unary -: '%s'", value_type(x));
  return VALUE_FAILED;
}

struct value arithmetic_plus(struct bounds *b, struct value x) {
  if (x.kind == VALUE_REAL) return x;
  if (value_is_integer(x)) return value_integer(value_as_integer(x));
  if (x.kind == VALUE_UNDEFINED) return value_fail_undefined(b, x);
  bounds_fail(b, "bad operand type for unary +: '%s'", value_type(x));
  return VALUE_FAILED;
}

struct value arithmetic_integer(struct bounds *b, double real) {
  if (real >= -0x1p63 && real < 0x1p63) return value_integer((int64_t)real);
  if (isfinite(real)) return fail_size(b);
  bounds_fail(b, "cannot convert float %s to integer", isnan(real) ? "NaN" : "infinity");
  return VALUE_FAILED;
}

/* Half to even, to a multiple of ten to some power. */
static struct value round_integer(struct bounds *b, int64_t x, int64_t zeros) {
  int64_t unit = 1, result;
  for (int64_t i = 0; i < zeros; i++)
    if (__builtin_mul_overflow(unit, 10, &unit)) return value_integer(0);
  const int64_t left = divide_integers(b, x, unit, true).integer, low = x - left;
  const bool odd = divide_integers(b, low, unit, false).integer % 2 != 0;
  const bool up = left > unit - left || (left == unit - left && odd);
  if (!up) return value_integer(low);
  return __builtin_add_overflow(low, unit, &result) ? fail_size(b) : value_integer(result);
}

struct value arithmetic_round(struct bounds *b, struct value x, int64_t decimals) {
  enum { MOST = 330, TEXT = 700 };
  if (value_is_integer(x))
    return decimals >= 0 ? value_integer(value_as_integer(x))
                         : round_integer(b, value_as_integer(x), -decimals);
  if (x.kind == VALUE_UNDEFINED) return value_fail_undefined(b, x);
  if (x.kind != VALUE_REAL) {
    bounds_fail(b, "type %s doesn't define __round__ method", value_type(x));
    return VALUE_FAILED;
  }
  if (!isfinite(x.real) || decimals > MOST) return x;
  if (decimals < 0) {
    const double unit = decimals < -MOST ? HUGE_VAL : pow(10, (double)-decimals);
    return value_real(isinf(unit) ? copysign(0, x.real) : rint(x.real / unit) * unit);
  }
  char text[TEXT];
  snprintf(text, sizeof text, "%.*f", (int)decimals, x.real);
  return value_real(strtod(text, NULL));
}
