#pragma once
#include "kiln/onnx/impl/import/rank_variants.hpp"

namespace kiln::onnx {

/// A value of a program has one rank. Nodes of a graph that follow from a tensor whose rank only a run knows therefore
/// wait until all others are imported; then they are imported once for each rank, as bodies of branches. What follows
/// from one such tensor alone is a part of its own, so that the ranks of several multiply only where they meet.
class unknown_ranks {
 public:
  unknown_ranks(importer& i, import_state& s, body_builder& bodies, scope& names, const std::vector<node>& nodes,
                std::span<const std::string_view> wanted)
      : importer_(i), state_(s), bodies_(bodies), names_(names), nodes_(nodes), wanted_(wanted) {}

  /// Whether a node waits. Nodes are given in order.
  bool must_wait(std::size_t index);
  /// Imports the nodes that wait.
  void import_waiting();

 private:
  // Tensors of unknown rank as bits, one for each tensor or for all that one condition decides; the last is for all
  // others.
  using tensor_set = std::uint64_t;
  struct waiting_node {
    std::size_t index = 0;
    tensor_set follows = 0, reads = 0;  // with what it reads of waiting nodes, and without
  };
  // Nodes that follow from some tensors alone, as a graph.
  struct graph_part {
    graph nodes;
    std::vector<std::size_t> indices;
    std::vector<std::string_view> results;  // read elsewhere, by the names in the whole graph
    std::unordered_set<std::string_view> read_later;
    bool is_tensor_read_later = false;
  };

  tensor_set bit_of(std::string_view name, const entry& e);
  std::vector<std::size_t> needed_nodes() const;
  std::vector<std::size_t> indices_of(tensor_set tensors) const;
  graph_part part_of(tensor_set tensors) const;
  bool import_part(tensor_set tensors);
  bool keep_results(graph_part& part, rank_variants& variants, bool is_single, bool is_unsized) const;
  void narrow(std::string_view name, const variable& tensor, const type_indices& kept);

  importer& importer_;
  import_state& state_;
  body_builder& bodies_;
  scope& names_;
  const std::vector<node>& nodes_;
  std::span<const std::string_view> wanted_;
  std::vector<waiting_node> waiting_;
  std::unordered_map<std::string_view, tensor_set> outputs_;  // of waiting nodes
  std::vector<std::string_view> tensors_;                     // by bit: the name that is read first
  std::vector<std::pair<const module_frame*, std::uint64_t>> origins_;
};

}  // namespace kiln::onnx
