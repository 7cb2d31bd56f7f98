#pragma once
#include "kiln/op/contraction.hpp"
#include "kiln/op/linear/window.hpp"

namespace kiln::op {

/// Cross-correlation (ONNX Conv without bias) of x[n, c, spatial...] and w[m, c / group, kernel...] over one to three
/// spatial dims: result[n, m, out...]. `pads` holds all begins, then all ends. Iteration: batch, group, filter within
/// the group, out spatial..., summed over kernel spatial..., channel within the group.
struct convolution {
  spatial stride{}, dilation{};
  ints pads{};
  std::int64_t group = 1;
  static constexpr auto types = dtypes::numbers;

  constexpr convolution normalized(std::span<const shape> in) const { return detail::with_window(*this, in); }
  void agree(extent_agreement& extents) const {
    if (extents.operands() != 2 || extents.rank(0) < 3 || extents.rank(1) != extents.rank(0)) return;
    if (group == 1)
      extents.agree(0, 1, 1, 1);
    else
      extents.want(0, 1, extents.extent(1, 1) * group);
  }
  constexpr result<contraction> maps(std::span<const shape> in) const {
    if (const auto f = detail::image_and_weight_fault(in, types)) return *f;
    const shape &x = in[0], &w = in[1];
    const auto window = detail::resolve_window(x.rank(), stride, dilation, pads);
    if (!window) return window.why();
    if (w.rank() != x.rank())
      return fault::of(errc::shape_mismatch, "the weight has the input's rank", x.rank(), w.rank());
    if (group < 1) return fault::of(errc::invalid_argument, "group is positive", "at least 1", group);
    if (!(x.lens[1] == w.lens[1] * group))
      return fault::of(errc::shape_mismatch, "input channels are the weight's channels times group", w.lens[1] * group,
                       x.lens[1]);
    const dimension filters = w.lens[0], channels = w.lens[1];
    if (group > 1 && !(filters.is_constant() && channels.is_constant()))
      return fault::of(errc::unsupported, "a grouped convolution has constant channels", "constants", w.lens);
    if (!(filters % group == dimension(0)))
      return fault::of(errc::shape_mismatch, "filters divide into groups", group, filters);

    const std::size_t axes = x.rank() - 2, out_at = 3, kernel_at = out_at + axes, channel_at = kernel_at + axes;
    contraction c;
    c.type = x.type;
    c.out_lens = {x.lens[0], filters};
    c.extents = {x.lens[0], group, filters / group};
    for (std::size_t d = 0; d < axes; ++d) {
      if (const auto f = detail::window_fault(x.lens[d + 2], w.lens[d + 2], *window, d)) return *f;
      c.out_lens.push_back(detail::window_count(x.lens[d + 2], w.lens[d + 2], *window, d));
      c.extents.push_back(c.out_lens.back());
    }
    for (std::size_t d = 0; d < axes; ++d) c.extents.push_back(w.lens[d + 2]);
    c.extents.push_back(channels);
    c.reduced = axes + 1;

    affine channel = c.index(channel_at), filter = c.index(2);
    if (group > 1) {
      channel.coefficient[1] = channels.value();
      filter.coefficient[1] = filters.value() / group;
    }
    c.lhs.push_back(c.index(0)), c.lhs.push_back(channel);
    c.rhs.push_back(filter), c.rhs.push_back(c.index(channel_at));
    c.out.push_back(c.index(0)), c.out.push_back(filter);
    for (std::size_t d = 0; d < axes; ++d) {
      affine at = c.index(out_at + d, window->stride[d], -window->begin[d]);
      at.coefficient[kernel_at + d] = window->dilation[d];
      c.lhs.push_back(at);
      c.rhs.push_back(c.index(kernel_at + d));
      c.out.push_back(c.index(out_at + d));
    }
    return c;
  }
};

}  // namespace kiln::op
