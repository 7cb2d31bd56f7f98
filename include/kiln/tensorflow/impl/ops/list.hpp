#pragma once
#include "kiln/tensorflow/impl/ops/common.hpp"

// A TensorList, or the flow of a TensorArray, is a tensor of its items: [items, extents of one]. One that has been
// reserved is none before it gets its first item, since the extents of items need not be known.
namespace kiln::tensorflow {

/// A list of `count` (a scalar) items of zeros. `extents` are what is known of an item's: numbers, -1 for those that
/// are not known, or a scalar where the rank is not.
variable reserved_list(value count, value extents, dtype type);
bool is_reserved(const variable& v);
/// How many items it has.
dimension reserved_count(const node_context& c, const variable& list);
/// The extents of an item; fresh symbols for those that are unknown; nothing where the rank is.
std::optional<dims> reserved_item(const node_context& c, const variable& list);
/// Whether all of them are known.
bool is_item_known(const node_context& c, const variable& list);
/// The list as a tensor of zeros.
value allocated(const node_context& c, const variable& list, const dims& item);

}  // namespace kiln::tensorflow
