#include "kiln/tensorflow/impl/ops/common.hpp"

// Images and blocks of space.
namespace kiln::tensorflow {

namespace {

using onnx::channels_first, onnx::channels_last;

struct resize_mode {
  std::string_view mode, coordinates, rounding;
};
variables resize(node_context& c, value x, const resize_mode& m) {
  if (x.rank() != 4)
    c.malformed("images are [batch, height, width, channels], found " + kiln::to_string(x.get_shape()));
  onnx::attribute axes = number_attribute("axes", 0);
  axes.kind = onnx::attribute_kind::integers;
  axes.integers = {2, 3};
  const variables made =
      as_onnx(c, "Resize", {channels_first(x), variable(), variable(), c.in(1).convert(dtype::i64)},
              {text_attribute("mode", m.mode), text_attribute("coordinate_transformation_mode", m.coordinates),
               text_attribute("nearest_mode", m.rounding), std::move(axes)});
  return {channels_last(made[0].tensor)};
}
// The images' elements as f32, whatever they are.
variables import_bilinear(node_context& c) {
  const std::string_view coordinates = c.flag("align_corners")        ? "align_corners"
                                       : c.flag("half_pixel_centers") ? "half_pixel"
                                                                      : "asymmetric";
  return resize(c, c.in(0).convert(dtype::f32), {"linear", coordinates, "floor"});
}
variables import_nearest(node_context& c) {
  if (c.flag("align_corners")) return resize(c, c.in(0), {"nearest", "align_corners", "round_prefer_ceil"});
  return resize(c, c.in(0), {"nearest", c.flag("half_pixel_centers") ? "tf_half_pixel_for_nn" : "asymmetric", "floor"});
}

variables import_lrn(node_context& c) {
  const std::int64_t size = 2 * c.integer("depth_radius", 5) + 1;
  const op::lrn norm{size, c.real("alpha", 1) * static_cast<float>(size), c.real("beta", .5f), c.real("bias", 1)};
  if (c.in(0).rank() != 4) c.malformed("images are [batch, height, width, channels]");
  return {channels_last(channels_first(c.in(0)) | norm)};
}

std::int64_t block_size(const node_context& c) {
  const std::int64_t b = c.integer("block_size", 0);
  if (b < 1) c.malformed("block_size is positive, found " + std::to_string(b));
  return b;
}
// Blocks of pixels as channels, block row and column before the channel.
variables import_space_to_depth(node_context& c) {
  const bool last = has_last_channels(c);
  const value x = last ? c.in(0) : channels_last(c.in(0));
  const std::int64_t b = block_size(c);
  const dims n = x.get_shape().lens;
  if (n.size() != 4) c.malformed("images are of rank 4");
  const value y = x.reshape({n[0], n[1] / b, b, n[2] / b, b, n[3]}).transpose({0, 1, 3, 2, 4, 5});
  const value out = y.reshape({n[0], n[1] / b, n[2] / b, n[3] * (b * b)});
  return {last ? out : channels_first(out)};
}
variables import_depth_to_space(node_context& c) {
  const bool last = has_last_channels(c);
  const value x = last ? c.in(0) : channels_last(c.in(0));
  const std::int64_t b = block_size(c);
  const dims n = x.get_shape().lens;
  if (n.size() != 4) c.malformed("images are of rank 4");
  const dimension channels = n[3] / (b * b);
  const value y = x.reshape({n[0], n[1], n[2], b, b, channels}).transpose({0, 1, 3, 2, 4, 5});
  const value out = y.reshape({n[0], n[1] * b, n[2] * b, channels});
  return {last ? out : channels_first(out)};
}

struct blocks {
  ints extents;
  dims before, after;  ///< pads or crops
};
blocks blocks_of(const node_context& c) {
  blocks out{integers_of(c, 1, "the blocks' extents"), {}, {}};
  const ints pads = integers_of(c, 2, "the pads");
  const std::size_t axes = out.extents.size();
  if (pads.size() != 2 * axes || c.in(0).rank() < axes + 1)
    c.malformed("there are a block extent and two pads for each spatial dim");
  for (std::size_t d = 0; d < axes; ++d) {
    if (out.extents[d] < 1 || pads[2 * d] < 0 || pads[2 * d + 1] < 0)
      c.malformed("a block extent is positive, a pad is not negative");
    out.before.push_back(pads[2 * d]);
    out.after.push_back(pads[2 * d + 1]);
  }
  if (c.in(0).rank() + axes > max_rank) c.unsupported("blocks of " + std::to_string(axes) + " dims");
  return out;
}
variables import_space_to_batch(node_context& c) {
  const blocks b = blocks_of(c);
  const std::size_t axes = b.extents.size(), rank = c.in(0).rank();
  op::pad p;
  p.pads.resize(2 * rank, dimension(0));
  for (std::size_t d = 0; d < axes; ++d) {
    p.pads[1 + d] = b.before[d];
    p.pads[rank + 1 + d] = b.after[d];
  }
  const value x = c.in(0) | p;
  const dims n = x.get_shape().lens;
  dims split{n[0]}, whole{n[0]};
  ints order;
  for (std::size_t d = 0; d < axes; ++d) {
    split.push_back(n[1 + d] / b.extents[d]);
    split.push_back(b.extents[d]);
    order.push_back(static_cast<std::int64_t>(2 + 2 * d));
    whole[0] *= b.extents[d];
    whole.push_back(n[1 + d] / b.extents[d]);
  }
  order.push_back(0);
  for (std::size_t d = 0; d < axes; ++d) order.push_back(static_cast<std::int64_t>(1 + 2 * d));
  for (std::size_t d = 1 + axes; d < rank; ++d) {
    order.push_back(static_cast<std::int64_t>(d + axes));
    split.push_back(n[d]);
    whole.push_back(n[d]);
  }
  return {x.reshape(split).transpose(order).reshape(whole)};
}
variables import_batch_to_space(node_context& c) {
  const blocks b = blocks_of(c);
  const std::size_t axes = b.extents.size(), rank = c.in(0).rank();
  const dims n = c.in(0).get_shape().lens;
  dimension batch = n[0];
  dims split;
  for (const std::int64_t e : b.extents) {
    batch = batch / e;
    split.push_back(e);
  }
  split.push_back(batch);
  dims whole{batch};
  ints order{static_cast<std::int64_t>(axes)};
  op::slice cut;
  for (std::size_t d = 0; d < axes; ++d) {
    split.push_back(n[1 + d]);
    order.push_back(static_cast<std::int64_t>(axes + 1 + d));
    order.push_back(static_cast<std::int64_t>(d));
    whole.push_back(n[1 + d] * b.extents[d]);
    cut.axes.push_back(static_cast<std::int64_t>(1 + d));
    cut.starts.push_back(b.before[d]);
    cut.ends.push_back(whole.back() - b.after[d]);
  }
  for (std::size_t d = 1 + axes; d < rank; ++d) {
    order.push_back(static_cast<std::int64_t>(d + axes));
    split.push_back(n[d]);
    whole.push_back(n[d]);
  }
  return {c.in(0).reshape(split).transpose(order).reshape(whole).slice(cut)};
}

}  // namespace

op_importer_table image_importers() {
  static constexpr op_importer table[] = {
      {domain, "BatchToSpaceND", 1, import_batch_to_space},
      {domain, "DepthToSpace", 1, import_depth_to_space},
      {domain, "LRN", 1, import_lrn},
      {domain, "ResizeBilinear", 1, import_bilinear},
      {domain, "ResizeNearestNeighbor", 1, import_nearest},
      {domain, "SpaceToBatchND", 1, import_space_to_batch},
      {domain, "SpaceToDepth", 1, import_space_to_depth},
  };
  return table;
}

}  // namespace kiln::tensorflow
