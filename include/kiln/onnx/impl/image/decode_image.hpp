#pragma once
#include "kiln/op/concepts.hpp"

namespace kiln::onnx {

enum class pixel_format : std::uint8_t { rgb, bgr, grayscale };

/// The pixels u8[height, width, channels] of an image file u8[bytes] (ONNX ImageDecoder); u8[0, 0, channels] if the
/// bytes are not an image. Gray is the luma of ITU-R BT.601, in 16-bit fixed point. An image of more than 2^27 pixels
/// is a `limit` error.
struct decode_image {
  pixel_format to = pixel_format::rgb;
  dimension height = 0, width = 0;

  result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != 1) return fault::of(errc::invalid_argument, "number of inputs", 1, in.size());
    if (in[0].type != dtype::u8 || in[0].rank() != 1)
      return fault::of(errc::shape_mismatch, "type of an image file", shape{dtype::u8, {0}}, in[0]);
    return shape{dtype::u8, {height, width, to == pixel_format::grayscale ? 1 : 3}};
  }
  small_vector<argument> produce(std::span<const argument> in) const;
};

}  // namespace kiln::onnx
