#pragma once
#include "kiln/onnx/impl/ops/common.hpp"

namespace kiln::onnx {

/// x[batch, channels, ...] normalized over each group of channels in the type `stash`, then in that of `scale` times it
/// plus `offset`, vectors over the channels. All of it has the groups and their channels as dims, so that it is one
/// kernel that reads x once.
inline value group_normalized(value x, dtype stash, std::int64_t groups, float epsilon, value scale, value offset) {
  const dims lens = x.get_shape().lens;
  const dimension each = lens[1] / groups;
  dims parts{lens[0], groups, each}, vector{groups, each};
  ints within{2};
  for (std::size_t d = 2; d < lens.size(); ++d) {
    within.push_back(static_cast<std::int64_t>(d) + 1);
    parts.push_back(lens[d]), vector.push_back(1);
  }
  const value y = x.reshape(parts).convert(stash).normalize(within, epsilon).convert(scale.type());
  return (y * scale.reshape(vector) + offset.reshape(vector)).reshape(lens);
}

}  // namespace kiln::onnx
