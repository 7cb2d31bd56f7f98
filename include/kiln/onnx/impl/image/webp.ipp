#include "kiln/core/error.hpp"
#include "kiln/onnx/impl/image/image.hpp"

#if KILN_WEBP
#include <webp/decode.h>
#endif

// WebP by libwebp.
namespace kiln::onnx::image {

bool is_webp(bytes file) { return begins(file, "RIFF") && begins(file, "WEBP", 8); }

#if KILN_WEBP

bool read_webp(bytes file, picture& out) {
  WebPBitstreamFeatures has;
  if (WebPGetFeatures(file.data(), file.size(), &has) != VP8_STATUS_OK) return false;
  if (has.has_animation) raise(errc::unsupported, "a WebP image that moves");
  out.resize(has.height, has.width);
  return WebPDecodeRGBInto(file.data(), file.size(), out.pixels.data(), out.pixels.size(), 3 * has.width) != nullptr;
}

#else

bool read_webp(bytes, picture&) { lacks("WebP", "libwebp"); }

#endif

}  // namespace kiln::onnx::image
