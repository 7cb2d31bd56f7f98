#include "kiln/onnx/impl/image/image.hpp"

#include <string>

#include "kiln/core/error.hpp"

namespace kiln::onnx::image {

namespace {

struct format {
  bool (*is)(bytes);
  bool (*read)(bytes, picture&);
};
constexpr format formats[] = {
    {is_jpeg, read_jpeg}, {is_png, read_png}, {is_webp, read_webp}, {is_jpeg2000, read_jpeg2000},
    {is_tiff, read_tiff}, {is_bmp, read_bmp}, {is_pnm, read_pnm}};

}  // namespace

void picture::resize(std::int64_t h, std::int64_t w) {
  if (w > 0 && h > most_pixels / w)
    raise(fault::of(errc::limit, "an image has no more pixels than this", most_pixels,
                    std::to_string(h) + " x " + std::to_string(w)));
  height = h;
  width = w;
  pixels.assign(static_cast<std::size_t>(3 * h * w), 0);
}

std::optional<picture> read(bytes file) {
  for (const format& f : formats)
    if (f.is(file)) {
      picture out;
      if (f.read(file, out)) return out;
      return std::nullopt;
    }
  return std::nullopt;
}

void lacks(const char* format, const char* library) {
  raise(errc::unsupported, std::string("a ") + format + " image: kiln was built without " + library);
}

}  // namespace kiln::onnx::image
