#include "kiln/tensorflow/impl/tflite/ops/common.hpp"

// Elements by index, and indices of elements.
namespace kiln::tensorflow {

namespace {

variables import_gather(node_context& c) {
  return as_tensorflow(c, "GatherV2", {c.in(0), c.in(1), variable(c.build.scalar(dtype::i64, c.integer("axis", 0)))},
                       {number_attribute("batch_dims", c.integer("batch_dims", 0))});
}
// Rows of a table: ids, table.
variables import_embedding_lookup(node_context& c) { return {c.in(1).gather(c.in(0), 0)}; }
variables import_arg_max(node_context& c) { return as_tensorflow(c, "ArgMax", c.inputs); }
variables import_arg_min(node_context& c) { return as_tensorflow(c, "ArgMin", c.inputs); }
variables import_one_hot(node_context& c) {
  return as_tensorflow(c, "OneHot", c.inputs, {number_attribute("axis", c.integer("axis", 0))});
}
variables import_top_k(node_context& c) { return as_tensorflow(c, "TopKV2", c.inputs); }
variables import_reverse_sequence(node_context& c) {
  return as_onnx(c, "ReverseSequence", {c.in(0), c.in(1).convert(dtype::i64)},
                 {number_attribute("batch_axis", c.integer("batch_dim", 0)),
                  number_attribute("time_axis", c.integer("seq_dim", 0))});
}
// Values in the order in which they come, and each element's index among them.
variables import_unique(node_context& c) {
  onnx::node n = c.source;
  n.outputs = {c.source.outputs[0], "", c.wants(1) ? c.source.outputs[1] : ""};
  node_context inner{c.build, n, c.version, c.inputs, c.bodies};
  const variables made = as_onnx(inner, "Unique", {c.in(0)}, {number_attribute("sorted", 0)});
  return c.wants(1) && made.size() > 2 ? variables{made[0], made[2]} : variables{made[0]};
}

}  // namespace

tflite_table tflite_index_operators() {
  static constexpr tflite_operator table[] = {
      {"ARG_MAX", import_arg_max},
      {"ARG_MIN", import_arg_min},
      {"EMBEDDING_LOOKUP", import_embedding_lookup},
      {"GATHER", import_gather},
      {"GATHER_ND", nullptr, "GatherNd"},
      {"ONE_HOT", import_one_hot},
      {"REVERSE_SEQUENCE", import_reverse_sequence},
      {"TOPK_V2", import_top_k},
      {"UNIQUE", import_unique},
      {"WHERE", nullptr, "Where"},
  };
  return table;
}

}  // namespace kiln::tensorflow
