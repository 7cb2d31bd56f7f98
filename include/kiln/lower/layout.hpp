#pragma once
#include <optional>

#include "kiln/core/layout.hpp"
#include "kiln/graph/module.hpp"

namespace kiln::lower {

/// What an instruction wants of the layout of images: tensors [batch, channels, spatial...].
enum class layout_role : std::uint8_t {
  none,          ///< reads and writes NCHW
  propagates,    ///< its result has the layout of its operands
  adapts,        ///< reads either layout and writes the one that its readers want
  prefers_nhwc,  ///< takes less work in NHWC
};
inline constexpr int layout_roles = 4;

/// The role of an instruction that computes element by element, alone or fused; none for others.
template <class Instruction> constexpr layout_role pointwise_role(const Instruction& i) {
  const auto* fused = i.op.template get_if<op::fused>();
  const bool pointwise = fused ? fused->kind == fusion::pointwise : i.op.kind() == op_kind::pointwise;
  return pointwise ? layout_role::propagates : layout_role::none;
}

/// Elements from pixel to pixel of [batch, channels, spatial...], whose channels lie between them: pixels are evenly
/// spaced and share no memory. Empty where strides are others. Strides of extents 1 do not matter; the stride of the
/// channels is the caller's to check.
template <class Extents>
constexpr std::optional<typename Extents::value_type> nhwc_pixel_stride(const Extents& lens, const Extents& strides) {
  std::optional<typename Extents::value_type> pixel;
  typename Extents::value_type next{};
  for (std::size_t d = lens.size(); d-- > 0;) {
    if (d == 1 || lens[d] == typename Extents::value_type(1)) continue;
    if (!pixel) pixel = next = strides[d];
    if (!(strides[d] == next)) return std::nullopt;
    next = next * lens[d];
  }
  if (!pixel) return lens[1];
  return at_most(dimension(lens[1]), dimension(*pixel)).value_or(false) ? pixel : std::nullopt;
}

/// Whether a layout is NHWC: contiguous channels, evenly spaced pixels.
constexpr bool is_nhwc(const layout& l) {
  return l.lens.size() >= 3 && l.strides[1] == dimension(1) && nhwc_pixel_stride(l.lens, l.strides);
}

/// Strides of NHWC without gaps: row-major with the channels, dim 1, moved to the end.
template <class Extents> constexpr Extents nhwc_strides(const Extents& lens) {
  Extents strides = lens;
  auto step = lens[1];
  for (std::size_t d = lens.size(); d-- > 2;) {
    strides[d] = step;
    step *= lens[d];
  }
  strides[0] = step;
  strides[1] = 1;
  return strides;
}

}  // namespace kiln::lower
