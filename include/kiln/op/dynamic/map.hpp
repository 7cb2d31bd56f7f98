#pragma once
#include "kiln/op/concepts.hpp"

// Maps. Each is one value, a rank 0 tensor whose element is the object (core/object.hpp).
namespace kiln::detail {

/// The result of an op over a map, or the fault.
constexpr result<shape> read_from_map(std::span<const shape> in, std::size_t count, shape made) {
  if (in.size() != count) return fault::of(errc::invalid_argument, "number of inputs", count, in.size());
  if (in[0].type != dtype::map || in[0].rank() != 0)
    return fault::of(errc::shape_mismatch, "type of the first operand", shape{dtype::map, {}}, in[0]);
  return made;
}

}  // namespace kiln::detail

namespace kiln::op {

/// The rows of operand 0, [n, keys] or one row [keys], as a sequence of maps from the keys (operand 1: i64 or strings
/// of rank 1) to values of rank 0 (ai.onnx.ml ZipMap).
struct zip_maps {
  result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != 2) return fault::of(errc::invalid_argument, "number of inputs", 2, in.size());
    if (in[0].rank() != 1 && in[0].rank() != 2)
      return fault::of(errc::shape_mismatch, "the operand has dims [n, keys] or [keys]", "one or two", in[0].lens);
    if (in[1].rank() != 1 || !same(in[0].lens.back(), in[1].lens[0]).value_or(true))
      return fault::of(errc::shape_mismatch, "a key for each column", in[0].lens.back(), in[1].lens);
    return shape{dtype::sequence, {}};
  }
  small_vector<argument> produce(std::span<const argument> in) const;
};

/// The values of a map at the keys of operand 1, as one row [1, keys] of the stated dtype; where it has no such key, 0
/// or the empty string.
struct map_row {
  dtype type = dtype::f32;
  result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() == 2 && in[1].rank() != 1)
      return fault::of(errc::shape_mismatch, "rank of the keys", 1, in[1].rank());
    return detail::read_from_map(in, 2, {type, {1, in.size() == 2 ? in[1].lens[0] : dimension(0)}});
  }
  small_vector<argument> produce(std::span<const argument> in) const;
};

/// All values of a map in the order of its keys, as one row [1, count] of the stated dtype.
struct map_values {
  dtype type = dtype::f32;
  dimension count = 0;
  result<shape> compute_shape(std::span<const shape> in) const {
    return detail::read_from_map(in, 1, {type, {1, count}});
  }
  small_vector<argument> produce(std::span<const argument> in) const;
};

}  // namespace kiln::op
