#pragma once
#include "kiln/core/math/mel.hpp"
#include "kiln/op/index/common.hpp"

namespace kiln::op {

/// The weights f32[length / 2 + 1, mels] of triangular filters over the bins of a real signal's spectrum, spaced evenly
/// on the mel scale (ONNX MelWeightMatrix). Operands, one number each: samples a second, the lowest and the highest
/// frequency in Hz. Errors: filters that reach outside the spectrum.
struct mel_weights {
  dimension mels = 1;    ///< filters
  dimension length = 2;  ///< samples that are transformed
  static constexpr auto types = dtypes::numbers;

  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != 3) return detail::wrong_operand_count(3, in.size());
    for (const shape& s : in) {
      if (!types.contains(s.type)) return detail::wrong_operand_type(s.type);
      if (!same(s.elements(), 1).value_or(true)) return not_one(s);
    }
    return shape{dtype::f32, {length / 2 + 1, mels}};
  }

  template <class> constexpr void compute(Evaluation auto& e) const {
    const auto out = e.template out<float>();
    // a symbolic extent is known to the run alone
    for (std::size_t i = 0; i < 3; ++i)
      if (!same(e.in_shape(i).elements(), 1).value_or(false)) e.fail(not_one(e.in_shape(i)));
    const mel_filters filters(e.template in<double>(0)[0], e.template in<double>(1)[0], e.template in<double>(2)[0],
                              e.number(length), e.number(mels));
    if (!filters.fit()) e.fail(outside(e.number(length)));
    filters.write(0, filters.bins(), out.data);
  }

  static constexpr fault not_one(const shape& found) {
    return fault::of(errc::shape_mismatch, "the rate and both frequencies are one number each", 1, found);
  }
  static constexpr fault outside(std::int64_t length) {
    return fault::of(errc::invalid_argument, "mel filters lie within the spectrum, the lowest frequency first",
                     "at most half the rate", length);
  }
};

}  // namespace kiln::op
