#pragma once
#include "kiln/static_program/plan/product.hpp"

namespace kiln::aot {

/// The form in which a step reads a weight. Columns of panels are filters, or columns of a matrix; see
/// kernels::window_extents, winograd_nhwc_extents and static_depthwise_nhwc.
enum class weight_form : std::uint8_t {
  rows,      ///< a matrix whose rows begin on whole vectors
  planes,    ///< transformed 3x3 filters for images in planes
  panels,    ///< in panels of columns
  panels_2,  ///< transformed 3x3 filters for tiles of 2x2 results, in panels
  panels_4,  ///< for tiles of 4x4
  depthwise  ///< a row of channels for each place in the window
};

/// A weight that a step reads in another form (inlined, for units of several instruction sets ask): where its elements
/// lie, and where that form lies among the prepared ones, in bytes.
struct prepared_weight {
  place from{};
  weight_form form = weight_form::rows;
  std::int64_t base = 0;

  // of weights in panels: a matrix has one row for each channel
  KILN_FN constexpr bool is_matrix() const { return form == weight_form::panels && from.lens.size() != 4; }
  KILN_FN constexpr std::int64_t columns() const { return is_matrix() ? from.lens.back() : from.lens[0]; }
  KILN_FN constexpr std::int64_t lines() const {
    return is_matrix() ? from.lens[from.lens.size() - 2] : from.lens[1] * from.lens[2] * from.lens[3];
  }
  /// Elements in that form.
  KILN_FN constexpr std::int64_t elements() const {
    const ints& w = from.lens;
    const auto whole = [](std::int64_t n) { return (n + 15) / 16 * 16; };
    switch (form) {
      case weight_form::rows: return w[0] * row_pitch(from);
      case weight_form::planes:
      case weight_form::panels_2: return 16 * whole(w[0]) * w[1];
      case weight_form::panels_4: return 36 * whole(w[0]) * w[1];
      case weight_form::panels: return whole(columns()) * lines();
      case weight_form::depthwise: return whole(w[0]) * w[2] * w[3];
    }
    return 0;
  }
};

/// The prepared weights of a plan.
struct prepared_list {
  small_vector<prepared_weight> items;
  std::int64_t bytes = 0;

  /// Gives the place in bytes of a weight in a form, and adds it where no step has read it so.
  constexpr std::int64_t add(const place& from, weight_form form) {
    for (const prepared_weight& p : items)
      if (p.form == form && p.from.at.index == from.at.index && p.from.at.where == from.at.where &&
          p.from.offset == from.offset && p.from.lens == from.lens && p.from.strides == from.strides)
        return p.base;
    const std::int64_t base = bytes;
    items.push_back({from, form, base});
    bytes += (items.back().elements() * 4 + 63) / 64 * 64;
    return base;
  }
};

}  // namespace kiln::aot
