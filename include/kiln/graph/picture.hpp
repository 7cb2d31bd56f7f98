#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kiln/fwd.hpp"

namespace kiln {

/// The program in Graphviz's language: one cluster a module, nodes colored by the op's kind. `dot -Tsvg` draws it.
std::string to_graphviz(const program& p);

/// A drawing of the main module as a self-contained SVG file: layers from inputs (top) to outputs (bottom), laid out in
/// the manner of Sugiyama, Tagawa and Toda (1981). Constants and weights stand in their user's box; a fused op lists
/// its body.
std::string to_svg(const program& p);

/// A color as #rrggbb, and a text that goes with it.
struct picture_note {
  std::string color, text;
};

/// What a drawing shows of the main module beside its ops.
struct picture_notes {
  std::map<std::uint32_t, picture_note> instructions;  ///< colors of boxes, and their tooltips
  std::map<std::size_t, picture_note> outputs;         ///< the same of outputs, by their number
  std::string other_color = "#ffffff";                 ///< of boxes without a note
  std::string caption;                                 ///< before the legend
  std::vector<picture_note> legend;                    ///< what colors mean, in a line above the drawing
};

/// The same drawing with colors, tooltips and a legend of the caller's.
std::string to_svg(const program& p, const picture_notes& notes);

}  // namespace kiln
