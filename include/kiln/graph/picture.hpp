#pragma once
#include <string>

#include "kiln/fwd.hpp"

namespace kiln {

/// The program in Graphviz's language: one cluster a module, nodes colored by the op's kind. `dot -Tsvg` draws it.
std::string to_graphviz(const program& p);

/// A drawing of the main module as a self-contained SVG file: layers from inputs (top) to outputs (bottom), laid out in
/// the manner of Sugiyama, Tagawa and Toda (1981). Constants and weights stand in their user's box; a fused op lists
/// its body.
std::string to_svg(const program& p);

}  // namespace kiln
