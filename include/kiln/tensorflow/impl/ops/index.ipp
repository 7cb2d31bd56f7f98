#include "kiln/tensorflow/impl/ops/suppression.hpp"

// Elements by index.
namespace kiln::tensorflow {

namespace {

variables import_gather_1(node_context& c) { return {c.in(0).gather(c.in(1), 0)}; }

// With `batch_dims` the leading dims of data and indices go together. The axis comes first among the others then, and
// goes back after those that were before it.
variables import_gather(node_context& c) {
  const value x = c.in(0), indices = c.in(1);
  const std::int64_t axis = axis_within(c, c.has(2) ? c.number(2, "the axis") : c.integer("batch_dims", 0), x.rank());
  const auto given = static_cast<std::int64_t>(indices.rank());
  std::int64_t batch = c.integer("batch_dims", 0);
  if (batch < 0) batch += given;
  if (batch < 0 || batch > given || batch > axis)
    c.malformed("batch_dims is within the indices' dims and before the axis");
  if (batch == 0) return {x.gather(indices, axis)};
  ints order = axes_from(0, x.rank());
  order.erase(static_cast<std::size_t>(axis));
  order.insert(static_cast<std::size_t>(batch), axis);
  const value moved = axis == batch ? x : x.transpose(order);
  const value taken = as_onnx(c, "GatherND", {moved, indices.convert(dtype::i64).unsqueeze({given})},
                              {number_attribute("batch_dims", batch)})[0]
                          .tensor;
  if (axis == batch) return {taken};
  // [batch, indices, between, after] as [batch, between, indices, after]
  const std::int64_t own = given - batch, between = axis - batch;
  ints back = axes_from(0, static_cast<std::size_t>(batch));
  for (std::int64_t d = 0; d < between; ++d) back.push_back(batch + own + d);
  for (std::int64_t d = 0; d < own; ++d) back.push_back(batch + d);
  for (auto d = batch + own + between; d < static_cast<std::int64_t>(taken.rank()); ++d) back.push_back(d);
  return {taken.transpose(back)};
}

variables import_gather_nd(node_context& c) { return as_onnx(c, "GatherND", {c.in(0), c.in(1).convert(dtype::i64)}); }

variables scatter(node_context& c, value into, value indices, value updates, std::string_view how) {
  return as_onnx(c, "ScatterND", {into, indices.convert(dtype::i64), updates}, {text_attribute("reduction", how)});
}
variables import_scatter_nd(node_context& c) {
  const value zero = c.build.scalar(c.in(1).type(), 0);
  const value into = as_onnx(c, "Expand", {zero, c.in(2).convert(dtype::i64)})[0].tensor;
  return scatter(c, into, c.in(0), c.in(1), "add");
}
variables import_scatter_update(node_context& c) { return scatter(c, c.in(0), c.in(1), c.in(2), "none"); }
variables import_scatter_add(node_context& c) { return scatter(c, c.in(0), c.in(1), c.in(2), "add"); }

// indices, depth, on, off. What is no index of the depth is off everywhere.
variables import_one_hot(node_context& c) {
  const value indices = c.in(0).convert(dtype::i64);  // a depth may be beyond the indices' own type
  const std::size_t rank = indices.rank() + 1;
  const std::int64_t axis = axis_within(c, c.integer("axis", -1), rank);
  const value own = onnx::indices_along(c, rank, axis, c.extent(1, "the depth"));
  return {indices.unsqueeze({axis}).equal(own).where(c.in(2), c.in(3))};
}

variables import_top_k(node_context& c) {
  if (!c.has(1)) require(c, "k");
  const std::int64_t given = c.integer("k", 0);
  const value k = c.has(1) ? c.in(1).convert(dtype::i64).reshape({1}) : list_of(c, {&given, 1});
  variables out = as_onnx(c, "TopK", {c.in(0), k});
  if (out.size() > 1) out[1] = variable(out[1].tensor.convert(c.type_attribute("index_type", dtype::i32)));
  return out;
}

// [n, rank] indices of what is not 0.
variables import_where(node_context& c) { return {as_onnx(c, "NonZero", {c.in(0)})[0].tensor.transpose({1, 0})}; }

// boxes [n, 4], scores [n], at most so many, overlap, score.
value suppressed(node_context& c) {
  const value least = c.has(4) ? c.in(4) : value{};
  const value chosen = chosen_rows(c, c.in(0), c.in(1).unsqueeze({0}), c.in(2), c.in(3), least);
  return onnx::element_at(chosen, 1, 2).convert(dtype::i32);
}
variables import_suppression(node_context& c) { return {suppressed(c)}; }
// Lists that zeros may follow, up to as many as may be, and how many there are.
value as_long_as_stated(node_context& c, value x) {
  return c.flag("pad_to_max_output_size") ? padded_to(c, x, c.extent(2, "the most boxes")) : x;
}
variables import_suppression_4(node_context& c) {
  const value chosen = suppressed(c);
  return {as_long_as_stated(c, chosen), count_of_rows(c, chosen, dtype::i32)};
}
// The width of a Gauss function may lower the scores of what overlaps.
variables import_suppression_5(node_context& c) {
  if (c.has(5)) {
    const literal* const sigma = c.constant(5);
    if (!sigma || sigma->elements() != 1 || sigma->at<double>(0) != 0)
      c.unsupported("scores that overlaps lower (soft_nms_sigma)");
  }
  const value chosen = suppressed(c);
  return {as_long_as_stated(c, chosen), as_long_as_stated(c, c.in(1).gather(chosen, 0)),
          count_of_rows(c, chosen, dtype::i32)};
}

}  // namespace

value padded_to(node_context& c, value x, dimension length, std::int64_t axis) {
  dims lens = x.get_shape().lens;
  lens[static_cast<std::size_t>(axis)] = length;
  return x.concat(c.build.scalar(x.type(), 0).broadcast_to(lens), axis).slice({{axis}, {0}, {length}, {}});
}

value chosen_rows(node_context& c, value boxes, value scores, value most, value overlap, value least) {
  const auto one = [](value v, dtype type) { return variable(v.convert(type).reshape({1})); };
  variables in{variable(boxes.unsqueeze({0})), variable(scores.unsqueeze({0})), one(most, dtype::i64),
               one(overlap, dtype::f32)};
  if (least) in.push_back(one(least, dtype::f32));
  return as_onnx(c, "NonMaxSuppression", std::move(in))[0].tensor;
}

op_importer_table index_importers() {
  static constexpr op_importer table[] = {
      {domain, "Gather", 1, import_gather_1},
      {domain, "ResourceGather", 1, import_gather},
      {domain, "ResourceGatherNd", 1, import_gather_nd},
      {domain, "GatherNd", 1, import_gather_nd},
      {domain, "GatherV2", 1, import_gather},
      {domain, "NonMaxSuppressionV2", 1, import_suppression},
      {domain, "NonMaxSuppressionV3", 1, import_suppression},
      {domain, "NonMaxSuppressionV4", 1, import_suppression_4},
      {domain, "NonMaxSuppressionV5", 1, import_suppression_5, "soft_nms_sigma of 0"},
      {domain, "OneHot", 1, import_one_hot},
      {domain, "ScatterNd", 1, import_scatter_nd},
      {domain, "TensorScatterAdd", 1, import_scatter_add},
      {domain, "TensorScatterUpdate", 1, import_scatter_update},
      {domain, "TopK", 1, import_top_k},
      {domain, "TopKV2", 1, import_top_k},
      {domain, "TopKV3", 1, import_top_k},
      {domain, "Where", 1, import_where},
  };
  return table;
}

}  // namespace kiln::tensorflow
