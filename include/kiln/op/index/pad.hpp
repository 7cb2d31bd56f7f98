#pragma once
#include "kiln/op/index/common.hpp"

namespace kiln::op {

/// Where the elements around a padded tensor come from.
enum class pad_mode : std::uint8_t { constant, reflect, edge, wrap };

constexpr std::string_view to_string(pad_mode m) { return enumerator_name(m, {"constant", "reflect", "edge", "wrap"}); }

/// Adds elements around a tensor (ONNX Pad). `pads` holds a begin for each dim, then an end for each dim; a negative
/// one crops, before anything is added. The optional second operand is the constant: one element, zero if absent.
struct pad {
  pad_mode mode = pad_mode::constant;
  inline_vector<dimension, 2 * max_rank> pads{};
  static constexpr auto types = dtypes::movable | dtypes::dims;

  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != 1 && in.size() != 2)
      return fault::of(errc::invalid_argument, "number of inputs", "1 or 2", in.size());
    const shape& data = in[0];
    const std::size_t rank = data.rank();
    if (pads.size() != 2 * rank)
      return fault::of(errc::shape_mismatch, "pads has a begin and an end for each dim", 2 * rank, pads.size());
    if (in.size() == 2) {
      if (in[1].type != data.type)
        return fault::of(errc::shape_mismatch, "the constant has the data's dtype", data.type, in[1].type);
      if (!(in[1].elements() == dimension(1)))
        return fault::of(errc::shape_mismatch, "the constant is one element", 1, in[1].lens);
    }
    shape out{data.type, data.lens};
    for (std::size_t d = 0; d < rank; ++d) {
      const dimension begin = pads[d], end = pads[rank + d];
      const dimension kept = data.lens[d] + smaller(begin, 0) + smaller(end, 0);
      if (const auto some = at_most(0, kept); some && !*some)
        return fault::of(errc::shape_mismatch, "pads crop no more than there is", data.lens[d], data.lens[d] - kept);
      out.lens[d] = data.lens[d] + begin + end;
      if (mode != pad_mode::constant && kept == dimension(0) && at_most(out.lens[d], 0) == std::optional(false))
        return fault::of(errc::shape_mismatch, "a padded extent has an element to repeat", "at least 1", kept);
    }
    return out;
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto data = e.template in<T>(0);
    const auto out = e.template out<T>();
    T value = T(0);
    if (e.has(1)) value = e.template in<T>(1)[0];
    const std::size_t rank = data.rank();
    ints cropped = first_index(data.lens), before = cropped, kept = cropped;
    for (std::size_t d = 0; d < rank; ++d) {
      const std::int64_t begin = e.number(pads[d]), end = e.number(pads[rank + d]);
      cropped[d] = begin < 0 ? -begin : 0;
      before[d] = begin > 0 ? begin : 0;
      kept[d] = data.lens[d] - cropped[d] + (end < 0 ? end : 0);
      if (mode != pad_mode::constant && kept[d] == 0 && out.size() != 0)
        e.fail(fault::of(errc::shape_mismatch, "a padded extent has an element to repeat", "at least 1", kept[d]));
    }
    ints at = first_index(out.lens);
    for (std::int64_t k = 0, n = out.size(); k < n; ++k) {
      std::int64_t from = 0;
      bool inside = true;
      for (std::size_t d = 0; d < rank; ++d) {
        const std::int64_t i = source(at[d] - before[d], kept[d]);
        inside = inside && i >= 0;
        from = from * data.lens[d] + i + cropped[d];
      }
      out[k] = inside ? data[from] : value;
      next_index(at, out.lens);
    }
  }

  /// The position inside [0, n) that position i repeats, or -1 for the constant.
  constexpr std::int64_t source(std::int64_t i, std::int64_t n) const {
    if (i >= 0 && i < n) return i;
    if (mode == pad_mode::constant) return -1;
    if (mode == pad_mode::edge || n == 1) return i < 0 ? 0 : n - 1;
    const std::int64_t period = mode == pad_mode::wrap ? n : 2 * (n - 1), r = (i % period + period) % period;
    return r < n ? r : period - r;
  }
};

}  // namespace kiln::op
