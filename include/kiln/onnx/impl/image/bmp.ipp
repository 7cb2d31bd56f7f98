#include <algorithm>
#include <bit>

#include "kiln/onnx/impl/image/image.hpp"

// Windows bitmaps: palettes of 1, 4 and 8 bits, also run-length encoded; 16, 24 and 32 bits, also with bit masks.
namespace kiln::onnx::image {

namespace {

enum compression : std::uint32_t { plain = 0, runs_of_8 = 1, runs_of_4 = 2, by_masks = 3, by_four_masks = 6 };

class bitmap {
 public:
  explicit bitmap(bytes file) : file_(file) {}

  bool read(picture& out) {
    if (!header()) return false;
    const bool runs = packing_ == runs_of_8 || packing_ == runs_of_4;
    const auto row_bytes = (static_cast<std::size_t>(width_) * bits_ + 31) / 32 * 4;
    if (!runs && (first_ > file_.size() || row_bytes > (file_.size() - first_) / static_cast<std::size_t>(height_)))
      return false;
    // a run of 255 pixels takes two bytes: a short file cannot be a large image
    if (runs && static_cast<std::uint64_t>(height_) >
                    file_.size() * 255 / std::max<std::uint64_t>(1, static_cast<std::uint64_t>(width_)))
      return false;
    out.resize(height_, width_);
    if (runs) return run_lengths(out);
    for (std::int64_t y = 0; y < height_; ++y)
      for (std::int64_t x = 0; x < width_; ++x)
        put(out, x, y, sample(first_ + static_cast<std::size_t>(y) * row_bytes, static_cast<std::size_t>(x)));
    return true;
  }

 private:
  std::uint32_t number(std::size_t at, int count) const {
    std::uint32_t n = 0;
    for (int i = 0; i < count && at + static_cast<std::size_t>(i) < file_.size(); ++i)
      n |= std::uint32_t{file_[at + static_cast<std::size_t>(i)]} << (8 * i);
    return n;
  }

  bool header() {
    first_ = number(10, 4);
    const std::size_t size = number(14, 4);
    if (file_.size() < 14 + size || (size != 12 && size < 40) || size > 256) return false;
    const bool old = size == 12;
    width_ = old ? static_cast<std::int64_t>(number(18, 2)) : static_cast<std::int32_t>(number(18, 4));
    height_ = old ? static_cast<std::int64_t>(number(20, 2)) : static_cast<std::int32_t>(number(22, 4));
    bits_ = number(old ? 24 : 28, 2);
    packing_ = old ? 0 : number(30, 4);
    from_top_ = height_ < 0;
    height_ = from_top_ ? -height_ : height_;
    if (width_ < 1 || height_ < 1) return false;
    const bool palette = bits_ == 1 || bits_ == 4 || bits_ == 8;
    if (!palette && bits_ != 16 && bits_ != 24 && bits_ != 32) return false;
    if (packing_ == runs_of_8                               ? bits_ != 8
        : packing_ == runs_of_4                             ? bits_ != 4
        : packing_ == by_masks || packing_ == by_four_masks ? bits_ != 16 && bits_ != 32
                                                            : packing_ != plain)
      return false;
    if (bits_ == 16) masks_[0] = 0x7c00, masks_[1] = 0x3e0, masks_[2] = 0x1f;
    if (packing_ == by_masks || packing_ == by_four_masks)
      for (std::size_t k = 0; k < 3; ++k) masks_[k] = number(54 + 4 * k, 4);
    palette_ = palette ? 14 + size : 0;
    entry_ = old ? 3 : 4;
    const std::size_t used = old ? 0 : number(46, 4);
    colors_ = used && used < (std::size_t{1} << bits_) ? used : std::size_t{1} << (palette ? bits_ : 0);
    return true;
  }

  std::uint32_t sample(std::size_t row, std::size_t x) const {
    if (bits_ < 8) return file_[row + x * bits_ / 8] >> (8 - bits_ - x * bits_ % 8) & ((1u << bits_) - 1);
    return number(row + x * (bits_ / 8), static_cast<int>(bits_ / 8));
  }
  // The bits of a mask as 0 to 255.
  static int part(std::uint32_t pixel, std::uint32_t mask) {
    if (!mask) return 0;
    const int shift = std::countr_zero(mask);
    const std::uint64_t most = mask >> shift;
    return static_cast<int>(((pixel & mask) >> shift) * std::uint64_t{255} / most);
  }
  void put(picture& out, std::int64_t x, std::int64_t y, std::uint32_t s) const {
    const auto at = static_cast<std::size_t>((from_top_ ? y : height_ - 1 - y) * width_ + x);
    if (!palette_) return out.set(at, part(s, masks_[0]), part(s, masks_[1]), part(s, masks_[2]));
    const std::size_t c = palette_ + entry_ * std::min<std::size_t>(s, colors_ - 1);
    out.set(at, static_cast<int>(number(c + 2, 1)), static_cast<int>(number(c + 1, 1)), static_cast<int>(number(c, 1)));
  }

  // Pairs of a count and a pixel (or two alternating ones of 4 bits). After a count of 0: end of row (0), end of image
  // (1), a move (2), or so many plain pixels.
  bool run_lengths(picture& out) const {
    const bool halves = packing_ == runs_of_4;
    std::int64_t x = 0, y = 0;
    const auto pixel = [&](std::uint32_t s) {
      if (x < width_ && y < height_) put(out, x, y, s);
      ++x;
    };
    const auto half = [&](std::uint32_t two, std::uint32_t i) { return i % 2 ? two & 15 : two >> 4; };
    for (std::size_t at = first_; at + 1 < file_.size();) {
      const std::uint32_t count = file_[at], what = file_[at + 1];
      at += 2;
      if (count) {
        for (std::uint32_t i = 0; i < count; ++i) pixel(halves ? half(what, i) : what);
      } else if (what == 0) {
        x = 0, ++y;
      } else if (what == 1) {
        return true;
      } else if (what == 2) {
        x += number(at, 1), y += number(at + 1, 1), at += 2;
      } else {
        const std::size_t used = halves ? (what + 1) / 2 : what;
        if (used > file_.size() - at) return false;
        for (std::uint32_t i = 0; i < what; ++i) pixel(halves ? half(file_[at + i / 2], i) : file_[at + i]);
        at += used + used % 2;
      }
    }
    return y >= height_;
  }

  bytes file_;
  std::size_t first_ = 0, palette_ = 0, entry_ = 4, colors_ = 0;
  std::int64_t width_ = 0, height_ = 0;
  std::uint32_t bits_ = 0, packing_ = plain, masks_[3] = {0xff0000, 0xff00, 0xff};
  bool from_top_ = false;
};

}  // namespace

bool is_bmp(bytes file) { return begins(file, "BM") && file.size() > 26; }
bool read_bmp(bytes file, picture& out) { return bitmap(file).read(out); }

}  // namespace kiln::onnx::image
