#pragma once

#include "kiln/kernel/conv/weight_lines.hpp"
#include "kiln/kernel/conv/winograd/tiles.hpp"

namespace kiln::kernels {

/// Convolution by Winograd F(Outputs x Outputs, Taps x Taps) (Lavin and Gray, 2016): the input transform of tiles,
/// (Outputs + Taps - 1)^2 GEMMs with transformed weights at stride 1, and the output transform of the sums; groups one
/// after the other. One worker takes a block of tiles through all three, in its L2 unless channels are many; where
/// there are too few blocks, or their weights would be read from memory too often, all tiles are transformed first, and
/// workers share the output channels.
///
/// At stride 2 a GEMM adds up several terms, each of all input channels: its left operand has them side by side, and
/// its weights one below the other.
template <class T, int Outputs, int Taps = 3, int Stride = 1> class winograd_convolution {
  using transform = winograd_transform<Outputs, Taps, Stride>;
  using V = native_vec<T>;
  static constexpr int lanes = native_lanes<T>;
  static constexpr int side = transform::inputs;
  static constexpr std::int64_t panel = register_tile<T>::width;

 public:
  static constexpr int tile_side = Outputs, kernel_side = Taps, stride = Stride;
  using terms = tile_terms<transform>;

  static constexpr bool serves(const conv_problem& p) {
    return p.input[0] == 1 && p.kernel == conv_problem::extents{1, Taps, Taps} &&
           p.stride == conv_problem::extents{1, Stride, Stride} && p.dilation == conv_problem::extents{1, 1, 1} &&
           p.pad_begin[0] == 0 && p.pad_end[0] == 0;
  }

  winograd_convolution(const conv_problem& problem, unsigned workers, const image_layout& in, const image_layout& out)
      : p_(problem),
        grid_(problem),
        input_(problem, in),
        output_(problem, out),
        nchw_(!in.nhwc),
        outputs_(problem.group_outputs()),
        inputs_(round_up(problem.group_inputs(), lanes)) {
    constexpr std::int64_t block_bytes = 640 * 1024;
    constexpr std::int64_t least = 4 * register_tile<T>::rows, most = 10 * register_tile<T>::rows;
    const auto many = static_cast<std::int64_t>(workers);
    const std::int64_t tile_bytes =
        static_cast<std::int64_t>(sizeof(T)) * (terms::all * inputs_ + terms::products * panel);
    const std::int64_t fitting = std::clamp(block_bytes / tile_bytes, least, most);
    // Few blocks are shared evenly by the workers, and rather large: each reads all weights.
    std::int64_t blocks = ceil_div(grid_.tiles, fitting);
    if (blocks < 8 * many) blocks = many * std::max<std::int64_t>(1, (grid_.tiles / many + fitting / 2) / fitting);
    const std::int64_t panels = ceil_div(outputs_, panel);
    const std::int64_t shared_blocks = ceil_div(grid_.tiles, most);
    // Tiles that are transformed first form larger blocks, but each panel reads all of them, and workers wait for each
    // other (which costs the 4 % below).
    const std::int64_t weights = inputs_ * outputs_, transformed = grid_.tiles * inputs_;
    const std::int64_t streamed = shared_blocks * weights + (1 + panels) * transformed;
    alone_ = workers == 1 || (panels < many && grid_.tiles >= many * register_tile<T>::rows) ||
             (grid_.tiles >= many * 20 && 25 * blocks * weights < 26 * streamed);
    if (!alone_) {
      blocks = shared_blocks;
      cuts_ = panels;
    }
    block_ = ceil_div(grid_.tiles, blocks);
    blocks_ = ceil_div(grid_.tiles, block_);
    panels_per_task_ = ceil_div(panels, cuts_);
  }

  static std::int64_t weights_size(const conv_problem& p) { return p.groups * group_size(p); }
  /// Transforms weights [outputs, inputs / groups, Taps, Taps], at any address, into panels of each group's output
  /// channels: one matrix [inputs, panel] for each term. Input channels are padded with zeros to whole vectors.
  static void pack_weights(thread_pool& pool, const conv_problem& p, T* to, const std::byte* weights) {
    const std::int64_t inputs = p.group_inputs(), outputs = p.group_outputs(), depth = round_up(inputs, lanes);
    constexpr std::int64_t taps = Taps * Taps, some = std::max(1, 128 / (Taps * Taps));  // input channels at a time
    constexpr std::int64_t of_lanes = some * taps * lanes, most = panel / lanes * of_lanes;
    constexpr auto each = static_cast<std::ptrdiff_t>(sizeof(T));
    const std::int64_t chunks = ceil_div(depth, some), panels = ceil_div(outputs, panel);
    pool.parallel_for(p.groups * panels * chunks, [&](std::int64_t task, unsigned) {
      const std::int64_t group = task / chunks / panels, col = task / chunks % panels * panel;
      const std::int64_t c0 = task % chunks * some, width = panel_width<T>(col, outputs);
      const std::int64_t count = std::clamp<std::int64_t>(inputs - c0, 0, some);
      // a lane is an output channel
      alignas(64) T transposed[most] = {};
      for (std::int64_t j = 0; j < width && count > 0; j += lanes)
        lines_to_lanes<some * taps>(weights + ((group * outputs + col + j) * inputs + c0) * taps * each, inputs * taps,
                                    std::min<std::int64_t>(lanes, outputs - col - j), count * taps,
                                    transposed + j / lanes * of_lanes);
      T* const at = to + group * group_size(p) + terms::all * col * depth;
      // All vectors of a row of the panel follow each other: whole rows leave the cache, whose sets the terms' matrices
      // may share.
      for (std::int64_t c = 0; c < std::min(some, depth - c0); ++c)
        for (std::int64_t j = 0; j < width; j += lanes) {
          const T* const w = transposed + j / lanes * of_lanes + c * taps * lanes;
          V half[side][Taps];
          for (int x = 0; x < Taps; ++x) {
            V column[Taps];
            for (int y = 0; y < Taps; ++y) column[y] = load<V>(w + (y * Taps + x) * lanes);
            for (int i = 0; i < side; ++i) half[i][x] = weight_term(i, column);
          }
          for (int i = 0; i < side; ++i)
            for (int k = 0; k < side; ++k)
              store(at + (terms::place_of(i, k) * depth + c0 + c) * width + j, weight_term(k, half[i]));
        }
    });
  }

  /// Elements of scratch for `workers` workers.
  std::int64_t scratch_size(unsigned workers) const {
    return shared_size() + static_cast<std::int64_t>(workers) * own_size();
  }

  /// As `convolution::run`; an epilogue's tile is a run of pixels.
  template <class Epilogue>
  void run(thread_pool& pool, const T* input, const T* weights, T* output, T* scratch, Epilogue&& epilogue) const {
    const std::int64_t inputs = p_.group_inputs() * (nchw_ ? p_.input_pixels() : 1);
    for (std::int64_t group = 0; group < p_.groups; ++group)
      run_group(pool, input + group * inputs, weights + group * group_size(p_), output, group * outputs_, scratch,
                epilogue);
  }

 private:
  // Elements of a group's transformed weights.
  static std::int64_t group_size(const conv_problem& p) {
    return terms::all * packed_b_size<T>(round_up(p.group_inputs(), lanes), p.group_outputs());
  }

  // Row i of the weight transform.
  KILN_FN static V weight_term(int i, const V (&w)[Taps]) {
    const auto& row = transform::weights[static_cast<std::size_t>(i)];
    const auto times = [&](int k) { return broadcast<V>(static_cast<T>(row[static_cast<std::size_t>(k)])) * w[k]; };
    V sum = times(0);
    for (int k = 1; k < Taps; ++k) sum += times(k);
    return sum;
  }

  // `channel0` is the group's first output channel.
  template <class Epilogue>
  void run_group(thread_pool& pool, const T* input, const T* weights, T* output, std::int64_t channel0, T* scratch,
                 Epilogue&& epilogue) const {
    T* const own = scratch + shared_size();
    const auto images = [&](unsigned worker) { return own + worker * own_size(); };
    if (!alone_) {
      // Transforms all tiles first: a task is a few tiles (NHWC) or some channels of a row of tiles (NCHW).
      const auto to = [&](std::int64_t tile) {
        return scratch + tile / block_ * block_size() + tile % block_ * tile_step();
      };
      const std::int64_t few = nchw_ ? grid_.cols : 2, some = nchw_ ? 2 * lanes : std::max<std::int64_t>(1, inputs_);
      const std::int64_t parts = ceil_div(inputs_, some);
      pool.parallel_for(ceil_div(grid_.tiles, few) * parts, [&](std::int64_t task, unsigned worker) {
        const std::int64_t first = task / parts * few, channel = task % parts * some;
        grid_.for_rows(first, std::min(few, grid_.tiles - first), [&](std::int64_t tile, std::int64_t count) {
          input_.run(input, tile, count, channel, std::min(p_.group_inputs(), channel + some), to, term_step(),
                     images(worker));
        });
      });
    }
    pool.parallel_for(blocks_ * cuts_, [&](std::int64_t task, unsigned worker) {
      // Tasks run over the blocks first, so that workers read the same weights at the same time.
      const std::int64_t block = task % blocks_, cut = task / blocks_;
      T* const transposed = images(worker);
      T* const local = transposed + image_size();
      T* const sums = alone_ ? local + block_size() : local;
      const T* left = scratch + block * block_size();
      if (alone_) {
        const std::int64_t first = block * block_;
        grid_.for_rows(first, std::min(block_, grid_.tiles - first), [&](std::int64_t tile, std::int64_t count) {
          input_.run(
              input, tile, count, 0, p_.group_inputs(),
              [&](std::int64_t i) { return local + (i - first) * tile_step(); }, term_step(), transposed);
        });
        left = local;
      }
      const std::int64_t begin = cut * panels_per_task_ * panel;
      const std::int64_t end = std::min(outputs_, begin + panels_per_task_ * panel);
      for (std::int64_t col = begin; col < end; col += panel)
        run_panel(left, weights, col, sums, block, output, channel0, transposed, epilogue);
    });
  }

  // Each term is a matrix of its own, or the terms of a GEMM are side by side: with a power of two as row stride, rows
  // would then share few sets of the cache.
  std::ptrdiff_t tile_step() const { return terms::one_each ? inputs_ : terms::all * inputs_ + lanes; }
  std::ptrdiff_t term_step() const { return terms::one_each ? block_ * inputs_ : inputs_; }
  std::int64_t block_size() const { return terms::one_each ? terms::all * term_step() : block_ * tile_step(); }
  std::int64_t shared_size() const { return alone_ ? 0 : blocks_ * block_size(); }
  std::int64_t image_size() const { return std::max(input_.scratch_size(), output_.scratch_size()); }
  std::int64_t own_size() const {
    return image_size() + terms::products * block_ * panel + (alone_ ? block_size() : 0);
  }

  template <class Epilogue>
  void run_panel(const T* left, const T* weights, std::int64_t col, T* sums, std::int64_t block, T* output,
                 std::int64_t channel0, T* scratch, Epilogue&& epilogue) const {
    const std::int64_t first = block * block_, count = std::min(block_, grid_.tiles - first);
    const std::int64_t width = panel_width<T>(col, outputs_);
    const std::int64_t cols = std::min(panel, outputs_ - col);
    multiply_points(left, weights + terms::all * col * inputs_, weights, count, static_cast<int>(width), sums);
    grid_.for_rows(first, count, [&](std::int64_t tile, std::int64_t run) {
      output_.run(sums + (tile - first) * panel, block_ * panel, panel, tile, run, channel0 + col, cols, output,
                  scratch, epilogue);
    });
  }

  // The GEMMs of all points with the panel at `b`.
  void multiply_points(const T* left, const T* b, const T* weights, std::int64_t count, int width, T* sums) const {
    const int vectors = width / lanes;
    const T* const end = weights + group_size(p_);
    const T* row[2 * register_tile<T>::rows];
    const auto place_rows = [&](const T* at, int rows) {
      for (int r = 0; r < rows; ++r) row[r] = at + r * tile_step();
    };
    // calls `body(point, its left operand, its depth)` and advances `b`
    const auto for_points = [&](auto&& body) {
      for (std::int64_t e = 0; e < terms::products; ++e) {
        const auto at = static_cast<std::size_t>(e);
        const std::int64_t depth = (terms::first[at + 1] - terms::first[at]) * inputs_;
        body(e, left + terms::first[at] * term_step(), depth);
        b += depth * width;
      }
    };
    if (count <= streamed_rows)
      return for_points([&](std::int64_t e, const T* at, std::int64_t depth) {
        place_rows(at, static_cast<int>(count));
        run_stream_tile<T>(static_cast<int>(count), vectors, depth, row, linear_step{1}, b, width,
                           sums + e * block_ * panel, panel, width, false, !p_.near_weights);
      });
    const even_blocks cut(count, register_tile<T>::rows_of(vectors));
    const std::ptrdiff_t step = ceil_div(width * static_cast<std::int64_t>(sizeof(T)), cut.blocks);
    const bool dense = step > 64;
    const tile_function<T, linear_step> tile[] = {
        find_tile<T, linear_step>(cut.least, vectors, dense),
        find_tile<T, linear_step>(cut.least + (cut.larger != 0), vectors, dense)};
    // Prefetches as far ahead as the deepest GEMM reads, so that the weights of the others are fetched once, too.
    const std::int64_t ahead = terms::most_of_product * inputs_ * width;
    for_points([&](std::int64_t e, const T* at, std::int64_t depth) {
      const T* const next = b + ahead < end ? b + ahead : weights;
      fetch_ahead fetch{reinterpret_cast<const char*>(next), step};
      cut.each([&](std::int64_t first, int rows) {
        place_rows(at + first * tile_step(), rows);
        tile[rows - cut.least](depth, row, linear_step{1}, b, width, sums + (e * block_ + first) * panel, panel, width,
                               false, fetch, nullptr);
        fetch.at += depth * step;
      });
    });
  }

  conv_problem p_;
  tile_grid<Outputs> grid_;
  winograd_input<T, Outputs, Taps, Stride> input_;
  winograd_output<T, typename terms::back> output_;
  bool nchw_;                      // the input's layout
  std::int64_t outputs_, inputs_;  // channels of a group; inputs are padded to whole vectors
  bool alone_ = true;              // a worker transforms the block that it multiplies
  std::int64_t block_ = 1, blocks_ = 1, cuts_ = 1, panels_per_task_ = 1;
};

/// Calls `f` with the F(2x2) class for the kernel and stride of `p` as its template argument.
template <class T, class F> constexpr auto with_winograd_2x2(const conv_problem& p, F&& f) {
  if (p.stride[1] == 2)
    return p.kernel[1] == 3 ? f.template operator()<winograd_convolution<T, 2, 3, 2>>()
                            : f.template operator()<winograd_convolution<T, 2, 5, 2>>();
  return p.kernel[1] == 3 ? f.template operator()<winograd_convolution<T, 2>>()
                          : f.template operator()<winograd_convolution<T, 2, 5>>();
}

}  // namespace kiln::kernels
