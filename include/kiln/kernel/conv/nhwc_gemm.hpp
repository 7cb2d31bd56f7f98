#pragma once

#include "kiln/kernel/conv/image_layout.hpp"
#include "kiln/kernel/conv/problem.hpp"
#include "kiln/kernel/conv/weight_lines.hpp"
#include "kiln/kernel/conv/window_left.hpp"
#include "kiln/kernel/conv/window_parts.hpp"
#include "kiln/kernel/conv/window_tile.hpp"
#include "kiln/kernel/gemm/prologue.hpp"

namespace kiln::kernels {

/// Two-dimensional NHWC convolution: a GEMM of output pixels with packed weights [taps * channels, outputs]. In
/// vectors, its left rows are windows read in place: a task is a strip of output rows and some panels of output
/// channels, and where the kernel reaches outside, the strip's input rows are copied with their padding. Where a matrix
/// unit gains, it takes copies of the windows (im2col). Windows that reach far outside are computed in parts.
template <class T> class nhwc_gemm_convolution {
 public:
  static constexpr bool serves(const conv_problem& p) {
    return p.input[0] == 1 && p.kernel[0] == 1 && p.pad_begin[0] == 0 && p.pad_end[0] == 0;
  }

  /// `in_step`: elements between adjacent pixels of the input.
  nhwc_gemm_convolution(const conv_problem& problem, unsigned workers, std::ptrdiff_t in_step)
      : p_(problem),
        height_(std::max<std::int64_t>(1, problem.output(1))),
        width_(std::max<std::int64_t>(1, problem.output(2))),
        inputs_(problem.group_inputs()),
        outputs_(problem.group_outputs()),
        depth_(problem.depth()),
        parts_(problem, workers) {
    constexpr std::int64_t strip_bytes = 256 * 1024;
    copied_ = p_.padded();
    plain_ = p_.pointwise();
    row_ = copied_ ? (width_ - 1) * p_.stride[2] + p_.span(2) : p_.input[2];
    const std::int64_t images = std::max<std::int64_t>(1, p_.batch * p_.groups);
    const std::int64_t wanted = workers == 1 ? 1 : 6 * static_cast<std::int64_t>(workers);
    const std::int64_t least = std::max<std::int64_t>(1, ceil_div(48, width_));
    strip_rows_ = std::min(height_, std::max(least, ceil_div(height_, ceil_div(wanted, images))));
    while (strip_rows_ > least && strip_size(strip_rows_) * static_cast<std::int64_t>(sizeof(T)) > strip_bytes)
      strip_rows_ = std::max(least, ceil_div(strip_rows_, 2));
    strips_ = ceil_div(height_, strip_rows_);
    const std::int64_t panels = std::max<std::int64_t>(1, ceil_div(outputs_, register_tile<T>::width));
    const std::int64_t cuts = std::clamp<std::int64_t>(ceil_div(wanted, images * strips_), 1, panels);
    panels_per_task_ = ceil_div(panels, cuts);
    cuts_ = ceil_div(panels, panels_per_task_);
    // A worker that goes through the groups of a strip reads rows that it probably wrote itself; large weights it reads
    // once for all strips.
    constexpr std::int64_t small_weights = 512 * 1024;
    groups_first_ = weights_size(p_) * static_cast<std::int64_t>(sizeof(T)) <= small_weights;
    narrow_ = !plain_ && outputs_ <= native_lanes<T> && inputs_ >= 8 && depth_ <= depth_block<T>(depth_);
    if (!plain_ && !narrow_) fill_offsets(copied_ ? inputs_ : in_step);
  }

  /// Elements that the packed weights take.
  static std::int64_t weights_size(const conv_problem& p) {
    return p.groups * packed_b_size<T>(p.depth(), p.group_outputs());
  }
  /// Packs weights [outputs, inputs / groups, kh, kw] at any address; rows of the packed matrix are ordered kh, kw,
  /// input.
  static void pack_weights(thread_pool& pool, const conv_problem& p, T* to, const std::byte* weights) {
    const std::int64_t inputs = p.group_inputs(), outputs = p.group_outputs(), taps = p.taps(), depth = p.depth();
    constexpr std::int64_t full = register_tile<T>::width, lanes = native_lanes<T>;
    constexpr std::int64_t some = 512, most = some * lanes;  // of a filter's weights at a time
    constexpr auto each = static_cast<std::ptrdiff_t>(sizeof(T));
    const std::int64_t vectors = ceil_div(outputs, lanes), chunks = ceil_div(depth, some);
    pool.parallel_for(p.groups * vectors * chunks, [&](std::int64_t task, unsigned) {
      const std::int64_t group = task / vectors / chunks, filter = task / chunks % vectors * lanes;
      const std::int64_t first = task % chunks * some, count = std::min(some, depth - first);
      const std::int64_t col = filter / full * full, width = panel_width<T>(col, outputs);
      alignas(64) T turned[most];
      lines_to_lanes<some>(weights + ((group * outputs + filter) * depth + first) * each, depth,
                           std::min(lanes, outputs - filter), count, turned);
      T* const to_filter = to + group * packed_b_size<T>(depth, outputs) + col * depth + filter - col;
      std::int64_t input = first / taps, tap = first % taps;
      for (std::int64_t k = 0; k < count; ++k) {
        store(to_filter + (tap * inputs + input) * width, load<native_vec<T>>(turned + k * lanes));
        if (++tap == taps) tap = 0, ++input;
      }
    });
  }

  /// Elements of scratch for each worker.
  std::int64_t scratch_size() const {
    if (!parts_.empty()) return parts_.scratch_size();
    const std::int64_t split =
        p_.groups == 1 ? matrix_unit_scratch_size<T>(p_.batch * height_ * width_, outputs_, depth_) : 0;
    if (plain_) return split;
    const std::int64_t strip = copied_ ? header + strip_size(strip_rows_) : 0;
    if (p_.groups != 1 || !gains_from_matrix_unit(windows(nullptr, 0, nullptr, nullptr, 0))) return strip;
    return std::max(strip, split + window_left<T>::scratch_size(window_rows, window_cols));
  }

  /// `epilogue(row0, rows, col0, cols, c, c_row)` is called once for each finished tile: rows are pixels, counted
  /// through the batch, columns output channels.
  template <class Epilogue>
  void run(thread_pool& pool, const T* input, std::ptrdiff_t in_step, const T* weights, T* output,
           std::ptrdiff_t out_step, T* scratch, Epilogue&& epilogue) const {
    if (plain_) {
      const gemm_problem<T> g = product(input, in_step, weights, output, out_step);
      return p_.groups == 1 ? gemm(pool, g, scratch, epilogue) : multiply_groups(pool, g, epilogue);
    }
    if (!parts_.empty()) return parts_.run(pool, input, in_step, weights, output, out_step, scratch, epilogue);
    if (windows_on_matrix_unit(pool, input, in_step, weights, output, out_step, scratch, epilogue)) return;
    const std::int64_t each = round_up(scratch_size(), native_lanes<T>);
    for (unsigned w = 0; w < pool.size() && copied_; ++w) mark_strip(scratch + w * each, -1);
    worker_visits visits;
    pool.parallel_for(p_.batch * p_.groups * strips_ * cuts_, [&](std::int64_t task, unsigned worker) {
      T* const own = scratch + worker * each;
      const std::int64_t cut = task % cuts_, part = task / cuts_;
      const std::int64_t inner = groups_first_ ? p_.groups : strips_, outer = groups_first_ ? strips_ : p_.groups;
      const std::int64_t fast = part % inner, slow = part / inner % outer, image = part / inner / outer;
      const std::int64_t group = groups_first_ ? fast : slow, y0 = (groups_first_ ? slow : fast) * strip_rows_;
      const std::int64_t rows = std::min(strip_rows_, height_ - y0);
      strip_source from{input + image * p_.input_pixels() * in_step + group * inputs_, in_step};
      if (copied_) {
        T* const local = own + header;
        // The next task is that of the next group or strip.
        const bool of_group = p_.groups > 1 && (groups_first_ || strips_ == 1);
        const std::ptrdiff_t coming = of_group ? inputs_ : strip_rows_ * p_.stride[1] * p_.input[2] * in_step;
        if (!holds_strip(own, part)) copy_strip(local, from, y0, rows, coming);
        mark_strip(own, part);
        from = {local, inputs_};
      } else {
        from.at += y0 * p_.stride[1] * row_ * in_step;
      }
      const std::int64_t row0 = (image * height_ + y0) * width_;
      const std::int64_t begin = cut * panels_per_task_ * register_tile<T>::width;
      const std::int64_t end = std::min(outputs_, begin + panels_per_task_ * register_tile<T>::width);
      const bool fresh = visits.first(worker);
      const T* const of_group = weights + group * packed_b_size<T>(depth_, outputs_);
      T* const out = output + row0 * out_step + group * outputs_;
      if (narrow_) return run_narrow(from, of_group, group + 1 < p_.groups, rows, out, out_step, row0, group, epilogue);
      for (std::int64_t col = begin; col < end; col += register_tile<T>::width)
        run_panel(from, of_group, col, fresh && col == begin, rows * width_, out, out_step, row0, group * outputs_,
                  epilogue);
    });
  }

  /// Elements of scratch, aligned to 64 bytes, for each worker of `run_with_prologue`.
  std::int64_t prologue_scratch_size() const {
    return gemm_with_prologue_scratch_size(product(nullptr, 0, nullptr, nullptr, 0));
  }
  /// As `run` after a prologue, for pointwise convolutions in one group.
  template <class Epilogue>
  void run_with_prologue(thread_pool& pool, const channel_prologue<T>& prologue, const T* input, std::ptrdiff_t in_step,
                         const T* weights, T* output, std::ptrdiff_t out_step, T* scratch, Epilogue&& epilogue) const {
    gemm_with_prologue(pool, product(input, in_step, weights, output, out_step), prologue, height_ * width_, scratch,
                       epilogue);
  }

  /// The speedup of a matrix unit over vectors; 1 where vectors multiply.
  static constexpr double matrix_unit_gain(const conv_problem& p) {
    if (p.groups != 1) return 1;
    return kernels::matrix_unit_gain<T>(p.batch * p.output_pixels(), p.out_channels, p.depth(),
                                        p.pointwise() ? 0 : window_left<T>::fetch);
  }

 private:
  static constexpr std::int64_t header = 64 / sizeof(T);
  static constexpr std::int64_t window_rows = split_schedule::most_rows, window_cols = split_scratch::depth;
  // The GEMM of a convolution in one group; `input` is its left operand if it is pointwise.
  gemm_problem<T> product(const T* input, std::ptrdiff_t in_step, const T* weights, T* output,
                          std::ptrdiff_t out_step) const {
    gemm_problem<T> g{.m = p_.batch * height_ * width_, .n = outputs_, .k = depth_, .a = input, .a_row = in_step};
    g.b = weights;
    g.c = output;
    g.c_row = out_step;
    return g;
  }
  // The GEMM of the windows on the matrix unit.
  gemm_problem<T> windows(const T* input, std::ptrdiff_t in_step, const T* weights, T* output,
                          std::ptrdiff_t out_step) const {
    gemm_problem<T> g = product(input, in_step, weights, output, out_step);
    g.fetch = window_left<T>::fetch;
    return g;
  }
  // Multiplies the windows on the matrix unit if that gains; returns whether it did.
  template <class Epilogue>
  bool windows_on_matrix_unit(thread_pool& pool, const T* input, std::ptrdiff_t in_step, const T* weights, T* output,
                              std::ptrdiff_t out_step, T* scratch, Epilogue&& epilogue) const {
    if (p_.groups != 1) return false;
    const gemm_problem<T> g = windows(input, in_step, weights, output, out_step);
    const std::int64_t split = matrix_unit_scratch_size<T>(g.m, g.n, g.k) * pool.size();
    const window_left<T> left(p_, input, in_step, window_rows, window_cols, scratch + split);
    return multiplied_on_matrix_unit(pool, g, left, packed_right<T>{weights, 0, depth_}, scratch, window_rows,
                                     epilogue);
  }
  struct strip_source {
    const T* at;
    std::ptrdiff_t step;  // between adjacent pixels
  };

  // Which strip a worker's copy holds: tasks that differ only in output channels share it.
  static bool holds_strip(const T* own, std::int64_t strip) { return __builtin_memcmp(own, &strip, sizeof strip) == 0; }
  static void mark_strip(T* own, std::int64_t strip) { __builtin_memcpy(own, &strip, sizeof strip); }

  std::int64_t rows_in(std::int64_t rows) const { return (rows - 1) * p_.stride[1] + p_.span(1); }
  std::int64_t strip_size(std::int64_t rows) const { return rows_in(rows) * row_ * inputs_; }

  // Offsets of the left operand's elements from the window's first pixel.
  void fill_offsets(std::ptrdiff_t step) {
    offsets_.reserve(static_cast<std::size_t>(depth_));
    for (std::int64_t y = 0; y < p_.kernel[1]; ++y)
      for (std::int64_t x = 0; x < p_.kernel[2]; ++x)
        for (std::int64_t c = 0; c < inputs_; ++c)
          offsets_.push_back(static_cast<std::int32_t>((y * p_.dilation[1] * row_ + x * p_.dilation[2]) * step + c));
  }

  // Prefetches what lies `coming` elements after it, since another core wrote much of it.
  void copy_strip(T* to, const strip_source& image, std::int64_t y0, std::int64_t rows, std::ptrdiff_t coming) const {
    const std::int64_t first_y = y0 * p_.stride[1] - p_.pad_begin[1];
    const std::int64_t begin = std::min(row_, p_.pad_begin[2]);
    const std::int64_t end = std::clamp(p_.input[2] + p_.pad_begin[2], begin, row_);
    for (std::int64_t y = 0; y < rows_in(rows); ++y, to += row_ * inputs_) {
      const std::int64_t iy = first_y + y;
      if (iy < 0 || iy >= p_.input[1]) {
        fill_zero(to, row_ * inputs_);
        continue;
      }
      fill_zero(to, begin * inputs_);
      const T* const from = image.at + iy * p_.input[2] * image.step;
      if (image.step == inputs_)
        copy_strided(to + begin * inputs_, from, 1, (end - begin) * inputs_);
      else
        for (std::int64_t x = begin; x < end; ++x) {
          const T* const pixel = from + (x - begin) * image.step;
          __builtin_prefetch(pixel + coming);
          copy_strided(to + x * inputs_, pixel, 1, inputs_);
        }
      fill_zero(to + end * inputs_, (row_ - end) * inputs_);
    }
  }

  // One GEMM for each group: a task is some pixels of one group, whose weights are small.
  template <class Epilogue>
  void multiply_groups(thread_pool& pool, const gemm_problem<T>& g, Epilogue&& epilogue) const {
    const std::int64_t wanted = pool.size() == 1 ? 1 : ceil_div(4 * static_cast<std::int64_t>(pool.size()), p_.groups);
    const std::int64_t each = std::clamp<std::int64_t>(ceil_div(g.m, wanted), 24, 192), chunks = ceil_div(g.m, each);
    const std::int64_t block = depth_block<T>(depth_), group_weights = packed_b_size<T>(depth_, outputs_);
    const T* const end = g.b + p_.groups * group_weights;
    pool.parallel_for(chunks * p_.groups, [&](std::int64_t task, unsigned) {
      const std::int64_t group = task % p_.groups, row0 = task / p_.groups * each;
      const std::int64_t rows = std::min(each, g.m - row0);
      const T* const weights = g.b + group * group_weights;
      for (std::int64_t col = 0; col < outputs_; col += register_tile<T>::width) {
        const std::int64_t width = panel_width<T>(col, outputs_);
        const std::int64_t cols = std::min<std::int64_t>(register_tile<T>::width, outputs_ - col);
        T* const c = g.c + row0 * g.c_row + group * outputs_ + col;
        std::int64_t k = 0;
        do {
          const std::int64_t depth = std::min(block, depth_ - k);
          const panel_epilogue<T, std::remove_reference_t<Epilogue>> of_panel{
              epilogue, k + depth >= depth_, row0, group * outputs_ + col, cols, c, g.c_row};
          const T* const panel = weights + col * depth_ + k * width;
          // The adjacent block is next, within a group and where a worker continues with the next group.
          const T* const following = panel + depth * width;
          const coming_block<T> coming{following == end ? nullptr : following, width, depth, width};
          multiply_panel(depth, g.a + row0 * g.a_row + group * inputs_ + k, g.a_row, rows, linear_step{1}, panel, width,
                         c, g.c_row, static_cast<int>(cols), k != 0, coming, of_panel);
          k += depth;
        } while (k < depth_);
      }
    });
  }

  // All pixels of a strip for a group of one vector of output channels; `followed`: another group's weights are next.
  template <class Epilogue>
  void run_narrow(const strip_source& from, const T* weights, bool followed, std::int64_t rows, T* out,
                  std::ptrdiff_t out_step, std::int64_t row0, std::int64_t group, Epilogue&& epilogue) const {
    const window_walk walk{p_.kernel[1],
                           p_.kernel[2],
                           inputs_,
                           p_.dilation[1] * row_ * from.step,
                           p_.dilation[2] * from.step,
                           p_.stride[1] * row_ * from.step,
                           p_.stride[2] * from.step};
    const std::int64_t high = window_tiles<T>::rows(width_), tiles = ceil_div(width_, window_tiles<T>::most);
    const coming_block<T> coming{followed ? weights + packed_b_size<T>(depth_, outputs_) : nullptr, native_lanes<T>,
                                 depth_, native_lanes<T>};
    block_shares<T> shares(coming, ceil_div(rows, high) * tiles, depth_);
    const int cols = static_cast<int>(outputs_);
    const auto tile = [&](std::int64_t y, std::int64_t x, std::int64_t tall, int wide) {
      const std::int64_t first = y * width_ + x, count = tall * wide;
      T* const c = out + first * out_step;
      const panel_epilogue<T, std::remove_reference_t<Epilogue>> of_panel{
          epilogue, true, row0 + first, group * outputs_, outputs_, c, out_step};
      tile_epilogue<T> inside{.activates = true};
      const bool applied = of_panel.in_registers(0, count, inside);
      window_tiles<T>::find(static_cast<int>(tall), wide)(
          walk, from.at + y * walk.pixel_row + x * walk.pixel_col, weights, c, out_step, cols,
          shares.empty() ? fetch_ahead{reinterpret_cast<const char*>(c), 0} : shares.next(),
          applied ? &inside : nullptr);
      if (!applied) of_panel(0, count);
    };
    for (std::int64_t y = 0; y < rows; y += high) {
      const std::int64_t tall = std::min(high, rows - y);
      even_blocks(width_, window_tiles<T>::most).each([&](std::int64_t x, int wide) { tile(y, x, tall, wide); });
    }
  }

  // All pixels of a strip for one panel of output channels; `cold`: nothing has prefetched its weights.
  template <class Epilogue>
  void run_panel(const strip_source& from, const T* weights, std::int64_t col, bool cold, std::int64_t pixels, T* out,
                 std::ptrdiff_t out_step, std::int64_t row0, std::int64_t channel0, Epilogue&& epilogue) const {
    const std::int64_t width = panel_width<T>(col, outputs_);
    const int cols = static_cast<int>(std::min<std::int64_t>(register_tile<T>::width, outputs_ - col));
    const int vectors = static_cast<int>(width / native_lanes<T>);
    const int most = register_tile<T>::rows_of(vectors);
    const T* const panel = weights + col * depth_;
    const std::int64_t all = packed_b_size<T>(depth_, outputs_);
    const std::int64_t block = depth_block<T>(depth_);
    const std::int64_t tiles = ceil_div(pixels, most);
    depth_blocks blocks(depth_, block, cold && depth_blocks::grows<T>(pixels));
    bool last;
    do {
      const std::int64_t k = blocks.begin(), depth = blocks.rows();
      last = blocks.last();
      // Prefetches the weights of the next block, or of the group's first one, with which the next strip begins.
      const std::int64_t next = col * depth_ + (k + depth) * width;
      const coming_block<T> coming{weights + (next < all ? next : 0), width,
                                   last ? std::min(block, depth_) : blocks.next_rows(), width};
      block_shares<T> shares(coming, tiles, depth);
      std::int64_t y = 0, x = 0;
      even_blocks(pixels, most).each([&](std::int64_t first, int count) {
        const T* row[2 * register_tile<T>::rows];
        for (int r = 0; r < count; ++r) {
          row[r] = from.at + (y * p_.stride[1] * row_ + x * p_.stride[2]) * from.step;
          if (++x == width_) x = 0, ++y;
        }
        T* const c = out + first * out_step + col;
        const panel_epilogue<T, std::remove_reference_t<Epilogue>> of_panel{
            epilogue, last, row0 + first, channel0 + col, std::int64_t{cols}, c, out_step};
        tile_epilogue<T> inside{.activates = true};
        const bool applied = of_panel.in_registers(0, count, inside);
        if (k == 0) fetch_rows(c, out_step, count, cols, applied ? &inside : nullptr);
        find_tile<T, table_step>(count, vectors)(depth, row, table_step{offsets_.data() + k}, panel + k * width, width,
                                                 c, out_step, cols, k != 0, shares.next(), applied ? &inside : nullptr);
        if (!applied) of_panel(0, count);
      });
      blocks.advance();
    } while (!last);
  }

  conv_problem p_;
  std::int64_t height_, width_, inputs_, outputs_, depth_;
  windows_in_parts<T> parts_;  // where windows reach far outside
  bool copied_ = false;        // the padded strip is copied; otherwise the input is read in place
  bool plain_ = false;         // one GEMM over all pixels
  bool narrow_ = false;        // a group has one vector of output channels
  bool groups_first_ = false;  // tasks of a strip's groups are adjacent, otherwise those of a group's strips
  std::int64_t row_ = 0;       // row stride, in pixels, of what the tiles read
  std::int64_t strip_rows_ = 1, strips_ = 1, panels_per_task_ = 1, cuts_ = 1;
  std::vector<std::int32_t> offsets_;
};

}  // namespace kiln::kernels
