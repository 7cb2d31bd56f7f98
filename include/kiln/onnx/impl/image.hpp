#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

// Image files as pixels, for ImageDecoder. One file a format: image_<format>.ipp.
namespace kiln::onnx::image {

using bytes = std::span<const std::uint8_t>;

/// Pixels of three bytes, red first, rows from the top; colours are not premultiplied by an alpha channel, which is
/// left out.
struct picture {
  std::int64_t height = 0, width = 0;
  std::vector<std::uint8_t> pixels;

  /// Takes the extents and makes room; more than `most_pixels` is a `limit` error.
  void resize(std::int64_t h, std::int64_t w);
  void set(std::size_t pixel, int red, int green, int blue) {
    pixels[3 * pixel] = static_cast<std::uint8_t>(red);
    pixels[3 * pixel + 1] = static_cast<std::uint8_t>(green);
    pixels[3 * pixel + 2] = static_cast<std::uint8_t>(blue);
  }
};
inline constexpr std::int64_t most_pixels = std::int64_t{1} << 27;

/// The first image of a file in any of the formats; nothing where the bytes are none. A format whose library kiln was
/// built without is an `unsupported` error that names it.
std::optional<picture> read(bytes file);

// Readers of a format, false where the bytes break it; each file has a line of the form `is_<format>`.
bool is_bmp(bytes file);
bool read_bmp(bytes file, picture& out);
bool is_jpeg(bytes file);
bool read_jpeg(bytes file, picture& out);
bool is_jpeg2000(bytes file);
bool read_jpeg2000(bytes file, picture& out);
bool is_png(bytes file);
bool read_png(bytes file, picture& out);
bool is_pnm(bytes file);
bool read_pnm(bytes file, picture& out);
bool is_tiff(bytes file);
bool read_tiff(bytes file, picture& out);
bool is_webp(bytes file);
bool read_webp(bytes file, picture& out);

/// Whether the file begins with these bytes.
template <std::size_t N>
bool begins(bytes file, const char (&text)[N], std::size_t at = 0) {
  if (file.size() < at + N - 1) return false;
  for (std::size_t i = 0; i + 1 < N; ++i)
    if (file[at + i] != static_cast<std::uint8_t>(text[i])) return false;
  return true;
}
[[noreturn]] void lacks(const char* format, const char* library);

}  // namespace kiln::onnx::image
