#pragma once
#include <string_view>
#include <vector>

#include "kiln/onnx/node.hpp"

namespace kiln::onnx {

/// The positions of the nodes so that each follows those whose outputs it reads; nodes that may stand in file order do.
/// `known` says whether a name has a value from outside (initializers, inputs, enclosing graphs). Names defined twice,
/// names nobody defines and cycles are `malformed` errors.
std::vector<std::size_t> execution_order(const std::vector<node>& nodes, const std::vector<std::string_view>& defined,
                                         const std::vector<std::string_view>& wanted,
                                         bool (*known)(const void* scope, std::string_view name), const void* scope);

/// The names that a node reads, those that its bodies read from around it included.
std::vector<std::string_view> names_read(const node& n);

/// "node 'x' (Conv)", or "node 3 (Conv)" where it has no name.
std::string describe(const node& n, std::size_t position);

}  // namespace kiln::onnx
