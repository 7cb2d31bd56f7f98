#pragma once
#include "kiln/op/control/fused.hpp"
#include "kiln/op/index.hpp"
#include "kiln/op/linear.hpp"
#include "kiln/op/nn.hpp"
#include "kiln/op/pointwise.hpp"
#include "kiln/op/reduce.hpp"
#include "kiln/op/registry.hpp"
#include "kiln/op/view.hpp"

namespace kiln {

using control_ops = type_list<op::fused>;

/// kiln's own ops. A type of its own, so that compilers print its name instead of all of theirs.
struct default_registry : registry_from<decltype(join(pointwise_ops{}, reduce_ops{}, view_ops{}, linear_ops{}, nn_ops{},
                                                      index_ops{}, control_ops{}))> {};

namespace detail {
/// The table of the I-th op of the default registry (compiled once, in op/impl).
const op_table& built_in_table(std::size_t index);
/// The table of kiln's own op with that name, or null.
const op_table* find_built_in(std::string_view name);
}  // namespace detail

}  // namespace kiln
