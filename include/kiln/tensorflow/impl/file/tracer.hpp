#pragma once
#include "kiln/tensorflow/impl/file/graph_def.hpp"

namespace kiln::tensorflow {

/// Where the values of a graph or function come from, through nodes that only hand them on.
class tracer {
 public:
  explicit tracer(const std::vector<onnx::node>& nodes, const std::vector<std::string>& arguments = {})
      : nodes_(nodes), index_(by_name(nodes)) {
    for (std::size_t i = 0; i < arguments.size(); ++i) arguments_.emplace(arguments[i], i);
  }

  /// Output k of a node, or an argument; neither where nothing gives the value.
  struct source {
    const onnx::node* node = nullptr;
    std::size_t k = 0;
    std::size_t argument = 0;  ///< where there is no node
    bool is_argument = false;
  };
  source trace(std::string_view value) const {
    for (int steps = 0; steps < 64; ++steps) {
      const output_ref r = parts_of(value);
      if (const auto a = arguments_.find(r.node); a != arguments_.end()) return {nullptr, 0, a->second, true};
      const auto found = index_.find(r.node);
      if (found == index_.end()) return {};
      const onnx::node& n = nodes_[found->second];
      if (n.op_type != "Identity" || n.inputs.empty() || is_order(n.inputs[0])) return {&n, r.k, 0, false};
      value = n.inputs[0];
    }
    return {};
  }

 private:
  const std::vector<onnx::node>& nodes_;
  std::unordered_map<std::string_view, std::size_t> index_;
  std::unordered_map<std::string_view, std::size_t> arguments_;
};

}  // namespace kiln::tensorflow
