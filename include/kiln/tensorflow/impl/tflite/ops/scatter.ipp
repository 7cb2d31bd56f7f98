#include <algorithm>
#include <limits>

#include "kiln/tensorflow/impl/tflite/ops/common.hpp"

// Elements put where indices say, and sums over segments.
namespace kiln::tensorflow {

namespace {

value scattered(node_context& c, value into, value indices, value updates, std::string_view how) {
  return as_onnx(c, "ScatterND", {into, indices.convert(dtype::i64), updates}, {text_attribute("reduction", how)})[0]
      .tensor;
}

// data [ids..., rest...] combined over equal ids into [segments, rest...], which begins as `first`.
value segments(node_context& c, value ids, dimension count, std::string_view how, double first) {
  const value data = c.in(0);
  if (data.rank() < ids.rank()) c.malformed("there is an id for each of the data's leading elements");
  dims lens{count};
  for (std::size_t d = ids.rank(); d < data.rank(); ++d) lens.push_back(lens_of(data)[d]);
  const value into = scalar_like(c, data, first).broadcast_to(lens);
  return scattered(c, into, ids.unsqueeze({static_cast<std::int64_t>(ids.rank())}), data, how);
}
// Elements whose id is below 0 are left out: they go to one more segment, which is cut off.
variables unsorted_segments(node_context& c, std::string_view how, double first) {
  const dimension count = c.extent(2, "the number of segments");
  const value ids = c.in(1).convert(dtype::i64), last = dimensions_value(c.build, {}, {count}).reshape({});
  const value is_none = c.build.add(op::less{}, ids, c.build.scalar(dtype::i64, 0));
  const value all = segments(c, is_none.where(last, ids), count + 1, how, first);
  return {all.slice({{0}, {0}, {count}, {}})};
}
// The greatest id says how many segments there are.
variables import_segment_sum(node_context& c) {
  std::int64_t count = 0;
  for (const std::int64_t id : c.numbers(1, "the list of segments")) {
    if (id < 0 || id > (1 << 30)) c.malformed("a segment is number " + std::to_string(id));
    count = std::max(count, id + 1);
  }
  return {segments(c, c.in(1), count, "add", 0)};
}
double lowest(const node_context& c) {
  return c.in(0).type() == dtype::i32 ? std::numeric_limits<std::int32_t>::min()
         : c.in(0).type() == dtype::f32
             ? std::numeric_limits<float>::lowest()
             : (c.unsupported("elements of " + std::string(kiln::to_string(c.in(0).type()))), 0);
}
variables import_sum(node_context& c) { return unsorted_segments(c, "add", 0); }
variables import_prod(node_context& c) { return unsorted_segments(c, "mul", 1); }
variables import_max(node_context& c) { return unsorted_segments(c, "max", lowest(c)); }
variables import_min(node_context& c) {
  const double low = lowest(c);
  return unsorted_segments(c, "min", c.in(0).type() == dtype::i32 ? -(low + 1) : -low);
}

}  // namespace

tflite_table tflite_scatter_operators() {
  static constexpr tflite_operator table[] = {
      {"SCATTER_ND", nullptr, "ScatterNd"},
      {"SEGMENT_SUM", import_segment_sum, {}, "the segments are constants"},
      {"SPARSE_TO_DENSE", nullptr, "SparseToDense"},
      {"UNSORTED_SEGMENT_MAX", import_max},
      {"UNSORTED_SEGMENT_MIN", import_min},
      {"UNSORTED_SEGMENT_PROD", import_prod},
      {"UNSORTED_SEGMENT_SUM", import_sum},
  };
  return table;
}

}  // namespace kiln::tensorflow
