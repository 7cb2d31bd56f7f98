#pragma once
#include "kiln/graph/impl/picture/label.hpp"
#include "kiln/graph/picture.hpp"

namespace kiln::picture {

/// A box of a drawing, or, without lines, a bend of an edge that crosses the layer. Units are pixels.
struct box {
  std::vector<std::string> lines;
  std::string color = "#ffffff", tooltip{};
  std::size_t layer = 0;
  double x = 0, width = 8, height = 0;  ///< x: center
  std::vector<std::size_t> above, below;
  std::vector<std::size_t> far_below;  ///< readers more than `longest_edge` layers away, which no line joins
};

inline constexpr double margin = 16, gap_x = 18, gap_y = 34, line_height = 15;
/// Layers that a drawn edge spans at most: more would hide the shape of deep networks under lines.
inline constexpr std::size_t longest_edge = 6;

/// A module drawn in layers (Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical system
/// structures", 1981): edges join adjacent layers only, layers are ordered for few crossings, boxes move towards the
/// middle of their neighbors.
class layered_drawing {
 public:
  /// Boxes have the colors of their ops' kinds, or those of the notes.
  explicit layered_drawing(const program& p, const picture_notes* notes = nullptr);

  const std::vector<box>& boxes() const { return boxes_; }
  const std::vector<std::vector<std::size_t>>& layers() const { return layers_; }

 private:
  std::size_t add_box(std::vector<std::string> lines, picture_note note, std::size_t layer);
  void join(std::size_t from, std::size_t to);
  void add_boxes(const program& p, const picture_notes* notes);
  void add_bends();
  void order_layers();
  void place_boxes();

  std::vector<box> boxes_;
  std::vector<std::vector<std::size_t>> layers_;
};

}  // namespace kiln::picture
