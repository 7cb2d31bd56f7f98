#pragma once
#include "kiln/op/view_map.hpp"

namespace kiln::op {

/// The elements along `axes` in reverse order.
struct reverse {
  ints axes{};

  constexpr result<layout> map(const layout& in) const {
    const auto turned = detail::named_axes(axes, in.lens.size());
    if (!turned) return turned.why();
    layout out = in;
    for (std::size_t i = 0; i < in.lens.size(); ++i) {
      if (!(*turned)[i] || in.lens[i] == dimension(0)) continue;
      out.offset += (in.lens[i] - 1) * in.strides[i];
      out.strides[i] = -in.strides[i];
    }
    return out;
  }
};

}  // namespace kiln::op
