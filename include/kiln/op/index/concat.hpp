#pragma once
#include "kiln/op/index/common.hpp"

namespace kiln::op {

/// The operands one after the other along `axis` (ONNX Concat); their other extents are equal.
struct concat {
  std::int64_t axis = 0;
  static constexpr auto types = dtypes::movable | dtypes::dims;

  void agree(extent_agreement& extents) const {
    const std::int64_t a = extents.operands() == 0 ? -1 : normal_axis(axis, extents.rank(0));
    for (std::size_t i = 1; i < extents.operands(); ++i)
      if (extents.rank(i) != extents.rank(0)) return;
    for (std::size_t i = 1; i < extents.operands(); ++i)
      for (std::size_t d = 0; d < extents.rank(0); ++d)
        if (static_cast<std::int64_t>(d) != a) extents.agree(i, d, 0, d);
  }
  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (in.empty()) return fault::of(errc::invalid_argument, "number of inputs", "at least 1", in.size());
    const std::int64_t a = normal_axis(axis, in[0].rank());
    if (a < 0) return detail::wrong_axis(in[0].rank(), axis);
    const auto at = static_cast<std::size_t>(a);
    shape out{in[0].type, in[0].lens};
    for (const shape& s : in.subspan(1)) {
      if (s.type != out.type) return fault::of(errc::shape_mismatch, "operands have one dtype", out.type, s.type);
      if (s.rank() != out.rank())
        return fault::of(errc::shape_mismatch, "operands have one rank", out.rank(), s.rank());
      for (std::size_t d = 0; d < s.rank(); ++d)
        if (d != at && !(s.lens[d] == out.lens[d]))
          return fault::of(errc::shape_mismatch, "extents beside the axis agree", in[0].lens, s.lens);
      out.lens[at] += s.lens[at];
    }
    return out;
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto out = e.template out<T>();
    const auto whole = detail::split_at(out.lens, axis);
    std::int64_t begin = 0;
    for (std::size_t k = 0; k < e.inputs(); ++k) {
      const auto part = e.template in<T>(k);
      const std::int64_t run = detail::split_at(part.lens, axis).extent * whole.inner;
      for (std::int64_t o = 0; o < whole.outer; ++o)
        for (std::int64_t i = 0; i < run; ++i) out[o * whole.extent * whole.inner + begin + i] = part[o * run + i];
      begin += run;
    }
  }
};

}  // namespace kiln::op
