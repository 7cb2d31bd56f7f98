#pragma once
#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/core/dimension.hpp"
#include "kiln/graph/builder.hpp"
#include "kiln/op/quant/integer_dot.hpp"
#include "kiln/runtime/executable.hpp"
#include "kiln/runtime/thread_pool.hpp"
#include "versus.hpp"

/// What a machine can do at most, as measured, and the shortest time that a program could take there.
namespace kiln::bench {

/// Measured ceilings: operations a second of a large product by type, bytes a second of reading and of copying (read
/// and written bytes counted) by the number of bytes touched again and again.
struct machine_rates {
  std::map<dtype, double> product;
  std::map<double, double> read, copy;

  /// The rate at so many bytes, between the measured ones by their logarithms.
  static double at(const std::map<double, double>& rates, double bytes) {
    const auto above = rates.lower_bound(bytes);
    if (above == rates.begin()) return above->second;
    if (above == rates.end()) return rates.rbegin()->second;
    const auto below = std::prev(above);
    const double part = std::log(bytes / below->first) / std::log(above->first / below->first);
    return below->second + part * (above->second - below->second);
  }
};

namespace detail {

// Operations a second of a product of square matrices.
inline double product_rate(dtype type, unsigned threads) {
  constexpr std::int64_t side = 1024;
  builder b;
  const auto x = b.input("x", type, {side, side}), w = b.input("w", type, {side, side});
  b.output(type == dtype::i8 ? b.add(op::integer_dot{}, x, w) : x.dot(w), "y");
  compile_options options;
  options.threads = threads;
  const executable exe = compile(b.finish(), eigen_target(), options);
  const shape s(type, {side, side});
  const std::vector<argument> in{random_values(s, -2, 2, 1), random_values(s, -2, 2, 2)};
  std::vector<argument> out = exe.run(in);
  workspace memory = exe.make_workspace();
  return 2.0 * side * side * side / (time_ms(60, [&] { exe.run(memory, in, out); }).best / 1e3);
}

}  // namespace detail

/// The best of three rounds, which take some seconds together.
inline machine_rates measure_rates(unsigned threads) {
  machine_rates out;
  const auto keep = [](double& best, double rate) { best = std::max(best, rate); };
  thread_pool pool(threads);
  constexpr std::size_t most = std::size_t{1} << 28;
  std::vector<std::uint64_t> memory(most / 8, ~std::uint64_t{0});
  volatile bool found = false;
  const auto one_size = [&](std::size_t bytes) {
    const std::size_t words = bytes / 8 / threads;  // of a thread
    const std::size_t times = std::max<std::size_t>(1, (std::size_t{1} << 24) / bytes);
    const auto rate = [&](auto&& once) {
      const auto run = [&] {
        pool.parallel_for(threads, [&](std::int64_t task, unsigned) {
          for (std::size_t k = 0; k < times; ++k) once(memory.data() + static_cast<std::size_t>(task) * words);
        });
      };
      return static_cast<double>(words * 8 * threads * times) / (time_ms(20, run).best / 1e3);
    };
    keep(out.read[static_cast<double>(bytes)],
         rate([&](const std::uint64_t* from) { found = std::memchr(from, 0, words * 8) != nullptr; }));
    keep(out.copy[static_cast<double>(bytes)],
         rate([&](std::uint64_t* from) { std::memcpy(from, from + words / 2, words / 2 * 8); }));
  };
  for (int round = 0; round < 3; ++round) {
    for (const dtype t : {dtype::f32, dtype::f64, dtype::f16, dtype::bf16, dtype::i8})
      keep(out.product[t], detail::product_rate(t, threads));
    for (std::size_t bytes = std::size_t{1} << 16; bytes <= most; bytes *= 4) one_size(bytes);
  }
  return out;
}

/// As one line, and back.
inline std::string to_text(const machine_rates& r) {
  std::ostringstream text;
  for (const auto& [type, rate] : r.product) text << "p " << static_cast<int>(type) << ' ' << rate << ' ';
  for (const auto& [bytes, rate] : r.read) text << "r " << bytes << ' ' << rate << ' ';
  for (const auto& [bytes, rate] : r.copy) text << "c " << bytes << ' ' << rate << ' ';
  return text.str();
}
inline machine_rates rates_of(const std::string& line) {
  machine_rates r;
  std::istringstream text(line);
  double at = 0, rate = 0;
  for (char kind = 0; text >> kind >> at >> rate;) {
    if (kind == 'p') r.product[static_cast<dtype>(static_cast<int>(at))] = rate;
    if (kind == 'r') r.read[at] = rate;
    if (kind == 'c') r.copy[at] = rate;
  }
  return r;
}

/// The share of a 3x3 convolution's products that Winograd's algorithm leaves, by the kernel's name ("winograd 4x4":
/// tiles of 4 x 4 outputs; "winograd 1x4": one axis alone).
inline double products_left(const std::string& kernel) {
  const std::size_t at = kernel.find("winograd ");
  if (at == std::string::npos) return 1;
  const double rows = kernel[at + 9] - '0', columns = kernel[at + 11] - '0';
  const auto along = [](double tile) { return tile == 1 ? 1.0 : (tile + 2) / (3 * tile); };
  return along(rows) * along(columns);
}

/// What a step would take at two measured rates: that of the products left after Winograd, and that of its bytes.
struct step_bound {
  double products = 0, bytes = 0;  ///< ms
  double ms() const { return std::max(products, bytes); }
};

/// The bound of each step of a report. Constants are read from where all of them fit; other operands and results are
/// touched as often as the step's own bytes are.
inline std::vector<step_bound> step_bounds(const compile_report& report, const bindings& sizes,
                                           const machine_rates& most) {
  const auto amount = [&](dimension d) {
    small_vector<dimension> needed;
    collect_symbols(d, needed);
    for (const dimension s : needed)
      if (!sizes.find(s)) return 0.0;
    return static_cast<double>(sizes.evaluate(d));
  };
  double constants = 0;
  for (const step_info& step : report.steps) constants += static_cast<double>(step.packed_bytes);
  std::vector<step_bound> bounds;
  for (const step_info& step : report.steps) {
    const dtype type = step.inputs.empty() ? dtype::f32 : step.inputs[0].type;
    const auto rate = most.product.find(type == dtype::u8 ? dtype::i8 : type);
    const double products =
        rate == most.product.end() ? 0 : amount(step.flops) * products_left(step.kernel) / rate->second;
    const double packed = static_cast<double>(step.packed_bytes), bytes = amount(step.bytes);
    const double others = std::max(0.0, bytes - packed);
    const double memory =
        packed / machine_rates::at(most.read, constants) + others / machine_rates::at(most.copy, others);
    bounds.push_back({products * 1e3, memory * 1e3});
  }
  return bounds;
}

/// Milliseconds that a run would take if each of its steps reached its bound.
inline double bound_ms(const compile_report& report, const bindings& sizes, const machine_rates& most) {
  double ms = 0;
  for (const step_bound& b : step_bounds(report, sizes, most)) ms += b.ms();
  return ms;
}

/// The sizes of symbols that a model's inputs give.
inline bindings sizes_of(const executable& own, const std::vector<argument>& inputs) {
  bindings sizes;
  for (std::size_t k = 0; k < inputs.size(); ++k)
    for (std::size_t i = 0; i < inputs[k].get_shape().rank(); ++i)
      if (const dimension d = own.inputs()[k].type.lens[i]; is_symbol(d))
        sizes.bind(d, inputs[k].get_shape().lens[i].value());
  return sizes;
}

}  // namespace kiln::bench
