#include "kiln/op/dynamic/slice_at.hpp"

#include <algorithm>

#include "kiln/op/impl/produced.hpp"

namespace kiln::op {

argument slice_at::view(std::span<const argument> in) {
  const auto starts = in[1].to<std::int64_t>(), ends = in[2].to<std::int64_t>(), axes = in[3].to<std::int64_t>(),
             steps = in[4].to<std::int64_t>();
  for (const std::size_t n : {ends.size(), axes.size(), steps.size()})
    if (n != starts.size())
      raise(fault::of(errc::shape_mismatch, "ends, axes and steps of a slice, as many as starts", starts.size(), n));
  const shape& of = in[0].get_shape();
  shape s{of.type, of.lens};
  dims strides = of.element_strides();
  std::int64_t offset = 0;
  bool named[max_rank] = {};
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t a = normal_axis(axes[i], s.rank());
    if (a < 0) raise(fault::of(errc::invalid_argument, "an axis of a slice lies within the rank", s.rank(), axes[i]));
    const auto d = static_cast<std::size_t>(a);
    if (named[d]) raise(fault::of(errc::invalid_argument, "axes of a slice", "each axis once", axes[i]));
    if (steps[i] == 0) raise(fault::of(errc::invalid_argument, "the size of a step", "at least 1", steps[i]));
    named[d] = true;
    const std::int64_t n = s.lens[d].value(), stride = strides[d].value();
    // longer steps than an extent take one element anyway
    const std::int64_t most = std::max<std::int64_t>(n, 1), step = std::clamp(steps[i], -most, most);
    const auto counted = [&](std::int64_t k) { return k < 0 ? k + n : k; };
    const bool back = step < 0;  // then the last index is 0, and the end is before it
    const std::int64_t first = std::max<std::int64_t>(0, std::min(counted(starts[i]), back ? n - 1 : n)),
                       end = std::clamp<std::int64_t>(counted(ends[i]), back ? -1 : 0, n);
    const std::int64_t gap = n == 0 ? 0 : back ? first - end : end - first, length = step < 0 ? -step : step;
    s.lens[d] = gap <= 0 ? 0 : (gap + length - 1) / length;
    if (gap > 0) offset += first * stride;
    strides[d] = stride * step;
  }
  s.strides = strides;
  auto* const data = const_cast<std::byte*>(in[0].data());  // a view is only read
  return {s, data + offset * static_cast<std::int64_t>(size_of(s.type))};
}

small_vector<argument> slice_at::produce(std::span<const argument> in) const { return detail::one(view(in).copy()); }

}  // namespace kiln::op
