#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

// Image files as pixels, for ImageDecoder. Each format has a file <format>.ipp.
namespace kiln::onnx::image {

using bytes = std::span<const std::uint8_t>;

/// Pixels of three bytes (RGB), rows from the top. The alpha channel is left out; colors are not multiplied by it.
struct picture {
  std::int64_t height = 0, width = 0;
  std::vector<std::uint8_t> pixels;

  /// Sets the extents and allocates; more than `most_pixels` is a `limit` error.
  void resize(std::int64_t h, std::int64_t w);
  void set(std::size_t pixel, int red, int green, int blue) {
    pixels[3 * pixel] = static_cast<std::uint8_t>(red);
    pixels[3 * pixel + 1] = static_cast<std::uint8_t>(green);
    pixels[3 * pixel + 2] = static_cast<std::uint8_t>(blue);
  }
};
inline constexpr std::int64_t most_pixels = std::int64_t{1} << 27;

/// The first image of a file in any of the formats; none if the bytes are not an image. A format whose library kiln was
/// built without is an `unsupported` error.
std::optional<picture> read(bytes file);

// For each format: whether the file begins as one, and a reader that returns false for malformed bytes.
bool is_bmp(bytes file), read_bmp(bytes file, picture&out);
bool is_jpeg(bytes file), read_jpeg(bytes file, picture&out);
bool is_jpeg2000(bytes file), read_jpeg2000(bytes file, picture&out);
bool is_png(bytes file), read_png(bytes file, picture&out);
bool is_pnm(bytes file), read_pnm(bytes file, picture&out);
bool is_tiff(bytes file), read_tiff(bytes file, picture&out);
bool is_webp(bytes file), read_webp(bytes file, picture&out);

/// Whether the file begins with these bytes.
template <std::size_t N> bool begins(bytes file, const char (&text)[N], std::size_t at = 0) {
  if (file.size() < at + N - 1) return false;
  for (std::size_t i = 0; i + 1 < N; ++i)
    if (file[at + i] != static_cast<std::uint8_t>(text[i])) return false;
  return true;
}
/// Raises the error of a format whose library kiln was built without.
[[noreturn]] void lacks(const char* format, const char* library);

}  // namespace kiln::onnx::image
