#include "kiln/onnx/impl/image/image.hpp"

#if KILN_TIFF
#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstring>
#include <memory>
#endif

// TIFF by libtiff (4.5 or later, which has error handlers for each file): the first image.
namespace kiln::onnx::image {

bool is_tiff(bytes file) {
  return begins(file, "II*\0") || begins(file, "MM\0*") || begins(file, "II+\0") || begins(file, "MM\0+");
}

#if KILN_TIFF

namespace {

struct stream {
  bytes file;
  std::uint64_t at = 0;
};
stream& of(thandle_t h) { return *static_cast<stream*>(h); }

tmsize_t take(thandle_t h, void* to, tmsize_t count) {
  stream& s = of(h);
  const std::uint64_t left = s.at < s.file.size() ? s.file.size() - s.at : 0;
  const auto n = std::min(left, static_cast<std::uint64_t>(count));
  if (n) std::memcpy(to, s.file.data() + s.at, n);
  s.at += n;
  return static_cast<tmsize_t>(n);
}
tmsize_t refuse(thandle_t, void*, tmsize_t) { return 0; }
toff_t seek(thandle_t h, toff_t to, int whence) {
  stream& s = of(h);
  return s.at = to + (whence == SEEK_CUR ? s.at : whence == SEEK_END ? s.file.size() : 0);
}
int close(thandle_t) { return 0; }
toff_t size(thandle_t h) { return of(h).file.size(); }
int quiet(TIFF*, void*, const char*, const char*, std::va_list) { return 1; }

}  // namespace

bool read_tiff(bytes file, picture& out) {
  stream s{file};
  const std::unique_ptr<TIFFOpenOptions, void (*)(TIFFOpenOptions*)> options(TIFFOpenOptionsAlloc(),
                                                                             TIFFOpenOptionsFree);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), quiet, nullptr);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), quiet, nullptr);
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), 4 * most_pixels);
  const std::unique_ptr<TIFF, void (*)(TIFF*)> image(
      TIFFClientOpenExt("image", "rm", &s, take, refuse, seek, close, size, nullptr, nullptr, options.get()),
      TIFFClose);
  std::uint32_t width = 0, height = 0;
  if (!image || !TIFFGetField(image.get(), TIFFTAG_IMAGEWIDTH, &width) ||
      !TIFFGetField(image.get(), TIFFTAG_IMAGELENGTH, &height) || !width || !height)
    return false;
  out.resize(height, width);
  // libtiff would multiply the stored colors by an alpha channel that is not premultiplied
  std::uint16_t count = 0;
  std::uint16_t* kinds = nullptr;
  if (TIFFGetField(image.get(), TIFFTAG_EXTRASAMPLES, &count, &kinds) && count > 0) {
    std::vector<std::uint16_t> multiplied(kinds, kinds + count);
    std::replace(multiplied.begin(), multiplied.end(), std::uint16_t{EXTRASAMPLE_UNASSALPHA},
                 std::uint16_t{EXTRASAMPLE_ASSOCALPHA});
    if (!TIFFSetField(image.get(), TIFFTAG_EXTRASAMPLES, count, multiplied.data())) return false;
  }
  std::vector<std::uint32_t> pixels(std::size_t{width} * height);
  if (!TIFFReadRGBAImageOriented(image.get(), width, height, pixels.data(), ORIENTATION_TOPLEFT, 1)) return false;
  for (std::size_t i = 0; i < pixels.size(); ++i)
    out.set(i, TIFFGetR(pixels[i]), TIFFGetG(pixels[i]), TIFFGetB(pixels[i]));
  return true;
}

#else

bool read_tiff(bytes, picture&) { lacks("TIFF", "libtiff 4.5"); }

#endif

}  // namespace kiln::onnx::image
