#pragma once
#include <optional>

#include "kiln/onnx/impl/import/scope.hpp"

// Tensors whose rank only a run knows have a list of possible types. Where a branch made such a tensor, the branch's
// condition tells which of two types it has.
namespace kiln::onnx {

using type_indices = small_vector<std::size_t>;  ///< in a variable's possible types

/// The bool of `home` that says whether a tensor has the first of its two possible types; none if nothing says that.
value rank_condition(const import_state& s, const variable& tensor, module_frame& home);

/// Whether a tensor has its first possible type, where the module being built is for one value of its condition.
std::optional<bool> has_first_type(const import_state& s, const entry& e);

/// A tensor that is known to have one of some of its possible types.
variable narrowed(builder& b, variable tensor, const type_indices& kept);

}  // namespace kiln::onnx
