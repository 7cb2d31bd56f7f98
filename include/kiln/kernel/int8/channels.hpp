#pragma once

#include "kiln/kernel/int8/tasks.hpp"
#include "kiln/kernel/int8/tile.hpp"
#include "kiln/kernel/simd/transpose_square.hpp"

namespace kiln::kernels {

/// Registers of a convolution of each channel alone. A vector holds adjacent channels of one tap, of one pixel or of
/// `share` neighboring ones; `depth` taps are interleaved, so that a lane of 32 bits holds one channel's.
template <class Machine> struct channel_lanes {
  using left = typename Machine::left;
  static constexpr int lanes = native_lanes<std::int32_t>, depth = Machine::depth;
  static constexpr int whole = native_lanes<left>;  ///< channels of a vector of one pixel
  static constexpr int blocks = native_bytes / 16;  ///< parts of a vector that interleaving keeps apart
  static constexpr int most_share = std::min(depth, blocks);
  static constexpr int narrow = whole / most_share;
  static constexpr int tile = (native_bytes == 64 ? 16 : 8) / depth;  ///< vectors of pixels of one tile

  static constexpr std::int64_t words(std::int64_t taps) { return ceil_div(taps, depth); }
  /// Pixels that share a vector where `rest` channels are left: as few as leave no lane idle.
  static constexpr int share(std::int64_t rest) {
    int n = 1;
    while (n < most_share && whole / n > rest) n *= 2;
    return n;
  }
};

/// Elements that the weights of `channels` channels of `taps` taps take: the sums of the taps by channel, then a block
/// of vectors for each of the channels that are computed together.
template <class Machine> std::int64_t packed_channels_size(std::int64_t taps, std::int64_t channels) {
  using l = channel_lanes<Machine>;
  std::int64_t blocks = 0;
  for (std::int64_t c = 0; c < channels; c += l::whole / l::share(channels - c)) ++blocks;
  return round_up(channels, l::lanes) + blocks * l::words(taps) * l::depth * l::lanes;
}

/// Packs weights [channels, taps].
template <class Machine>
void pack_channels(std::int32_t* to, const std::int8_t* from, std::int64_t taps, std::int64_t channels) {
  using l = channel_lanes<Machine>;
  std::fill_n(to, round_up(channels, l::lanes), 0);
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t t = 0; t < taps; ++t) to[c] += from[c * taps + t];
  to += round_up(channels, l::lanes);
  for (std::int64_t first = 0; first < channels;) {
    const int share = l::share(channels - first), of_pixel = l::blocks / share;
    for (std::int64_t w = 0; w < l::words(taps); ++w)
      for (int v = 0; v < l::depth; ++v)
        for (int i = 0; i < l::lanes; ++i, ++to) {
          const std::int64_t c = first + i / 4 % of_pixel * 4 * l::depth + 4 * v + i % 4;
          typename Machine::right lane[l::depth] = {};
          for (std::int64_t d = 0; d < l::depth && c < channels && w * l::depth + d < taps; ++d)
            lane[d] = from[c * taps + w * l::depth + d];
          __builtin_memcpy(to, lane, sizeof lane);
        }
    first += l::whole / share;
  }
}

/// Elements 0, 1, … of `a` and `b` in turn, of each 16 bytes the first or the second half.
template <bool High, is_vec V> KILN_FN V interleave_in_blocks(V a, V b) {
  return [&]<int... Lane>(std::integer_sequence<int, Lane...>) __attribute__((always_inline)) {
    constexpr int all = lanes<V>, n = 16 / sizeof(element_t<V>);
    return (V)__builtin_shufflevector(a, b, (Lane / n * n + (High ? n / 2 : 0) + Lane % n / 2 + Lane % 2 * all)...);
  }
  (std::make_integer_sequence<int, lanes<V>>{});
}

/// Taps of the same channels, a vector each, as lanes that hold one channel's taps: of every 16 bytes the first four
/// channels, the next four, and so on.
template <class V, int Depth> KILN_FN void interleave_taps(V (&tap)[Depth], native_vec<std::int32_t> (&to)[Depth]) {
  using lanes_of = native_vec<std::int32_t>;
  const V low = interleave_in_blocks<false>(tap[0], tap[1]), high = interleave_in_blocks<true>(tap[0], tap[1]);
  if constexpr (Depth == 2) {
    to[0] = (lanes_of)low, to[1] = (lanes_of)high;
  } else {
    using pairs = native_vec<std::int16_t>;
    const V low2 = interleave_in_blocks<false>(tap[2], tap[3]), high2 = interleave_in_blocks<true>(tap[2], tap[3]);
    to[0] = (lanes_of)interleave_in_blocks<false>((pairs)low, (pairs)low2);
    to[1] = (lanes_of)interleave_in_blocks<true>((pairs)low, (pairs)low2);
    to[2] = (lanes_of)interleave_in_blocks<false>((pairs)high, (pairs)high2);
    to[3] = (lanes_of)interleave_in_blocks<true>((pairs)high, (pairs)high2);
  }
}

/// The channels of interleaved sums in their order, those of the first pixel first.
template <int Depth> KILN_FN void sort_channels(native_vec<std::int32_t>* sum) {
  using V = native_vec<std::int32_t>;
  constexpr int blocks = native_bytes / 16;
  if constexpr (Depth == 4 && blocks == 4) {
    constexpr auto lanes_of = std::make_integer_sequence<int, 16>{};
    exchange_lanes<4>(sum[0], sum[1], lanes_of);
    exchange_lanes<4>(sum[2], sum[3], lanes_of);
    exchange_lanes<8>(sum[0], sum[2], lanes_of);
    exchange_lanes<8>(sum[1], sum[3], lanes_of);
  } else {
    // every result is of two vectors: block b of result r is the r * blocks + b-th of all, counted through the vectors
    V sorted[Depth];
    [&]<int... Result>(std::integer_sequence<int, Result...>) __attribute__((always_inline)) {
      const auto one = [&]<int R, int... Lane>(std::integral_constant<int, R>, std::integer_sequence<int, Lane...>)
          __attribute__((always_inline)) {
        constexpr int n = sizeof...(Lane), first = R * blocks % Depth;
        sorted[R] = __builtin_shufflevector(
            sum[first], sum[(first + 1) % Depth],
            ((R * blocks + Lane / 4) / Depth * 4 + Lane % 4 + ((R * blocks + Lane / 4) % Depth == first ? 0 : n))...);
      };
      (one(std::integral_constant<int, Result>{}, std::make_integer_sequence<int, native_lanes<std::int32_t>>{}), ...);
    }
    (std::make_integer_sequence<int, Depth>{});
    for (int r = 0; r < Depth; ++r) sum[r] = sorted[r];
  }
}

/// Channels at `offset` of `Share` pixels in one vector.
template <int Share, class T> KILN_FN native_vec<T> load_channels(const std::byte* const* row, std::ptrdiff_t offset) {
  const auto part = [&](int i) __attribute__((always_inline)) {
    return load<vec<T, native_lanes<T> / Share>>(reinterpret_cast<const T*>(row[i] + offset));
  };
  if constexpr (Share == 1)
    return part(0);
  else if constexpr (Share == 2)
    return join(part(0), part(1));
  else
    return join(join(part(0), part(1)), join(part(2), part(3)));
}

/// Gives `finish` some rows and columns of a tile in memory, vector by vector.
template <class Finish>
[[gnu::noinline]] void take_vectors(const native_vec<std::int32_t>* sums, int of_row, const Finish& finish,
                                    std::int64_t row0, int rows, std::int64_t col0, int cols) {
  constexpr int lanes = native_lanes<std::int32_t>;
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v * lanes < cols; ++v) {
      native_vec<std::int32_t> one[1][1] = {{sums[r * of_row + v]}};
      finish.template take<1, 1>(one, row0 + r, col0 + v * lanes, std::min(lanes, cols - v * lanes));
    }
}

/// The sums of `Tile` vectors of `Share` pixels each, whose rows of the problem are `rows` (fewer in the last vector),
/// for the channels of one block.
template <class Machine, int Tile, int Share, class Finish>
[[gnu::noinline]] void channels_tile(const integer_runs& taps, const std::byte* const* row, std::ptrdiff_t offset,
                                     const std::int32_t* weights, const std::int32_t* shift, const Finish& finish,
                                     std::int64_t row0, int rows, std::int64_t col0, int cols) {
  using l = channel_lanes<Machine>;
  using V = native_vec<std::int32_t>;
  using T = typename Machine::left;
  constexpr int depth = l::depth, of_pixel = depth / Share;
  V sum[Tile][depth] = {};
  for (std::int64_t t = 0; t < taps.count; t += depth) {
#pragma GCC unroll 16
    for (int p = 0; p < Tile; ++p) {
      native_vec<T> tap[depth];
      V left[depth];
#pragma GCC unroll 4
      for (int d = 0; d < depth; ++d) tap[d] = load_channels<Share, T>(row + p * Share, taps.at[t + d] + offset);
      interleave_taps(tap, left);
#pragma GCC unroll 4
      for (int v = 0; v < depth; ++v)
        sum[p][v] = Machine::add_products(sum[p][v], left[v], load<V>(weights + v * l::lanes));
    }
    weights += depth * l::lanes;
  }
  V sorted[Tile * Share][of_pixel];
#pragma GCC unroll 16
  for (int p = 0; p < Tile; ++p) {
    sort_channels<depth>(sum[p]);
#pragma GCC unroll 4
    for (int v = 0; v < depth; ++v)
      sorted[p * Share + v / of_pixel][v % of_pixel] =
          sum[p][v] + (shift && v % of_pixel * l::lanes < cols ? load<V>(shift + v % of_pixel * l::lanes) : V{});
  }
  if (rows == Tile * Share && cols > (of_pixel - 1) * l::lanes)
    return finish.template take<Tile * Share, of_pixel>(sorted, row0, col0, cols);
  V stored[Tile * Share][of_pixel];  // an index that only a run knows would keep all sums in memory
#pragma GCC unroll 16
  for (int r = 0; r < Tile * Share; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < of_pixel; ++v) stored[r][v] = sorted[r][v];
  take_vectors(&stored[0][0], of_pixel, finish, row0, rows, col0, cols);
}

/// The channels of a block, over all rows of a task.
template <class Machine, int Share, class Finish>
void channels_block(const integer_problem& p, const std::byte* const* row, std::int64_t rows, std::ptrdiff_t offset,
                    const std::int32_t* weights, const Finish& finish, std::int64_t row0, std::int64_t col0, int cols) {
  constexpr int tile = channel_lanes<Machine>::tile;
  const std::int32_t* const shift = p.shift ? p.shift + col0 : nullptr;
  std::int64_t r = 0;
  for (; r + tile * Share <= rows; r += tile * Share)
    channels_tile<Machine, tile, Share>(p.runs, row + r, offset, weights, shift, finish, row0 + r, tile * Share, col0,
                                        cols);
  for (; r < rows; r += Share) {
    const int count = static_cast<int>(std::min<std::int64_t>(Share, rows - r));
    const std::byte* some[Share];
    for (int i = 0; i < Share; ++i) some[i] = row[r + std::min(i, count - 1)];
    channels_tile<Machine, 1, Share>(p.runs, some, offset, weights, shift, finish, row0 + r, count, col0, cols);
  }
}

/// The sums of each channel's own taps: runs are taps, as many as whole lanes hold (those beyond the last have no
/// weight), in an image whose channels are adjacent. `finish_of` and `done` as `integer_gemm` has them.
template <class Machine, class FinishOf, class Done>
void integer_channels(thread_pool& pool, const integer_problem& p, FinishOf&& finish_of, Done&& done) {
  using l = channel_lanes<Machine>;
  if (p.m <= 0 || p.n <= 0) return;
  const std::int64_t block = p.runs.count * l::lanes;
  const integer_tasks tasks(p.m, ceil_div(p.n, l::whole), integer_task_cols / l::whole, pool.size());
  pool.parallel_for(tasks.count(), [&](std::int64_t task, unsigned worker) {
    const std::int64_t row0 = tasks.row0(task), rows = std::min(tasks.chunk_rows, p.m - row0);
    if (rows <= 0) return;
    const std::int64_t col0 = tasks.first_unit(task) * l::whole, end = std::min(tasks.last_unit(task) * l::whole, p.n);
    const std::byte* row[integer_task_rows];
    find_rows(p.rows, row0, rows, row);
    const auto finish = finish_of(row0, col0, worker);
    const std::int32_t* weights = p.b + round_up(p.n, l::lanes) + tasks.first_unit(task) * block;
    for (std::int64_t col = col0; col < end; weights += block) {
      const int share = l::share(p.n - col), width = l::whole / share;
      const int cols = static_cast<int>(std::min<std::int64_t>(width, end - col));
      const auto offset = static_cast<std::ptrdiff_t>(col * static_cast<std::int64_t>(sizeof(typename Machine::left)));
      if constexpr (l::most_share >= 4)
        if (share == 4) channels_block<Machine, 4>(p, row, rows, offset, weights, finish, row0, col, cols);
      if constexpr (l::most_share >= 2)
        if (share == 2) channels_block<Machine, 2>(p, row, rows, offset, weights, finish, row0, col, cols);
      if (share == 1) channels_block<Machine, 1>(p, row, rows, offset, weights, finish, row0, col, cols);
      col += width;
    }
    done(finish, row0, rows, col0, end - col0);
  });
}

}  // namespace kiln::kernels
