#include "kiln/tensorflow/impl/ops/common.hpp"

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
variables import_suppression(node_context& c) {
  const auto one_number = [&](std::size_t i, dtype t) { return variable(c.in(i).convert(t).reshape({1})); };
  variables in{variable(c.in(0).unsqueeze({0})), variable(c.in(1).unsqueeze({0, 1})), one_number(2, dtype::i64),
               one_number(3, dtype::f32)};
  if (c.has(4)) in.push_back(one_number(4, dtype::f32));
  const value chosen = as_onnx(c, "NonMaxSuppression", std::move(in))[0].tensor;
  return {onnx::element_at(chosen, 1, 2).convert(dtype::i32)};
}

}  // namespace

op_importer_table index_importers() {
  static constexpr op_importer table[] = {
      {domain, "Gather", 1, import_gather_1},
      {domain, "ResourceGather", 1, import_gather},
      {domain, "ResourceGatherNd", 1, import_gather_nd},
      {domain, "GatherNd", 1, import_gather_nd},
      {domain, "GatherV2", 1, import_gather},
      {domain, "NonMaxSuppressionV2", 1, import_suppression},
      {domain, "NonMaxSuppressionV3", 1, import_suppression},
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
