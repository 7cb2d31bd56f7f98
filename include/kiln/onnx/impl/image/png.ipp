#include "kiln/onnx/impl/image/image.hpp"

#if KILN_PNG
#include <csetjmp>
#include <cstring>

#include <png.h>
#endif

// PNG by libpng: palettes and gray as colors, the upper bytes of 16 bits, no alpha, gamma left alone.
namespace kiln::onnx::image {

bool is_png(bytes file) { return begins(file, "\x89PNG\r\n\x1a\n"); }

#if KILN_PNG

namespace {

struct decoder {
  bytes left;
  png_structp state = nullptr;
  png_infop info = nullptr;
  ~decoder() { png_destroy_read_struct(&state, &info, nullptr); }
};

void take(png_structp state, png_bytep to, std::size_t count) {
  bytes& left = static_cast<decoder*>(png_get_io_ptr(state))->left;
  if (count > left.size()) png_error(state, "the file ends early");
  std::memcpy(to, left.data(), count);
  left = left.subspan(count);
}
[[noreturn]] void on_error(png_structp state, png_const_charp) { png_longjmp(state, 1); }
void on_warning(png_structp, png_const_charp) {}

bool begin(decoder& d) {
  if (setjmp(png_jmpbuf(d.state))) return false;
  png_set_read_fn(d.state, &d, take);
  png_read_info(d.state, d.info);
  png_set_expand(d.state);
  png_set_strip_16(d.state);
  png_set_gray_to_rgb(d.state);
  png_set_strip_alpha(d.state);
  png_set_interlace_handling(d.state);
  png_read_update_info(d.state, d.info);
  return png_get_rowbytes(d.state, d.info) == 3 * std::size_t{png_get_image_width(d.state, d.info)};
}
bool read_rows(decoder& d, png_bytepp rows) {
  if (setjmp(png_jmpbuf(d.state))) return false;
  png_read_image(d.state, rows);
  return true;
}

}  // namespace

bool read_png(bytes file, picture& out) {
  decoder d{.left = file};
  d.state = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, on_error, on_warning);
  d.info = d.state ? png_create_info_struct(d.state) : nullptr;
  if (!d.info) throw std::bad_alloc();
  if (!begin(d)) return false;
  out.resize(png_get_image_height(d.state, d.info), png_get_image_width(d.state, d.info));
  std::vector<png_bytep> rows(static_cast<std::size_t>(out.height));
  for (std::size_t y = 0; y < rows.size(); ++y)
    rows[y] = out.pixels.data() + 3 * y * static_cast<std::size_t>(out.width);
  return read_rows(d, rows.data());
}

#else

bool read_png(bytes, picture&) { lacks("PNG", "libpng"); }

#endif

}  // namespace kiln::onnx::image
