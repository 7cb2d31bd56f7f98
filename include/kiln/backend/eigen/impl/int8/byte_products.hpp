#pragma once
#include "kiln/backend/eigen/integers.hpp"
#include "kiln/backend/eigen/isa.hpp"
#include "kiln/runtime/thread_pool.hpp"

/// What a product of bytes takes, and the order of a convolution's weights, for one unit.
namespace kiln::eigen::integer_epilogues {

/// Seconds that products and sums of bytes, `operations` of both together, are estimated to take for so many rows and
/// bytes of operands and results. Rates are those of a core of a processor of 2023; only their ratios matter, also to
/// those of products of floats.
inline double byte_product_seconds(std::int64_t rows, double operations, double bytes, unsigned threads) {
  constexpr double unit = 2000e9, vectors = 550e9, words = 290e9, memory = 20e9;
  constexpr std::int64_t least_rows = 8;  // that the matrix unit takes
  const isa_table& isa = *kiln_eigen_isa();
  const integer_table& integers = *kiln_eigen_integers();
  const bool by_unit = integers.reads_bytes && rows >= least_rows && isa.matrix_unit_available();
  const double rate = by_unit ? unit : (integers.reads_bytes ? vectors : words) * isa.vector_bytes / 64;
  return (operations / rate + bytes / memory) / threads;
}

/// Weights [outputs, inputs of a group, kernel...] as columns over the windows' words: channels of a tap are
/// neighbors.
inline std::vector<std::int8_t> along_windows(thread_pool& pool, const std::int8_t* from,
                                              const kernels::conv_problem& p, std::int64_t inputs, std::int64_t joined,
                                              const integer_windows& w, std::int64_t depth) {
  const std::int64_t taps = p.taps(), of_run = w.each / p.group_inputs(), filters = p.group_outputs() / joined;
  const std::int64_t run_depth = w.words * kiln_eigen_integers()->depth;
  std::vector<std::int8_t> turned(static_cast<std::size_t>(p.out_channels * depth), 0);
  pool.parallel_for(p.out_channels, [&](std::int64_t m, unsigned) {
    for (std::int64_t t = 0; t < taps; ++t) {
      std::int8_t* const to = turned.data() + m * depth + t / of_run * run_depth + t % of_run * p.group_inputs() +
                              m / filters % joined * inputs;
      const std::int8_t* const tap = from + m * inputs * taps + t;
      for (std::int64_t c = 0; c < inputs; ++c) to[c] = tap[c * taps];
    }
  });
  return turned;
}

}  // namespace kiln::eigen::integer_epilogues
