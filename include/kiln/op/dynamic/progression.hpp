#pragma once
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// start, start + delta, … before limit, where a run computes these (one number of a type each: ONNX Range). The result
/// has rank 1; `count` names its extent.
struct progression {
  dimension count = 0;

  result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != 3) return fault::of(errc::invalid_argument, "number of inputs", 3, in.size());
    for (const shape& s : in) {
      if (!dtypes::numbers.contains(s.type))
        return fault::of(errc::unsupported, "dtype of a progression", "a number", s.type);
      if (s.type != in[0].type) return fault::of(errc::shape_mismatch, "start, limit and delta", in[0].type, s.type);
      if (!same(s.elements(), 1).value_or(true))
        return fault::of(errc::shape_mismatch, "start, limit and delta are one number each", 1, s);
    }
    return shape{in[0].type, {count}};
  }
  small_vector<argument> produce(std::span<const argument> in) const;

  /// How many elements there are. Errors: `invalid_argument` for a delta of 0 and for a range without an end.
  static std::int64_t size(std::span<const argument> in);
  /// Elements [first, last), to where the result begins.
  static void write(std::span<const argument> in, std::int64_t first, std::int64_t last, std::byte* to);
};

}  // namespace kiln::op
