#pragma once

#include "kiln/kernel/convolution_problem.hpp"
#include "kiln/kernel/gemm.hpp"
#include "kiln/kernel/image_layout.hpp"
#include "kiln/kernel/winograd_transform_5.hpp"

namespace kiln::kernels {

/// Convolution by square kernels at stride 1, channels last, by minimal filtering F(Outputs x Outputs, Taps x Taps)
/// (Lavin and Gray, 2016): input tiles are transformed, multiplied by transformed weights as (Outputs + Taps - 1)^2
/// products, and the sums transformed back; groups one after the other. A block of tiles stays in one worker's
/// second-level cache from end to end; where there are too few blocks, or their weights would be read from memory too
/// often, all tiles are transformed first, and workers share the output channels.
template <class T, int Outputs, int Taps = 3>
class winograd_convolution {
  using transform = winograd_transform<Outputs, Taps>;
  using V = native_vec<T>;
  static constexpr int lanes = native_lanes<T>;
  static constexpr int side = transform::inputs;
  static constexpr std::int64_t points = side * side;
  static constexpr std::int64_t panel = register_tile<T>::width;

 public:
  static constexpr bool serves(const conv_problem& p) {
    return p.input[0] == 1 && p.kernel == conv_problem::extents{1, Taps, Taps} &&
           p.stride == conv_problem::extents{1, 1, 1} && p.dilation == conv_problem::extents{1, 1, 1} &&
           p.pad_begin[0] == 0 && p.pad_end[0] == 0;
  }

  winograd_convolution(const conv_problem& problem, unsigned workers)
      : p_(problem),
        height_(std::max<std::int64_t>(1, problem.output(1))),
        width_(std::max<std::int64_t>(1, problem.output(2))),
        tile_rows_(ceil_div(height_, Outputs)),
        tile_cols_(ceil_div(width_, Outputs)),
        tiles_(std::max<std::int64_t>(1, problem.batch) * tile_rows_ * tile_cols_),
        outputs_(problem.group_outputs()),
        inputs_(round_up(problem.group_inputs(), lanes)) {
    constexpr std::int64_t block_bytes = 640 * 1024;
    constexpr std::int64_t least = 4 * register_tile<T>::rows, most = 10 * register_tile<T>::rows;
    const auto many = static_cast<std::int64_t>(workers);
    const std::int64_t fitting = block_bytes / (points * static_cast<std::int64_t>(sizeof(T)) * (inputs_ + panel));
    std::int64_t blocks = ceil_div(tiles_, std::clamp(fitting, least, most));
    const std::int64_t panels = ceil_div(outputs_, panel);
    if (blocks < 8 * many) blocks = round_up(blocks, many);
    const std::int64_t shared_blocks = ceil_div(tiles_, most);
    // Each block reads all weights; blocks that are transformed first are larger, but each panel reads all of them.
    const std::int64_t weights = inputs_ * outputs_, transformed = tiles_ * inputs_;
    const std::int64_t streamed = shared_blocks * weights + (1 + panels) * transformed;
    alone_ = workers == 1 || (tiles_ >= many * 20 && (panels < many || blocks * weights < 2 * streamed));
    if (!alone_) {
      blocks = shared_blocks;
      cuts_ = panels;
    }
    block_ = ceil_div(tiles_, blocks);
    blocks_ = ceil_div(tiles_, block_);
    panels_per_task_ = ceil_div(panels, cuts_);
  }

  static std::int64_t weights_size(const conv_problem& p) { return p.groups * group_size(p); }
  /// Transforms weights [outputs, inputs / groups, Taps, Taps] into panels of each group's output channels, each of
  /// side
  /// * side matrices [inputs, panel]. Input channels are padded with zeros to whole vectors.
  static void pack_weights(thread_pool& pool, const conv_problem& p, T* to, const T* weights) {
    const std::int64_t inputs = p.group_inputs(), outputs = p.group_outputs(), depth = round_up(inputs, lanes);
    constexpr std::int64_t some = 16, taps = Taps * Taps;  // input channels at a time
    const std::int64_t chunks = ceil_div(depth, some), vectors = ceil_div(outputs, lanes);
    pool.parallel_for(p.groups * vectors * chunks, [&](std::int64_t task, unsigned) {
      const std::int64_t group = task / chunks / vectors, first = task / chunks % vectors * lanes;
      const std::int64_t col = first / panel * panel, c0 = task % chunks * some;
      const std::int64_t width = panel_width<T>(col, outputs);
      const std::int64_t count = std::clamp<std::int64_t>(inputs - c0, 0, some);
      // a lane is an output channel
      alignas(64) T turned[some * taps * lanes] = {};
      if (count > 0)
        transpose_block(weights + ((group * outputs + first) * inputs + c0) * taps, inputs * taps, turned, lanes,
                        std::min<std::int64_t>(lanes, outputs - first), count * taps);
      T* const at = to + group * group_size(p) + points * col * depth + first - col;
      for (std::int64_t c = 0; c < std::min(some, depth - c0); ++c) {
        const T* const w = turned + c * taps * lanes;
        V half[side][Taps];
        for (int x = 0; x < Taps; ++x) {
          V column[Taps];
          for (int y = 0; y < Taps; ++y) column[y] = load<V>(w + (y * Taps + x) * lanes);
          for (int i = 0; i < side; ++i) half[i][x] = weighed(i, column);
        }
        for (int i = 0; i < side; ++i)
          for (int j = 0; j < side; ++j) store(at + ((i * side + j) * depth + c0 + c) * width, weighed(j, half[i]));
      }
    });
  }

  /// Elements of scratch for `workers` workers.
  std::int64_t scratch_size(unsigned workers) const {
    return shared_size() + static_cast<std::int64_t>(workers) * own_size();
  }

  /// As `image_convolution::run`; an epilogue's tile is a run of pixels within one row.
  template <class Epilogue>
  void run(thread_pool& pool, const T* input, std::ptrdiff_t in_step, const T* weights, T* output,
           std::ptrdiff_t out_step, T* scratch, Epilogue&& epilogue) const {
    for (std::int64_t group = 0; group < p_.groups; ++group)
      run_group(pool, input + group * p_.group_inputs(), in_step, weights + group * group_size(p_), output, out_step,
                group * outputs_, scratch, epilogue);
  }

 private:
  // Elements that the weights of a group take.
  static std::int64_t group_size(const conv_problem& p) {
    return points * packed_b_size<T>(round_up(p.group_inputs(), lanes), p.group_outputs());
  }

  // Row i of the transform of some weights.
  KILN_FN static V weighed(int i, const V (&w)[Taps]) {
    const auto& row = transform::weights[static_cast<std::size_t>(i)];
    const auto times = [&](int k) { return broadcast<V>(static_cast<T>(row[static_cast<std::size_t>(k)])) * w[k]; };
    V sum = times(0);
    for (int k = 1; k < Taps; ++k) sum += times(k);
    return sum;
  }

  // `channel0` is the group's first output channel.
  template <class Epilogue>
  void run_group(thread_pool& pool, const T* input, std::ptrdiff_t in_step, const T* weights, T* output,
                 std::ptrdiff_t out_step, std::int64_t channel0, T* scratch, Epilogue&& epilogue) const {
    const auto transform_block = [&](std::int64_t block, T* to) {
      const std::int64_t first = block * block_, count = std::min(block_, tiles_ - first);
      for (std::int64_t i = 0; i < count; ++i) transform_tile(input, in_step, first + i, to + i * inputs_);
    };
    if (!alone_) {
      // All tiles first, a few at a time.
      constexpr std::int64_t few = 2;
      pool.parallel_for(ceil_div(tiles_, few), [&](std::int64_t task, unsigned) {
        for (std::int64_t t = task * few; t < std::min(tiles_, (task + 1) * few); ++t)
          transform_tile(input, in_step, t, scratch + t / block_ * block_size() + t % block_ * inputs_);
      });
    }
    T* const own = scratch + shared_size();
    pool.parallel_for(blocks_ * cuts_, [&](std::int64_t task, unsigned worker) {
      // Blocks run fastest: workers that share weights read them at the same time.
      const std::int64_t block = task % blocks_, cut = task / blocks_;
      T* const local = own + worker * own_size();
      T* const sums = alone_ ? local + block_size() : local;
      const T* left = scratch + block * block_size();
      if (alone_) {
        transform_block(block, local);
        left = local;
      }
      const std::int64_t begin = cut * panels_per_task_ * panel;
      const std::int64_t end = std::min(outputs_, begin + panels_per_task_ * panel);
      for (std::int64_t col = begin; col < end; col += panel)
        run_panel(left, weights, col, sums, block, output, out_step, channel0, epilogue);
    });
  }

  std::int64_t block_size() const { return points * block_ * inputs_; }
  std::int64_t shared_size() const { return alone_ ? 0 : blocks_ * block_size(); }
  std::int64_t own_size() const { return points * block_ * panel + (alone_ ? block_size() : 0); }

  struct tile_place {
    std::int64_t image, y, x;
  };
  tile_place place(std::int64_t tile) const {
    return {tile / (tile_rows_ * tile_cols_), tile / tile_cols_ % tile_rows_ * Outputs, tile % tile_cols_ * Outputs};
  }

  void transform_tile(const T* input, std::ptrdiff_t step, std::int64_t tile, T* to) const {
    const tile_place at = place(tile);
    const std::int64_t y0 = at.y - p_.pad_begin[1], x0 = at.x - p_.pad_begin[2];
    const T* const image = input + at.image * p_.input_pixels() * step;
    // Where each element of the tile lies, and what it counts for: outside elements are read at an inside one.
    std::ptrdiff_t row[side], col[side];
    bool row_inside[side], col_inside[side];
    bool all = true;
    for (int i = 0; i < side; ++i) {
      row_inside[i] = y0 + i >= 0 && y0 + i < p_.input[1];
      col_inside[i] = x0 + i >= 0 && x0 + i < p_.input[2];
      row[i] = row_inside[i] ? (y0 + i) * p_.input[2] * step : 0;
      col[i] = col_inside[i] ? (x0 + i) * step : 0;
      all = all && row_inside[i] && col_inside[i];
    }
    const std::ptrdiff_t point_step = block_ * inputs_;
    for (std::int64_t c = 0; c < p_.group_inputs(); c += lanes) {
      const int count = static_cast<int>(std::min<std::int64_t>(lanes, p_.group_inputs() - c));
      V half[side][side];
      for (int j = 0; j < side; ++j) {
        V d[side], t[side];
        const T* const from = image + col[j] + c;
        if (all && count == lanes) {
#pragma GCC unroll 6
          for (int i = 0; i < side; ++i) d[i] = load<V>(from + row[i]);
        } else {
          for (int i = 0; i < side; ++i) d[i] = row_inside[i] && col_inside[j] ? load_n<V>(from + row[i], count) : V{};
        }
        transform::input(d, t);
#pragma GCC unroll 6
        for (int i = 0; i < side; ++i) half[i][j] = t[i];
      }
      T* out = to + c;
      for (int i = 0; i < side; ++i) {
        V t[side];
        transform::input(half[i], t);
#pragma GCC unroll 6
        for (int j = 0; j < side; ++j, out += point_step) store(out, t[j]);
      }
    }
  }

  template <class Epilogue>
  void run_panel(const T* left, const T* weights, std::int64_t col, T* sums, std::int64_t block, T* output,
                 std::ptrdiff_t out_step, std::int64_t channel0, Epilogue&& epilogue) const {
    const std::int64_t first = block * block_, count = std::min(block_, tiles_ - first);
    const std::int64_t width = panel_width<T>(col, outputs_);
    const std::int64_t cols = std::min(panel, outputs_ - col), channel = channel0 + col;
    const T* b = weights + points * col * inputs_;
    const T* const end = weights + group_size(p_);
    for (std::int64_t e = 0; e < points; ++e, b += inputs_ * width) {
      const T* const next = b + inputs_ * width < end ? b + inputs_ * width : weights;
      multiply_panel<T>(inputs_, left + e * block_ * inputs_, inputs_, count, linear_step{1}, b, width,
                        sums + e * block_ * panel, panel, static_cast<int>(width), false,
                        coming_block<T>{next, width, inputs_, width}, [](std::int64_t, int) {});
    }
    // Back, a run of tiles of one row at a time.
    for (std::int64_t i = 0; i < count;) {
      const tile_place at = place(first + i);
      const std::int64_t run = std::min(count - i, tile_cols_ - at.x / Outputs);
      const std::int64_t pixels = std::min(run * Outputs, width_ - at.x),
                         rows = std::min<std::int64_t>(Outputs, height_ - at.y);
      const std::int64_t row0 = (at.image * height_ + at.y) * width_ + at.x;
      T* const out = output + row0 * out_step + channel;
      tile_finish<T> inside[Outputs];
      bool finished = true;
      for (std::int64_t y = 0; y < rows; ++y)
        finished = finished && finishes_in_registers(epilogue, row0 + y * width_, pixels, channel, cols, inside[y]) &&
                   !inside[y].row_bias;
      for (std::int64_t t = 0; t < run; ++t)
        untransform_tile(sums + (i + t) * panel, out + t * Outputs * out_step, out_step, rows,
                         std::min<std::int64_t>(Outputs, pixels - t * Outputs), cols, finished ? inside : nullptr,
                         t * Outputs);
      for (std::int64_t y = 0; y < rows && !finished; ++y)
        epilogue(row0 + y * width_, pixels, channel, cols, out + y * width_ * out_step, out_step);
      i += run;
    }
  }

  // `finish`, where it is not null, says of each row what becomes of its sums; `pixel` is the tile's first one there.
  void untransform_tile(const T* sums, T* out, std::ptrdiff_t out_step, std::int64_t rows, std::int64_t pixels,
                        std::int64_t channels, const tile_finish<T>* finish, std::int64_t pixel) const {
    const std::ptrdiff_t point_step = block_ * panel;
    for (std::int64_t c = 0; c < channels; c += lanes) {
      const int count = static_cast<int>(std::min<std::int64_t>(lanes, channels - c));
      const auto read = [&](const T* from) { return count == lanes ? load<V>(from) : load_n<V>(from, count); };
      V half[Outputs][side];
      for (int j = 0; j < side; ++j) {
        V m[side], y[Outputs];
#pragma GCC unroll 6
        for (int i = 0; i < side; ++i) m[i] = load<V>(sums + c + (i * side + j) * point_step);
        transform::output(m, y);
#pragma GCC unroll 4
        for (int i = 0; i < Outputs; ++i) half[i][j] = y[i];
      }
      V bias{};
      if (finish) {
        bias = broadcast<V>(finish->offset);
        for (const T* more : finish->col_bias)
          if (more) bias += read(more + c);
      }
      for (std::int64_t i = 0; i < rows; ++i) {
        V y[Outputs];
        transform::output(half[i], y);
        if (finish) {
#pragma GCC unroll 4
          for (int j = 0; j < Outputs; ++j) y[j] += bias;
          if (const T* const addend = finish[i].addend)
            for (std::int64_t j = 0; j < pixels; ++j) y[j] += read(addend + (pixel + j) * finish[i].addend_row + c);
          if (finish->clamps) {
            const V low = broadcast<V>(finish->low), high = broadcast<V>(finish->high);
#pragma GCC unroll 4
            for (int j = 0; j < Outputs; ++j)
              y[j] = elementary::native_ops<V>::lesser(high, elementary::native_ops<V>::greater(low, y[j]));
          }
        }
        T* const to = out + i * width_ * out_step + c;
        if (pixels == Outputs && count == lanes) {
#pragma GCC unroll 4
          for (int j = 0; j < Outputs; ++j) store(to + j * out_step, y[j]);
        } else {
          for (std::int64_t j = 0; j < pixels; ++j) store_n(to + j * out_step, y[j], count);
        }
      }
    }
  }

  conv_problem p_;
  std::int64_t height_, width_, tile_rows_, tile_cols_, tiles_;
  std::int64_t outputs_, inputs_;  // channels of a group; inputs are padded to whole vectors
  bool alone_ = true;              // a worker transforms the block that it multiplies
  std::int64_t block_ = 1, blocks_ = 1, cuts_ = 1, panels_per_task_ = 1;
};

}  // namespace kiln::kernels
