#include "kiln/text/impl/jinja/operators.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kiln/text/impl/jinja/unicode.hpp"

namespace kiln::language::jinja {
namespace {

constexpr std::string_view signs[] = {"+", "-", "*", "/", "//", "%", "**"};

[[noreturn]] void too_large() { fail("an integer goes beyond 64 bits"); }
[[noreturn]] void by_zero() { fail("division by zero"); }

std::int64_t power(std::int64_t base, std::int64_t exponent) {
  std::int64_t out = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) && __builtin_mul_overflow(out, base, &out)) too_large();
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) too_large();
  }
  return out;
}

value whole_numbers(arithmetic op, std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  switch (op) {
    case arithmetic::add:
      if (__builtin_add_overflow(a, b, &out)) too_large();
      return out;
    case arithmetic::subtract:
      if (__builtin_sub_overflow(a, b, &out)) too_large();
      return out;
    case arithmetic::multiply:
      if (__builtin_mul_overflow(a, b, &out)) too_large();
      return out;
    case arithmetic::divide:
      if (b == 0) by_zero();
      return static_cast<double>(a) / static_cast<double>(b);
    case arithmetic::power:
      if (b < 0 && a == 0) by_zero();
      return b < 0 ? value(std::pow(static_cast<double>(a), static_cast<double>(b))) : value(power(a, b));
    default: break;
  }
  if (b == 0) by_zero();
  if (b == -1) {  // the one quotient that may not fit
    if (op == arithmetic::modulo) return std::int64_t{0};
    if (__builtin_sub_overflow(std::int64_t{0}, a, &out)) too_large();
    return out;
  }
  // Python rounds quotients down
  const std::int64_t quotient = a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
  return op == arithmetic::floor_divide ? quotient : a - quotient * b;
}

value real_numbers(arithmetic op, double a, double b) {
  switch (op) {
    case arithmetic::add: return a + b;
    case arithmetic::subtract: return a - b;
    case arithmetic::multiply: return a * b;
    case arithmetic::power: return std::pow(a, b);
    default: break;
  }
  if (b == 0) by_zero();
  if (op == arithmetic::divide) return a / b;
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  if (op == arithmetic::modulo) return rest == 0 ? std::copysign(0.0, b) : rest;
  const double quotient = (a - rest) / b;
  const double down = std::floor(quotient);
  return quotient - down > 0.5 ? down + 1 : down;
}

value repeat(interpreter& in, const value& of, std::int64_t times) {
  const auto n = static_cast<std::size_t>(std::max<std::int64_t>(times, 0));
  const std::size_t size = of.is(kind::string) ? of.bytes().size() : of.list()->items.size();
  if (size != 0 && n > (std::numeric_limits<std::size_t>::max() >> 8) / size) in.step(std::size_t{1} << 60);
  in.values.charge(size * n);  // before it is made
  if (of.is(kind::string)) {
    std::string out;
    for (std::size_t i = 0; i < (size == 0 ? 0 : n); ++i) out += of.bytes();
    return in.text(std::move(out));
  }
  std::vector<value> items;
  for (std::size_t i = 0; i < (size == 0 ? 0 : n); ++i)
    items.insert(items.end(), of.list()->items.begin(), of.list()->items.end());
  return in.values.list(std::move(items), of.list()->as);
}

bool is_sequence(const value& v) {
  return v.is(kind::list) && (v.list()->as == list_object::form::list || v.list()->as == list_object::form::tuple);
}

// Where a slice begins and ends, as Python clips them.
std::int64_t clip(const value& bound, std::int64_t size, std::int64_t otherwise, std::int64_t low, std::int64_t high) {
  if (bound.is(kind::none)) return otherwise;
  if (!bound.is_whole()) fail("slice indices are integers or None, found '" + std::string(type_name(bound)) + "'");
  std::int64_t i = bound.integer();
  if (i < 0) i = i < -size ? low : i + size;
  return std::clamp(i, low, high);
}

}  // namespace

value negate(const value& v) {
  if (v.is(kind::real)) return -v.real();
  return whole_numbers(arithmetic::subtract, 0, v.integer());
}

value calculate(interpreter& in, arithmetic op, const value& a, const value& b) {
  if (a.is_whole() && b.is_whole()) return whole_numbers(op, a.integer(), b.integer());
  if (a.is_number() && b.is_number()) return real_numbers(op, a.real(), b.real());
  if (a.is(kind::undefined)) fail_undefined(a);
  if (op == arithmetic::modulo && a.is(kind::string)) return in.text(format_percent(in, a.bytes(), b));
  if (b.is(kind::undefined)) fail_undefined(b);
  if (op == arithmetic::add && a.is(kind::string) && b.is(kind::string)) return in.text(a.bytes() + b.bytes());
  if (op == arithmetic::add && is_sequence(a) && is_sequence(b) && a.list()->as == b.list()->as) {
    std::vector<value> items = a.list()->items;
    items.insert(items.end(), b.list()->items.begin(), b.list()->items.end());
    return in.values.list(std::move(items), a.list()->as);
  }
  if (op == arithmetic::multiply) {
    if ((a.is(kind::string) || is_sequence(a)) && b.is_whole()) return repeat(in, a, b.integer());
    if ((b.is(kind::string) || is_sequence(b)) && a.is_whole()) return repeat(in, b, a.integer());
  }
  fail("unsupported operand types for " + std::string(signs[static_cast<unsigned>(op)]) + ": '" +
       std::string(type_name(a)) + "' and '" + std::string(type_name(b)) + "'");
}

bool contains(interpreter& in, const value& whole, const value& part) {
  if (whole.is(kind::string)) {
    if (part.is(kind::undefined)) fail_undefined(part);
    if (!part.is(kind::string))
      fail("'in' of a string requires a string, found '" + std::string(type_name(part)) + "'");
    return whole.bytes().find(part.bytes()) != std::string::npos;
  }
  if (whole.is(kind::dict)) return whole.dict()->find(part) != nullptr;
  const std::vector<value> items = in.items_of(whole);
  return std::any_of(items.begin(), items.end(), [&](const value& v) { return equal(v, part); });
}

bool compare(interpreter& in, comparing op, const value& a, const value& b) {
  switch (op) {
    case comparing::equal: return equal(a, b);
    case comparing::not_equal: return !equal(a, b);
    case comparing::in: return contains(in, b, a);
    case comparing::not_in: return !contains(in, b, a);
    default: break;
  }
  if (a.is_number() && b.is_number() && (std::isnan(a.real()) || std::isnan(b.real()))) return false;
  const int o = order(a, b);
  return op == comparing::less         ? o < 0
         : op == comparing::less_equal ? o <= 0
         : op == comparing::greater    ? o > 0
                                       : o >= 0;
}

value slice(interpreter& in, const value& of, const value& begin, const value& end, const value& step_value) {
  if (of.is(kind::undefined)) fail_undefined(of);
  if (!of.is(kind::list) && !of.is(kind::string))
    return in.values.undefined("'" + std::string(type_name(of)) + "' object has no slices");
  const bool is_text = of.is(kind::string);
  const auto size = static_cast<std::int64_t>(is_text ? of.str().points : of.list()->items.size());
  std::int64_t by = 1;
  if (!step_value.is(kind::none)) {
    if (!step_value.is_whole()) fail("slice indices are integers or None");
    by = std::clamp<std::int64_t>(step_value.integer(), -size - 1, size + 1);
    if (step_value.integer() == 0) fail("slice step can't be zero");
  }
  const std::int64_t low = by > 0 ? 0 : -1, high = by > 0 ? size : size - 1;
  const std::int64_t first = clip(begin, size, by > 0 ? 0 : size - 1, low, high);
  const std::int64_t last = clip(end, size, by > 0 ? size : -1, low, high);
  if (is_text && by == 1) {
    if (first >= last) return in.text({});
    if (of.str().is_ascii())
      return in.text(of.bytes().substr(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first)));
  }
  std::vector<std::size_t> places;
  if (is_text) places = point_places(of.bytes());
  std::string text;
  std::vector<value> items;
  for (std::int64_t i = first; by > 0 ? i < last : i > last; i += by) {
    const auto at = static_cast<std::size_t>(i);
    if (is_text)
      text.append(of.bytes(), places[at], places[at + 1] - places[at]);
    else
      items.push_back(of.list()->items[at]);
  }
  return is_text ? in.text(std::move(text)) : in.values.list(std::move(items), of.list()->as);
}

}  // namespace kiln::language::jinja
