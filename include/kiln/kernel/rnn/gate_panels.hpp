#pragma once
#include <cstring>

#include "kiln/kernel/gemm/gemm.hpp"

namespace kiln::kernels {

/// The recurrence's columns of the `Gates` gates of one pass. A panel holds the columns of all these gates for the same
/// units, gate by gate, so that the cell needs no other panel's sums for these units.
template <int Gates> struct gate_panels {
  static constexpr int lanes = native_lanes<float>, tile_vectors = register_tile<float>::vectors;
  static constexpr int blocks = std::max(1, tile_vectors / Gates), units = blocks * lanes;
  static constexpr int vectors = Gates * blocks, width = vectors * lanes;
  /// Rows that are multiplied at a time.
  static constexpr int rows = register_tile<float>::rows_of(std::min(vectors, tile_vectors));

  static std::int64_t count(std::int64_t hidden) { return ceil_div(hidden, units); }
  static std::int64_t size(std::int64_t hidden) { return count(hidden) * hidden * width; }

  /// Packs the gates from `gate` on of recurrence[hidden, gates * hidden] with any strides and at any address.
  static void pack(thread_pool& pool, float* to, const std::byte* from, std::ptrdiff_t row, std::ptrdiff_t col,
                   std::int64_t hidden, std::int64_t gate) {
    pool.parallel_for(count(hidden), [&](std::int64_t panel, unsigned) {
      constexpr auto each = static_cast<std::ptrdiff_t>(sizeof(float));
      float* const out = to + panel * hidden * width;
      const std::int64_t first = panel * units, wanted = std::min<std::int64_t>(units, hidden - first);
      const bool aligned = reinterpret_cast<std::uintptr_t>(from) % alignof(float) == 0;
      for (int g = 0; g < Gates; ++g) {
        const std::byte* const in = from + ((gate + g) * hidden + first) * col * each;
        if (aligned)
          pack_gate(out, g, reinterpret_cast<const float*>(in), row, col, hidden, wanted);
        else
          pack_unaligned_gate(out, g, in, row * each, col * each, hidden, wanted);
      }
    });
  }

  /// sums[count, width] of `count` rows of states, at most `rows`, with one panel. `streamed`: the product is bound by
  /// reading the panel; `far`: it comes from beyond L2; `ahead`: memory to prefetch.
  static void multiply(const float* const* row, int count, std::int64_t hidden, const float* panel, float* sums,
                       bool streamed, bool far, const fetch_ahead& ahead) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v += tile_vectors) {
      constexpr linear_step along{1};
      const int some = std::min(tile_vectors, vectors - v), cols = some * lanes;
      const float* const b = panel + v * lanes;
      float* const c = sums + v * lanes;
      if (streamed)
        run_stream_tile<float>(count, some, hidden, row, along, b, width, c, width, cols, false, far);
      else
        find_tile<float, linear_step>(count, some)(hidden, row, along, b, width, c, width, cols, false, ahead, nullptr);
    }
  }

 private:
  static void zero_units(float* out, int g, std::int64_t hidden) {
    for (std::int64_t k = 0; k < hidden; ++k) std::fill_n(out + k * width + g * units, units, 0.0F);
  }
  // `wanted` units of gate g of a panel; `in` is the first one's first element.
  static void pack_gate(float* out, int g, const float* in, std::ptrdiff_t row, std::ptrdiff_t col, std::int64_t hidden,
                        std::int64_t wanted) {
    if (wanted != units) zero_units(out, g, hidden);
    if (row == 1) {
      transpose_block(in, col, out + g * units, width, wanted, hidden);
    } else if (col == 1) {
      pack_panel(out + g * units, width, in, row, 1, hidden, wanted);
    } else {
      for (std::int64_t k = 0; k < hidden; ++k)
        for (std::int64_t u = 0; u < wanted; ++u) out[k * width + g * units + u] = in[k * row + u * col];
    }
  }
  // The same at any address; steps in bytes.
  static void pack_unaligned_gate(float* out, int g, const std::byte* in, std::ptrdiff_t row, std::ptrdiff_t col,
                                  std::int64_t hidden, std::int64_t wanted) {
    if (wanted != units) zero_units(out, g, hidden);
    for (std::int64_t k = 0; k < hidden; ++k)
      for (std::int64_t u = 0; u < wanted; ++u)
        std::memcpy(out + k * width + g * units + u, in + k * row + u * col, sizeof(float));
  }
};

}  // namespace kiln::kernels
