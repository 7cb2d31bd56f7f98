#pragma once
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "kiln/onnx/node.hpp"

namespace kiln::onnx {

/// The indices of the nodes that `wanted` names need, in an order in which each node follows those whose outputs it
/// reads; the file's order stays where it can. `defined` are the names of this graph's inputs and initializers, and
/// `is_known` tells which other names graphs around define. Names that are defined twice or nowhere, and cycles, are
/// `malformed` errors.
std::vector<std::size_t> execution_order(const std::vector<node>& nodes, std::span<const std::string_view> defined,
                                         std::span<const std::string_view> wanted,
                                         const std::function<bool(std::string_view)>& is_known);

/// The names that a node and its bodies read.
std::vector<std::string_view> names_read(const node& n);

/// The names of declared inputs or outputs.
std::vector<std::string_view> names_of(const std::vector<value_info>& values);

/// "node 'x' (Conv)", or "node 3 (Conv)" where it has no name.
std::string describe(const node& n, std::size_t index);

}  // namespace kiln::onnx
