#include "kiln/onnx/impl/image/image.hpp"

#if KILN_OPENJPEG
#include <openjpeg.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#endif

// JPEG 2000 by OpenJPEG: JP2 files and code streams.
namespace kiln::onnx::image {

namespace {

bool is_stream(bytes file) { return begins(file, "\xff\x4f\xff\x51"); }

}  // namespace

bool is_jpeg2000(bytes file) { return is_stream(file) || begins(file, "\0\0\0\x0cjP  \r\n\x87\n"); }

#if KILN_OPENJPEG

namespace {

struct source {
  bytes file;
  std::size_t at = 0;
};

OPJ_SIZE_T take(void* to, OPJ_SIZE_T count, void* from) {
  source& s = *static_cast<source*>(from);
  const std::size_t n = std::min(count, s.file.size() - s.at);
  if (n == 0) return static_cast<OPJ_SIZE_T>(-1);
  std::memcpy(to, s.file.data() + s.at, n);
  s.at += n;
  return n;
}
OPJ_OFF_T skip(OPJ_OFF_T count, void* from) {
  source& s = *static_cast<source*>(from);
  if (count < 0) return -1;
  const auto n = std::min(static_cast<std::size_t>(count), s.file.size() - s.at);
  s.at += n;
  return n || !count ? static_cast<OPJ_OFF_T>(n) : -1;
}
OPJ_BOOL seek(OPJ_OFF_T to, void* from) {
  source& s = *static_cast<source*>(from);
  if (to < 0 || static_cast<std::size_t>(to) > s.file.size()) return OPJ_FALSE;
  s.at = static_cast<std::size_t>(to);
  return OPJ_TRUE;
}

// A component's sample at a pixel, scaled to 0 to 255. Subsampled components count from the corner of the reference
// grid.
int sample(const opj_image_comp_t& c, std::uint32_t x, std::uint32_t y) {
  const std::uint32_t column = std::min(x / c.dx - std::min(x / c.dx, c.x0), c.w - 1),
                      row = std::min(y / c.dy - std::min(y / c.dy, c.y0), c.h - 1);
  std::int64_t v = c.data[std::size_t{row} * c.w + column];
  if (c.sgnd) v += std::int64_t{1} << (c.prec - 1);
  const std::int64_t most = (std::int64_t{1} << c.prec) - 1;
  v = std::clamp<std::int64_t>(v, 0, most);
  return static_cast<int>(c.prec > 8 ? v >> (c.prec - 8) : v * 255 / most);
}

bool pixels_of(const opj_image_t& image, picture& out) {
  const std::uint32_t width = image.x1 - image.x0, height = image.y1 - image.y0;
  const bool colors = image.numcomps >= 3;
  for (std::uint32_t k = 0; k < (colors ? 3u : 1u); ++k) {
    const opj_image_comp_t& c = image.comps[k];
    if (!c.data || !c.w || !c.h || !c.dx || !c.dy || c.prec < 1 || c.prec > 31) return false;
  }
  for (std::uint32_t y = 0; y < height; ++y)
    for (std::uint32_t x = 0; x < width; ++x) {
      const std::size_t at = std::size_t{y} * width + x;
      const auto at_pixel = [&](int k) { return sample(image.comps[k], image.x0 + x, image.y0 + y); };
      const int first = at_pixel(0);
      if (!colors) {
        out.set(at, first, first, first);
        continue;
      }
      const int second = at_pixel(1), third = at_pixel(2);
      if (image.color_space != OPJ_CLRSPC_SYCC) {
        out.set(at, first, second, third);
        continue;
      }
      // ITU-R BT.601 over the whole range
      const auto byte = [](double v) { return static_cast<int>(std::clamp(std::round(v), 0.0, 255.0)); };
      const double blue = second - 128, red = third - 128;
      out.set(at, byte(first + 1.402 * red), byte(first - 0.344136 * blue - 0.714136 * red),
              byte(first + 1.772 * blue));
    }
  return true;
}

}  // namespace

bool read_jpeg2000(bytes file, picture& out) {
  source from{file};
  const std::unique_ptr<opj_stream_t, void (*)(opj_stream_t*)> stream(opj_stream_default_create(OPJ_TRUE),
                                                                      [](opj_stream_t* s) { opj_stream_destroy(s); });
  const std::unique_ptr<opj_codec_t, void (*)(opj_codec_t*)> codec(
      opj_create_decompress(is_stream(file) ? OPJ_CODEC_J2K : OPJ_CODEC_JP2),
      [](opj_codec_t* c) { opj_destroy_codec(c); });
  if (!stream || !codec) return false;
  opj_stream_set_user_data(stream.get(), &from, nullptr);
  opj_stream_set_user_data_length(stream.get(), file.size());
  opj_stream_set_read_function(stream.get(), take);
  opj_stream_set_skip_function(stream.get(), skip);
  opj_stream_set_seek_function(stream.get(), seek);
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  if (!opj_setup_decoder(codec.get(), &parameters)) return false;
  opj_image_t* header = nullptr;
  const bool begun = opj_read_header(stream.get(), codec.get(), &header);
  const std::unique_ptr<opj_image_t, void (*)(opj_image_t*)> image(header, opj_image_destroy);
  if (!begun || !image || image->x1 <= image->x0 || image->y1 <= image->y0 || !image->numcomps) return false;
  const std::int64_t height = std::int64_t{image->y1} - image->y0, width = std::int64_t{image->x1} - image->x0;
  // all components are decoded, also those that are not colors
  if (image->numcomps > 4) picture().resize(height, width > most_pixels ? width : width * ((image->numcomps + 3) / 4));
  out.resize(height, width);
  return opj_decode(codec.get(), stream.get(), image.get()) && opj_end_decompress(codec.get(), stream.get()) &&
         pixels_of(*image, out);
}

#else

bool read_jpeg2000(bytes, picture&) { lacks("JPEG 2000", "OpenJPEG"); }

#endif

}  // namespace kiln::onnx::image
