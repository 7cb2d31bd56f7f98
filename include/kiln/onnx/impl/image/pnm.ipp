#include "kiln/onnx/impl/image/image.hpp"

// Portable bit, gray and pixel maps (PBM, PGM, PPM; Netpbm's formats P1 to P6).
namespace kiln::onnx::image {

namespace {

class reader {
 public:
  explicit reader(bytes file) : file_(file) {}

  // A decimal number after white space and comments; -1 if there is none.
  int number(bool one_digit = false) {
    skip();
    if (at_ == file_.size() || !digit()) return -1;
    int n = 0;
    for (; at_ < file_.size() && digit(); ++at_) {
      n = 10 * n + (file_[at_] - '0');
      if (n > (1 << 24)) return -1;
      if (one_digit) return ++at_, n;
    }
    return n;
  }
  // The bytes after the header and one white space.
  bytes rest() const { return at_ < file_.size() ? file_.subspan(at_ + 1) : bytes{}; }

 private:
  bool digit() const { return file_[at_] >= '0' && file_[at_] <= '9'; }
  void skip() {
    for (; at_ < file_.size(); ++at_) {
      if (file_[at_] == '#')
        while (at_ < file_.size() && file_[at_] != '\n') ++at_;
      else if (file_[at_] != ' ' && (file_[at_] < '\t' || file_[at_] > '\r'))
        return;
      if (at_ == file_.size()) return;
    }
  }
  bytes file_;
  std::size_t at_ = 2;
};

// A sample of binary data: a bit (the highest first), a byte, or a big-endian pair of bytes; -1 beyond the end.
int packed_sample(bytes data, std::size_t row, std::size_t i, std::size_t row_samples, bool bits, bool wide) {
  if (bits) {
    const std::size_t at = row * ((row_samples + 7) / 8) + i / 8;
    return at < data.size() ? data[at] >> (7 - i % 8) & 1 : -1;
  }
  const std::size_t k = row * row_samples + i;
  if (wide) return 2 * k + 1 < data.size() ? data[2 * k] << 8 | data[2 * k + 1] : -1;
  return k < data.size() ? data[k] : -1;
}

}  // namespace

bool is_pnm(bytes file) {
  return file.size() > 2 && file[0] == 'P' && file[1] >= '1' && file[1] <= '6' &&
         (file[2] == '#' || file[2] == ' ' || (file[2] >= '\t' && file[2] <= '\r'));
}

bool read_pnm(bytes file, picture& out) {
  const int kind = file[1] - '0';
  const bool text = kind <= 3, bits = kind % 3 == 1, colors = kind % 3 == 0;
  reader r(file);
  const int width = r.number(), height = r.number(), most = bits ? 1 : r.number();
  if (width < 1 || height < 1 || most < 1 || most > 65535) return false;
  const auto channels = static_cast<std::size_t>(colors ? 3 : 1),
             row_samples = static_cast<std::size_t>(width) * channels;
  const bytes data = text ? file : r.rest();
  // a sample takes a bit at least: a short file cannot be a large image
  if (data.size() < (row_samples * static_cast<std::size_t>(height)) / 8) return false;
  out.resize(height, width);
  for (std::size_t y = 0; y < static_cast<std::size_t>(height); ++y)
    for (std::size_t x = 0; x < static_cast<std::size_t>(width); ++x) {
      int color[3] = {};
      for (std::size_t c = 0; c < channels; ++c) {
        const int s = text ? r.number(bits) : packed_sample(data, y, x * channels + c, row_samples, bits, most > 255);
        if (s < 0 || s > most) return false;
        color[c] = bits ? 255 * (1 - s) : (2 * 255 * s + most) / (2 * most);
      }
      if (!colors) color[1] = color[2] = color[0];
      out.set(y * static_cast<std::size_t>(width) + x, color[0], color[1], color[2]);
    }
  return true;
}

}  // namespace kiln::onnx::image
