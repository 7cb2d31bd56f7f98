#include "kiln/core/archive.hpp"

#include "kiln/core/impl/dimension_table.hpp"

namespace kiln {

using detail::expressions::atom;
using detail::expressions::term;

namespace {

// What a dimension begins with; larger numbers are known expressions.
constexpr std::uint64_t constant_mark = 0, expression_mark = 1, first_known = 2;

}  // namespace

void archive_writer::put_unsigned(std::uint64_t v) {
  for (; v >= 0x80; v >>= 7) bytes_ += static_cast<char>(v | 0x80);
  bytes_ += static_cast<char>(v);
}

void archive_writer::put_signed(std::int64_t v) {
  put_unsigned((static_cast<std::uint64_t>(v) << 1) ^ static_cast<std::uint64_t>(v >> 63));
}

void archive_writer::put_text(std::string_view text) {
  put_unsigned(text.size());
  bytes_ += text;
}

void archive_writer::put_dimension(dimension d) {
  if (d.is_constant()) {
    put_unsigned(constant_mark);
    return put_signed(d.raw());
  }
  const auto id = static_cast<std::size_t>(d.raw() - dimension::first_expression);
  if (id < known_.size() && known_[id] != 0)
    return put_unsigned(first_known + static_cast<std::uint64_t>(known_[id]) - 1);
  put_unsigned(expression_mark);
  const auto terms = detail::expressions::get(d);
  put_unsigned(terms.size());
  for (const term& t : terms) {
    put_signed(t.coefficient);
    put_unsigned(t.factors.size());
    for (const auto id : t.factors) {
      const atom a = detail::expressions::get_atom(id);
      put_unsigned(static_cast<unsigned char>(a.op));
      if (a.op == 's') {
        put_text(a.name);
        put_signed(a.min);
        put_signed(a.max);
      } else {
        put_dimension(a.lhs);
        put_dimension(a.rhs);
      }
    }
  }
  if (id >= known_.size()) known_.resize(id + 1);
  known_[id] = static_cast<std::int64_t>(++known_count_);  // after those it is made of
}

void archive_reader::fail(std::string_view expected) const {
  raise(errc::malformed, what_ + ": expected " + std::string(expected));
}

std::uint64_t archive_reader::take_unsigned() {
  std::uint64_t v = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) fail("a number, found its end");
    const auto byte = static_cast<unsigned char>(rest_[0]);
    rest_.remove_prefix(1);
    if (shift == 63 && byte > 1) break;
    v |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return v;
  }
  fail("a number of 64 bits, found a longer one");
}

std::int64_t archive_reader::take_signed() {
  const std::uint64_t v = take_unsigned();
  return static_cast<std::int64_t>(v >> 1) ^ -static_cast<std::int64_t>(v & 1);
}

std::size_t archive_reader::take_count(std::size_t least_bytes) {
  const std::uint64_t n = take_unsigned();
  if (n > rest_.size() / least_bytes)
    fail("at most " + std::to_string(rest_.size() / least_bytes) + " elements in what is left of it, found " +
         std::to_string(n));
  return static_cast<std::size_t>(n);
}

std::size_t archive_reader::take_index(std::size_t end, std::string_view of) {
  const std::uint64_t n = take_unsigned();
  if (n >= end) fail("one of " + std::to_string(end) + " " + std::string(of) + ", found number " + std::to_string(n));
  return static_cast<std::size_t>(n);
}

std::string_view archive_reader::take_text() {
  const std::size_t n = take_count();
  const std::string_view text = rest_.substr(0, n);
  rest_.remove_prefix(n);
  return text;
}

dimension archive_reader::take_dimension() { return take_dimension(0); }

dimension archive_reader::take_dimension(int depth) {
  const std::uint64_t mark = take_unsigned();
  if (mark == constant_mark) {
    const std::int64_t v = take_signed();
    if (v < dimension::least_constant) fail("an extent, found " + std::to_string(v));
    return v;
  }
  if (mark == expression_mark) return take_expression(depth);
  if (mark - first_known >= known_.size()) fail("an expression that stands before this one");
  return known_[mark - first_known];
}

dimension archive_reader::take_expression(int depth) {
  constexpr int most_depth = 200;
  if (depth == most_depth) fail("expressions of at most " + std::to_string(most_depth) + " levels");
  dimension sum = 0;
  const std::size_t terms = take_count(2);
  for (std::size_t i = 0; i < terms; ++i) {
    const std::int64_t coefficient = take_signed();
    if (coefficient < dimension::least_constant) fail("a coefficient, found " + std::to_string(coefficient));
    dimension product = coefficient;
    const std::size_t factors = take_count(3);
    for (std::size_t k = 0; k < factors; ++k) {
      const std::uint64_t op = take_unsigned();
      if (op == 's') {
        const std::string_view name = take_text();
        const std::int64_t min = take_signed(), max = take_signed();
        product *= dimension::symbol(name, min, max);
      } else if (op == '/' || op == '%' || op == 'm' || op == 'M') {
        const dimension lhs = take_dimension(depth + 1), rhs = take_dimension(depth + 1);
        product *= detail::combine_dimensions(static_cast<char>(op), lhs, rhs);
      } else {
        fail("an operation of an expression, found number " + std::to_string(op));
      }
    }
    sum += product;
  }
  known_.push_back(sum);
  return sum;
}

}  // namespace kiln
