#pragma once
#include <vector>

#include "kiln/op/concepts.hpp"

// Ops that find how many elements there are: the number is a symbol that the run binds.
namespace kiln::op {

/// Indices of the elements that are not zero, one column each, in row-major order (ONNX NonZero).
struct nonzero {
  dimension count = 0;

  result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != 1) return fault::of(errc::invalid_argument, "number of inputs", 1, in.size());
    return shape{dtype::i64, {static_cast<std::int64_t>(in[0].rank()), count}};
  }
  small_vector<argument> produce(std::span<const argument> in) const;
};

/// The slices along `along` at which a rank 1 condition (bool, no longer than the extent) holds, or elements of the
/// flattened tensor where `flat` (ONNX Compress).
struct compress {
  std::int64_t along = 0;
  bool flat = false;
  dimension count = 0;

  result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != 2) return fault::of(errc::invalid_argument, "number of inputs", 2, in.size());
    if (in[1].type != dtype::boolean || in[1].rank() != 1)
      return fault::of(errc::shape_mismatch, "type of the condition", shape{dtype::boolean, {0}}, in[1]);
    if (flat) return shape{in[0].type, {count}};
    const std::int64_t a = normal_axis(along, in[0].rank());
    if (a < 0) return fault::of(errc::shape_mismatch, "the axis lies within the rank", in[0].rank(), along);
    shape out{in[0].type, in[0].lens};
    out.lens[static_cast<std::size_t>(a)] = count;
    return out;
  }
  small_vector<argument> produce(std::span<const argument> in) const;
  /// Where a condition (bool[n], dense) holds. Errors: n exceeds the axis' extent.
  static std::vector<std::int64_t> places(const argument& condition, std::int64_t extent);
};

/// Distinct slices along `along`, or elements of the flattened tensor where `flat`, ascending or in order of first
/// appearance; then as i64 where each first appears, which one each input is, and how often each appears (ONNX Unique).
struct unique {
  std::int64_t along = 0;
  bool flat = true, ascending = true;
  dimension count = 0;

  result<shapes> compute_shape(std::span<const shape> in) const {
    if (in.size() != 1) return fault::of(errc::invalid_argument, "number of inputs", 1, in.size());
    shape values{in[0].type, {count}};
    dimension all = in[0].elements();
    if (!flat) {
      const std::int64_t a = normal_axis(along, in[0].rank());
      if (a < 0) return fault::of(errc::shape_mismatch, "the axis lies within the rank", in[0].rank(), along);
      values.lens = in[0].lens;
      all = values.lens[static_cast<std::size_t>(a)];
      values.lens[static_cast<std::size_t>(a)] = count;
    }
    return shapes{values, shape{dtype::i64, {count}}, shape{dtype::i64, {all}}, shape{dtype::i64, {count}}};
  }
  small_vector<argument> produce(std::span<const argument> in) const;
};

/// Boxes that overlap no better one, for each batch and class (ONNX NonMaxSuppression). Operands: boxes f32[batches, n,
/// 4] by corners or, `centered`, by center and size; scores f32[batches, classes, n]; the most boxes of a class (i64);
/// greatest overlap, intersection over union; and least score (both f32). The result holds batch, class and box.
struct non_max_suppression {
  bool centered = false, has_least_score = false;
  dimension count = 0;

  result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != 5) return fault::of(errc::invalid_argument, "number of inputs", 5, in.size());
    for (std::size_t i = 0; i < 2; ++i)
      if (in[i].type != dtype::f32 || in[i].rank() != 3)
        return fault::of(errc::shape_mismatch, "boxes and scores are f32 of rank 3", 3, in[i]);
    const auto fits = [](dimension a, dimension b) { return same(a, b).value_or(true); };
    if (!fits(in[0].lens[2], 4)) return fault::of(errc::shape_mismatch, "numbers of a box", 4, in[0].lens);
    if (!fits(in[0].lens[0], in[1].lens[0]) || !fits(in[0].lens[1], in[1].lens[2]))
      return fault::of(errc::shape_mismatch, "boxes and scores agree in batches and boxes", in[0].lens, in[1].lens);
    return shape{dtype::i64, {count, 3}};
  }
  small_vector<argument> produce(std::span<const argument> in) const;
};

}  // namespace kiln::op
