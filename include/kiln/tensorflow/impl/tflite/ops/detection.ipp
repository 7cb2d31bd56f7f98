#include <cmath>
#include <limits>

#include "kiln/tensorflow/impl/ops/suppression.hpp"
#include "kiln/tensorflow/impl/tflite/ops/common.hpp"

// Boxes that stand out among those that overlap, in lists of a given length whose rest is zeros.
namespace kiln::tensorflow {

namespace {

variables suppression(node_context& c, std::string_view op_type) {
  return as_tensorflow(c, op_type, c.inputs, {number_attribute("pad_to_max_output_size", 1)});
}
variables import_suppression_4(node_context& c) { return suppression(c, "NonMaxSuppressionV4"); }
variables import_suppression_5(node_context& c) { return suppression(c, "NonMaxSuppressionV5"); }

// [n, 4] corners y1, x1, y2, x2 of encodings relative to anchors, both centers and extents y, x, h, w.
value decoded(node_context& c, value encodings, value anchors) {
  const auto column = [](value v, std::int64_t k) { return v.slice({{1}, {k}, {k + 1}, {}}); };
  const auto scaled = [&](std::int64_t k, std::string_view by) {
    const float scale = c.real(by, 0);
    if (!(scale > 0)) c.malformed(std::string(by) + " is " + std::to_string(scale));
    return column(encodings, k) / scalar_like(c, encodings, scale);
  };
  small_vector<value> low, high;
  for (const std::int64_t k : {0, 1}) {
    const value extent = column(anchors, k + 2);
    const value center = scaled(k, k ? "x_scale" : "y_scale") * extent + column(anchors, k);
    const value half = scaled(k + 2, k ? "w_scale" : "h_scale").exp() * extent * .5f;
    low.push_back(center - half);
    high.push_back(center + half);
  }
  return c.build.add(op::concat{1}, small_vector<value>{low[0], low[1], high[0], high[1]});
}

struct detection {
  value boxes, scores;  ///< [n, 4], [n, classes]
  std::int64_t most, per_box, per_class, classes;
  value overlap, least;
};
detection detection_of(node_context& c) {
  detection d;
  if (c.in(0).rank() != 3 || c.in(1).rank() != 3 || c.in(2).rank() != 2 || !(c.in(0).dim(0) == dimension(1)))
    c.unsupported("boxes of a batch other than 1");
  d.boxes = decoded(c, c.in(0).squeeze({0}), c.in(2));
  const auto count = [&](std::string_view name, std::int64_t otherwise) {
    const std::int64_t n = c.integer(name, otherwise);
    if (n < 1 || n > (1 << 20)) c.malformed(std::string(name) + " is " + std::to_string(n));
    return n;
  };
  d.most = count("max_detections", 0);
  d.per_box = count("max_classes_per_detection", 0);
  d.per_class = count("detections_per_class", 100);
  d.classes = count("num_classes", 0);
  const dimension listed = c.in(1).dim(2);
  if (!listed.is_constant() || listed.value() < d.classes)
    c.malformed("there are scores for " + kiln::to_string(listed) + " classes of " + std::to_string(d.classes));
  const std::int64_t background = listed.value() - d.classes;  // classes that are none
  d.scores = c.in(1).squeeze({0}).slice({{1}, {background}, {listed}, {}});
  d.overlap = c.build.scalar(dtype::f32, c.real("nms_iou_threshold", 0));
  // a score that equals the threshold counts here, ONNX's suppression wants a greater one
  const float least = static_cast<float>(c.real("nms_score_threshold", 0));
  d.least = c.build.scalar(dtype::f32, std::nextafter(least, std::numeric_limits<float>::lowest()));
  return d;
}
variables batched(node_context& c, value boxes, value classes, value scores, value count) {
  return {boxes.unsqueeze({0}), classes.convert(dtype::f32).unsqueeze({0}), scores.unsqueeze({0}),
          count.convert(c.in(0).type()).reshape({1})};
}

// Boxes by their best class, each with its best classes.
variables detect_by_box(node_context& c, const detection& d) {
  const value best = d.scores.reduce_max({1}).squeeze({1});
  const value rows =
      chosen_rows(c, d.boxes, best.unsqueeze({0}), c.build.scalar(dtype::i64, d.most), d.overlap, d.least);
  const value chosen = onnx::element_at(rows, 1, 2);
  const std::int64_t own = std::min(d.per_box, d.classes);
  const value k = c.build.constant(dtype::i64, {1}, std::span<const std::int64_t>(&own, 1));
  const variables top = as_onnx(c, "TopK", {d.scores.gather(chosen, 0), k});
  const dimension n = chosen.dim(0), length = d.most * d.per_box;
  // [n, best classes, ...] as a list in which each box has its places
  const auto listed = [&](value v) {
    if (own < d.per_box) v = padded_to(c, v, d.per_box, 1);
    dims lens = lens_of(v);
    lens.erase(0);
    lens[0] = n * d.per_box;
    return padded_to(c, v.reshape(lens), length);
  };
  const value boxes = d.boxes.gather(chosen, 0).unsqueeze({1}).broadcast_to({n, own, 4});
  return batched(c, listed(boxes), listed(top[1].tensor), listed(top[0].tensor), dimensions_value(c.build, {}, {n}));
}

// Boxes of each class, the best of all of them.
variables detect_by_class(node_context& c, const detection& d) {
  const value rows =
      chosen_rows(c, d.boxes, d.scores.transpose({1, 0}), c.build.scalar(dtype::i64, d.per_class), d.overlap, d.least);
  const value kinds = onnx::element_at(rows, 1, 1), chosen = onnx::element_at(rows, 1, 2);
  const value at = rows.slice({{1}, {1}, {3}, {}}) | op::reverse{{1}};  // box, class
  const value scores = as_onnx(c, "GatherND", {d.scores, at})[0].tensor;
  // as many candidates as are wanted, those beyond the chosen ones below every score
  const value none = c.build.scalar(dtype::f32, -1).broadcast_to({d.most});
  const value k = c.build.constant(dtype::i64, {1}, std::span<const std::int64_t>(&d.most, 1));
  const variables top = as_onnx(c, "TopK", {scores.concat(none, 0), k});
  const value is_found = onnx::not_less(top[0].tensor, c.build.scalar(dtype::f32, 0)), order = top[1].tensor;
  const auto listed = [&](value v) {
    dims rest = lens_of(v);
    rest[0] = d.most;
    return padded_to(c, v.concat(scalar_like(c, v, 0).broadcast_to(rest), 0).gather(order, 0), d.most * d.per_box);
  };
  const value found = is_found.convert(dtype::i64).reduce_sum({0}).reshape({});
  const value best = is_found.where(top[0].tensor, c.build.scalar(dtype::f32, 0));
  return batched(c, listed(d.boxes.gather(chosen, 0)), listed(kinds), padded_to(c, best, d.most * d.per_box), found);
}

// Encodings [1, n, 4], scores [1, n, classes with those before them that are none], anchors [n, 4].
variables import_detection(node_context& c) {
  const detection d = detection_of(c);
  return c.flag("use_regular_nms") ? detect_by_class(c, d) : detect_by_box(c, d);
}

}  // namespace

tflite_table tflite_detection_operators() {
  static constexpr tflite_operator table[] = {
      {"NON_MAX_SUPPRESSION_V4", import_suppression_4},
      {"NON_MAX_SUPPRESSION_V5", import_suppression_5, {}, "soft_nms_sigma of 0"},
      {"TFLite_Detection_PostProcess", import_detection, {}, "a batch of 1"},
  };
  return table;
}

}  // namespace kiln::tensorflow
