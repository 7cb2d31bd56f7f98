#pragma once
#include "kiln/onnx/impl/ops/common.hpp"

namespace kiln::onnx {

/// How channels are normalized in groups: the statistics in the type `stash`, scale and offset in `type`.
struct group_norm {
  std::int64_t groups = 1;
  float epsilon = 1e-5f;
  dtype stash = dtype::f32, type = dtype::f32;
};

/// Refuses groups that are not of whole channels of an input with extents `lens`.
inline void check_groups(const node_context& c, const group_norm& how, const dims& lens) {
  if (how.groups < 1 || lens.size() < 2) c.malformed("the number of groups is positive and the input has channels");
  if (lens[1].is_constant() && lens[1].value() % how.groups != 0)
    c.malformed("the groups divide the channels, found " + std::to_string(how.groups) + " groups of " +
                kiln::to_string(lens[1]) + " channels");
}

/// x[batch, channels, ...] normalized over each group of channels, then times `scale` plus `offset`, vectors over the
/// channels. All of it has the groups, their channels and all other dims as one, so that it is one kernel that reads x
/// once, of any rank.
inline value group_normalized(value x, const group_norm& how, value scale, value offset) {
  const dims lens = x.get_shape().lens;
  const dimension each = lens[1] / how.groups;
  dimension rest = 1;
  for (std::size_t d = 2; d < lens.size(); ++d) rest *= lens[d];
  const auto along = [&](value v) { return v.convert(how.type).reshape({how.groups, each, 1}); };
  const value y = x.reshape({lens[0], how.groups, each, rest}).convert(how.stash).normalize({2, 3}, how.epsilon);
  return (y.convert(how.type) * along(scale) + along(offset)).reshape(lens);
}

}  // namespace kiln::onnx
