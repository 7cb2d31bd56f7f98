#include "kiln/onnx/impl/image/decode_image.hpp"
#include "kiln/onnx/impl/image/image.hpp"
#include "kiln/onnx/impl/ops/common.hpp"

// Image files as tensors.
namespace kiln::onnx {

small_vector<argument> decode_image::produce(std::span<const argument> in) const {
  const argument file = in[0].contiguous();
  const auto image = image::read(file.as<std::uint8_t>()).value_or(image::picture{});
  const std::size_t channels = to == pixel_format::grayscale ? 1 : 3, pixels = image.pixels.size() / 3;
  argument out(shape{dtype::u8, {image.height, image.width, static_cast<std::int64_t>(channels)}});
  const auto bytes = out.as<std::uint8_t>();
  for (std::size_t i = 0; i < pixels; ++i) {
    const std::uint8_t* from = image.pixels.data() + 3 * i;
    if (to == pixel_format::grayscale)
      bytes[i] = static_cast<std::uint8_t>((19595u * from[0] + 38470u * from[1] + 7471u * from[2] + 0x8000u) >> 16);
    else
      for (std::size_t c = 0; c < 3; ++c) bytes[3 * i + c] = from[to == pixel_format::bgr ? 2 - c : c];
  }
  small_vector<argument> results;
  results.push_back(std::move(out));
  return results;
}

namespace {

variables import_image_decoder(node_context& c) {
  decode_image o;
  const auto format = c.text("pixel_format", "RGB");
  if (format == "BGR")
    o.to = pixel_format::bgr;
  else if (format == "Grayscale")
    o.to = pixel_format::grayscale;
  else if (format != "RGB")
    c.malformed("pixel_format is '" + std::string(format) + "'");
  o.height = c.bodies->fresh_symbol("height");
  o.width = c.bodies->fresh_symbol("width");
  return {c.build.add(o, c.in(0))};
}

}  // namespace

std::span<const op_importer> image_importers() {
  static constexpr op_importer table[] = {
      {"", "ImageDecoder", 20, import_image_decoder,
       "bytes that are no image give an empty tensor, as the standard asks; a format whose library kiln was built "
       "without, animated pictures, and more than 2^27 pixels are errors of the run"},
  };
  return table;
}

}  // namespace kiln::onnx
