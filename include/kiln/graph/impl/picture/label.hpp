#pragma once
#include <string>
#include <vector>

#include "kiln/graph/module.hpp"

namespace kiln::picture {

/// Which instructions are boxes of their own. Constants, weights and views of them are not: their reader names them.
/// Nor is a view that only another view reads: the last of such a chain is a box for all.
std::vector<bool> boxes_of(const module_graph& m);

/// The lines of a box, the title first: ops of the body for a fused op or of a chain of views, attributes, constant
/// operands with the names of their initializers, shapes of the results.
std::vector<std::string> label_of(const program& p, const module_graph& m, const std::vector<bool>& boxes,
                                  std::uint32_t i);

/// The fill color for a kind of op, as #rrggbb.
const char* color_of(op_kind kind);

/// The first `most` characters of UTF-8 text, with an ellipsis where more follow.
std::string shortened(std::string s, std::size_t most);
std::size_t characters(const std::string& s);

/// A name of the module's output k.
std::string output_name(const module_graph& m, std::size_t k);

}  // namespace kiln::picture
