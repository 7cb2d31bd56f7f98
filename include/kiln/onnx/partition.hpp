#pragma once
#include <functional>

#include "kiln/onnx/import.hpp"

// Models of which kiln runs parts, beside another runtime that runs the rest.
namespace kiln::onnx {

/// How a model is partitioned.
struct partition_options {
  import_options importing{};
  /// Parts of fewer nodes are left.
  std::size_t least_nodes = 1;
  /// Why a node is not to be in a part, or nothing; without the function all nodes may be.
  std::function<std::string(const node&)> refuse{};
};

/// The parts of a main graph that kiln imports, and the nodes that are left. Nodes are indices.
struct model_partition {
  std::vector<std::vector<std::size_t>> parts;
  std::vector<node_fault> left;  ///< in order
};

/// Splits the main graph of a model into as few parts as can be, each of which is closed: no way between two of its
/// nodes leads through a node that is not in it. `values` declares what nodes compute; a value that crosses into or out
/// of a part is a tensor of numbers with a declared rank. Each part is imported once to find the nodes that cannot be.
model_partition partition_model(const model& m, std::span<const value_info> values,
                                const partition_options& options = {});

/// The part of a model with these nodes of its main graph: its inputs are what they read of other nodes and of the
/// model's inputs, in the order in which they are first read, its outputs what other nodes and the model's outputs read
/// of them. `values` declares what nodes compute.
model part_of(const model& m, std::span<const std::size_t> nodes, std::span<const value_info> values);

}  // namespace kiln::onnx
