#include "kiln/onnx/impl/image/image.hpp"

#if KILN_JPEG
#include <csetjmp>
#include <cstdio>
// after cstdio, whose types it names
#include <jpeglib.h>
// after jpeglib.h, whose codes it completes
#include <jerror.h>
#endif

// JPEG by libjpeg with its defaults: the exact inverse DCT and interpolated chroma.
namespace kiln::onnx::image {

bool is_jpeg(bytes file) { return begins(file, "\xff\xd8\xff"); }

#if KILN_JPEG

namespace {

// libjpeg reports errors by longjmp to `failed`.
struct decoder {
  jpeg_decompress_struct state;
  jpeg_error_mgr errors;
  jpeg_progress_mgr progress;
  std::jmp_buf failed;
};

[[noreturn]] void fail(j_common_ptr state) { std::longjmp(static_cast<decoder*>(state->client_data)->failed, 1); }
// libjpeg would fill in the missing part of a truncated file.
void on_message(j_common_ptr state, int level) {
  const int code = state->err->msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER)) fail(state);
}
// A short progressive file may have many scans, each of which takes the time of a whole image.
void on_progress(j_common_ptr state) {
  if (reinterpret_cast<j_decompress_ptr>(state)->input_scan_number > 500) fail(state);
}

bool begin(decoder& d, bytes file) {
  if (setjmp(d.failed)) return false;
  jpeg_create_decompress(&d.state);
  d.state.client_data = &d;
  d.state.progress = &d.progress;
  jpeg_mem_src(&d.state, file.data(), static_cast<unsigned long>(file.size()));
  if (jpeg_read_header(&d.state, TRUE) != JPEG_HEADER_OK) return false;
  const bool inks = d.state.jpeg_color_space == JCS_CMYK || d.state.jpeg_color_space == JCS_YCCK;
  d.state.out_color_space = inks ? JCS_CMYK : JCS_RGB;
  return true;
}

bool read_rows(decoder& d, picture& out, std::uint8_t* row) {
  if (setjmp(d.failed)) return false;
  jpeg_start_decompress(&d.state);
  const bool inks = d.state.out_color_space == JCS_CMYK;
  while (d.state.output_scanline < d.state.output_height) {
    const std::size_t first = std::size_t{d.state.output_scanline} * d.state.output_width;
    JSAMPROW to = inks ? row : out.pixels.data() + 3 * first;
    jpeg_read_scanlines(&d.state, &to, 1);
    if (!inks) continue;
    // Adobe's files store inverted CMYK
    const auto ink = [&](std::size_t i) { return d.state.saw_Adobe_marker ? row[i] : 255 - row[i]; };
    for (std::size_t x = 0; x < d.state.output_width; ++x) {
      const auto over_black = [&](std::size_t c) { return (ink(4 * x + c) * ink(4 * x + 3) + 127) / 255; };
      out.set(first + x, over_black(0), over_black(1), over_black(2));
    }
  }
  jpeg_finish_decompress(&d.state);
  return true;
}

}  // namespace

bool read_jpeg(bytes file, picture& out) {
  decoder d{};
  d.state.err = jpeg_std_error(&d.errors);
  d.state.client_data = &d;
  d.errors.error_exit = fail;
  d.errors.emit_message = on_message;
  d.progress.progress_monitor = on_progress;
  struct closing {
    decoder& d;
    ~closing() { jpeg_destroy_decompress(&d.state); }
  } close{d};
  if (!begin(d, file)) return false;
  out.resize(d.state.image_height, d.state.image_width);
  std::vector<std::uint8_t> row(4 * std::size_t{d.state.image_width});
  return read_rows(d, out, row.data());
}

#else

bool read_jpeg(bytes, picture&) { lacks("JPEG", "libjpeg"); }

#endif

}  // namespace kiln::onnx::image
