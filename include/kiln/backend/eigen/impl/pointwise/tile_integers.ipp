#include <algorithm>
#include <cmath>
#include <optional>

#include "kiln/backend/eigen/block_program.hpp"
#include "kiln/op/quant/quantize_linear.hpp"

namespace kiln::eigen {

namespace {

// What an integer can be.
struct range {
  double low = 0, high = 0;
  // Floats of 32 bits hold each whole number up to here, so that sums of such are exact.
  bool is_exact() const { return std::fmax(std::fabs(low), std::fabs(high)) <= 0x1p24; }
};

std::optional<range> range_of(dtype t) {
  if (t != dtype::u8 && t != dtype::i8 && t != dtype::u16 && t != dtype::i16) return std::nullopt;
  const auto [low, high] = kiln::detail::bounds_of_integer(t);
  return range{static_cast<double>(low), static_cast<double>(high)};
}
bool is_wide(dtype t) { return t == dtype::i32 || t == dtype::i64; }

std::optional<range> range_of(const operation& op, std::span<const range> in) {
  if (in.size() != 2) return std::nullopt;
  const auto [a, b] = std::pair(in[0], in[1]);
  if (op.get_if<op::add>()) return range{a.low + b.low, a.high + b.high};
  if (op.get_if<op::sub>()) return range{a.low - b.high, a.high - b.low};
  return std::nullopt;  // a product of floats may be -0
}

}  // namespace

// Integers on the way from bytes to floats (numbers less their zero point, say) are computed as floats where these hold
// every value exactly: the steps of blocks are those of floats.
void tile_program::compute_integers_in_floats() {
  std::vector<std::optional<range>> known(values_.size());
  std::vector<bool> moves(values_.size(), false);  // to floats
  for (std::size_t v = 0; v < values_.size(); ++v)
    if (values_[v].from == source::constant && is_wide(values_[v].type) && values_[v].constant.elements() == 1 &&
        !values_[v].constant.has_symbols()) {
      const auto x = static_cast<double>(values_[v].constant.at<std::int64_t>(0));
      known[v] = range{x, x};
    } else if (values_[v].from != source::constant) {
      known[v] = range_of(values_[v].type);
    }
  for (const call& c : calls_) {
    if (!is_wide(values_[c.out].type) || c.kind == call::what::fold) continue;
    small_vector<range> in;
    for (const std::uint32_t v : c.in)
      if (known[v]) in.push_back(*known[v]);
    if (in.size() != c.in.size()) continue;
    const bool passes = c.kind == call::what::repeat || c.op.get_if<op::convert>();
    known[c.out] = passes ? in[0] : range_of(c.op, std::span<const range>(in.data(), in.size()));
  }
  for (std::size_t v = 0; v < values_.size(); ++v)
    moves[v] = is_wide(values_[v].type) && values_[v].from != source::parameter && known[v] && known[v]->is_exact();
  for (const std::uint32_t v : results_) moves[v] = false;
  // one that does not move keeps the others of its call
  for (bool changed = true; changed;) {
    changed = false;
    for (const call& c : calls_) {
      const bool to_float = c.op && c.op.get_if<op::convert>() && values_[c.out].type == dtype::f32;
      bool keeps = !moves[c.out] && !to_float;
      if (moves[c.out] && !(c.op && c.op.get_if<op::convert>()))
        for (const std::uint32_t v : c.in) keeps = keeps || !moves[v];
      if (!keeps) continue;
      for (const std::uint32_t v : c.in) changed = changed || moves[v], moves[v] = false;
      changed = changed || moves[c.out], moves[c.out] = false;
    }
  }
  for (std::size_t v = 0; v < values_.size(); ++v) {
    if (!moves[v]) continue;
    values_[v].type = dtype::f32;
    if (values_[v].from == source::constant) values_[v].constant = literal::scalar(dtype::f32, known[v]->low);
  }
  for (call& c : calls_) {
    bool reads = false;
    for (const std::uint32_t v : c.in) reads = reads || moves[v];
    if (!moves[c.out] && !reads) continue;
    if (c.kind == call::what::tile && c.op.get_if<op::convert>()) c.op = operation(op::convert{dtype::f32});
    if (c.kind == call::what::tile && c.op.get_if<op::convert>() && !reads) continue;  // of bytes
    c.compute = c.natural = dtype::f32;
    if (c.kind == call::what::tile && c.op.table().index < default_registry::size)
      c.tile = kiln_eigen_isa()->tile(c.op.table().index);
  }
}

}  // namespace kiln::eigen
