// Kernels of the Eigen target beside what the machine reaches: GFLOP/s of products and convolutions (of the direct
// method, whatever the kernel does), GB/s of what streams memory. `peak_fma` is the ceiling of the first, `read_memory`
// that of the second: 1 MiB lies in the second-level caches, 256 MiB in memory.
#include <benchmark/benchmark.h>

#include <cstring>
#include <random>
#include <vector>

#include "kiln/backend/eigen/isa.hpp"
#include "kiln/core/buffer.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace {

using namespace kiln;
using namespace kiln::kernels;

const eigen::isa_table& isa() { return *eigen::kiln_eigen_isa(); }

class floats {
 public:
  explicit floats(std::int64_t n) : memory_(buffer::allocate(static_cast<std::size_t>(n + 16) * sizeof(float))), n_(n) {
    std::mt19937 engine(1);
    std::uniform_real_distribution<float> value(-1, 1);
    for (std::int64_t i = 0; i < n; ++i) data()[i] = value(engine);
  }
  float* data() { return reinterpret_cast<float*>(memory_.data()); }
  std::int64_t bytes() const { return n_ * static_cast<std::int64_t>(sizeof(float)); }

 private:
  buffer memory_;
  std::int64_t n_;
};

void rate(benchmark::State& state, const char* unit, double work) {
  state.counters[unit] = benchmark::Counter(work * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

// Arguments of all: threads first.
void peak_fma(benchmark::State& state) {
  thread_pool pool(static_cast<unsigned>(state.range(0)));
  // A product whose operands stay in the first-level cache.
  constexpr std::int64_t m = 48, n = 64, k = 96;
  floats a(m * k * 8), b(k * n), c(m * n * 8), packed(isa().packed_b_floats(k, n));
  isa().pack_b(pool, packed.data(), b.data(), n, 1, k, n);
  gemm_problem<float> p{.m = m, .n = n, .k = k, .a = a.data(), .a_row = k, .b = packed.data(), .c = c.data()};
  p.c_row = n;
  p.batch = 8;
  p.a_batch = m * k;
  p.c_batch = m * n;
  p.matrix_unit = false;
  for (auto _ : state) isa().gemm(pool, p, nullptr, {});
  rate(state, "GFLOP/s", 2.0 * m * n * k * 8);
}
BENCHMARK(peak_fma)->Arg(1)->Arg(2)->UseRealTime();

// Eight independent sums of vectors: what a core waits for is memory alone.
double read_all(const double* at, const double* end) {
  using lanes [[gnu::vector_size(16)]] = double;
  lanes sums[8] = {};
  for (; end - at >= 16; at += 16)
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) sums[i] += *reinterpret_cast<const lanes*>(at + 2 * i);
  lanes all = sums[0];
#pragma GCC unroll 8
  for (int i = 1; i < 8; ++i) all += sums[i];
  return all[0] + all[1];
}

void read_memory(benchmark::State& state) {
  thread_pool pool(static_cast<unsigned>(state.range(0)));
  const std::int64_t bytes = state.range(1) * 1024 * 1024, chunks = state.range(0), each = bytes / 8 / chunks;
  buffer memory = buffer::allocate(static_cast<std::size_t>(bytes));
  const auto* const values = reinterpret_cast<const double*>(memory.data());
  std::memset(memory.data(), 0, static_cast<std::size_t>(bytes));
  for (auto _ : state)
    pool.parallel_for(chunks, [&](std::int64_t chunk, unsigned) {
      benchmark::DoNotOptimize(read_all(values + chunk * each, values + (chunk + 1) * each));
    });
  rate(state, "GB/s", static_cast<double>(bytes));
}
BENCHMARK(read_memory)->ArgNames({"threads", "MiB"})->Args({2, 1})->Args({2, 16})->Args({2, 256})->UseRealTime();

void gemm_packed(benchmark::State& state) {
  thread_pool pool(static_cast<unsigned>(state.range(0)));
  const std::int64_t m = state.range(1), n = state.range(2), k = state.range(3);
  floats a(m * k), b(k * n), c(m * n), packed(isa().packed_b_floats(k, n));
  isa().pack_b(pool, packed.data(), b.data(), n, 1, k, n);
  gemm_problem<float> p{.m = m, .n = n, .k = k, .a = a.data(), .a_row = k, .b = packed.data(), .c = c.data()};
  p.c_row = n;
  floats scratch(isa().gemm_scratch_floats(m, n, k, pool.size()));
  for (auto _ : state) isa().gemm(pool, p, scratch.data(), {});
  rate(state, "GFLOP/s", 2.0 * static_cast<double>(m * n * k));
  rate(state, "GB/s", static_cast<double>(packed.bytes()));
}
BENCHMARK(gemm_packed)
    ->ArgNames({"threads", "m", "n", "k"})
    ->Args({1, 1024, 1024, 1024})
    ->Args({2, 1024, 1024, 1024})
    ->Args({2, 128, 3072, 768})
    ->Args({2, 1, 4096, 4096})
    ->Args({2, 4, 4096, 4096})
    ->UseRealTime();

void conv(benchmark::State& state) {
  thread_pool pool(static_cast<unsigned>(state.range(0)));
  conv_problem p{.in_channels = state.range(1), .out_channels = state.range(2), .groups = state.range(6)};
  p.input = {1, state.range(3), state.range(3)};
  p.kernel = {1, state.range(4), state.range(4)};
  p.stride = {1, state.range(5), state.range(5)};
  p.pad_begin = p.pad_end = {0, state.range(4) / 2, state.range(4) / 2};
  const bool last = state.range(7) != 0;
  const conv_method method = isa().choose_conv_method(p, last, last);
  const std::unique_ptr<eigen::conv_plan> plan(
      isa().plan_conv(p, pool.size(), method, {last, p.in_channels}, {last, p.out_channels}, false));
  floats x(p.in_channels * p.input_pixels()), w(p.out_channels * p.depth()), y(p.out_channels * p.output_pixels());
  floats packed(isa().conv_weight_floats(p, method)), scratch(plan->scratch_floats());
  isa().pack_conv_weights(pool, p, method, packed.data(), reinterpret_cast<const std::byte*>(w.data()));
  for (auto _ : state) plan->run(pool, x.data(), packed.data(), y.data(), scratch.data(), {}, nullptr);
  state.SetLabel("method " + std::to_string(static_cast<int>(method)));
  rate(state, "GFLOP/s", 2.0 * static_cast<double>(p.out_channels * p.output_pixels() * p.depth()));
}
void conv_cases(benchmark::internal::Benchmark* b) {
  b->ArgNames({"threads", "in", "out", "extent", "kernel", "stride", "groups", "nhwc"});
  for (std::int64_t last : {0, 1}) {
    b->Args({2, 64, 64, 56, 3, 1, 1, last})->Args({2, 256, 256, 14, 3, 1, 1, last});
    b->Args({2, 512, 512, 7, 3, 1, 1, last})->Args({2, 256, 64, 56, 1, 1, 1, last});
    b->Args({2, 1024, 256, 14, 1, 1, 1, last})->Args({2, 3, 64, 224, 7, 2, 1, last});
    b->Args({2, 32, 32, 112, 3, 1, 32, last});
  }
}
BENCHMARK(conv)->Apply(conv_cases)->UseRealTime();

void attention(benchmark::State& state) {
  thread_pool pool(static_cast<unsigned>(state.range(0)));
  attention_problem p;
  p.heads = p.kv_heads = state.range(1);
  p.queries = state.range(2);
  p.keys = state.range(3);
  p.depth = p.value_depth = state.range(4);
  p.scale = 0.125F;
  floats q(p.heads * p.queries * p.depth), k(p.heads * p.keys * p.depth), v(p.heads * p.keys * p.depth),
      out(p.heads * p.queries * p.depth);
  p.q = {q.data(), 0, p.queries * p.depth, p.depth};
  p.k = {k.data(), 0, p.keys * p.depth, p.depth};
  p.v = {v.data(), 0, p.keys * p.depth, p.depth};
  p.out = out.data();
  p.out_head = p.queries * p.depth;
  p.out_row = p.depth;
  floats scratch(isa().attention_scratch_floats(p, pool.size()));
  for (auto _ : state) isa().attention(pool, p, scratch.data());
  rate(state, "GFLOP/s", 4.0 * static_cast<double>(p.heads * p.queries * p.keys * p.depth));
}
BENCHMARK(attention)
    ->ArgNames({"threads", "heads", "queries", "keys", "depth"})
    ->Args({2, 12, 512, 512, 64})
    ->Args({2, 12, 1, 512, 64})
    ->UseRealTime();

void pooling(benchmark::State& state) {
  thread_pool pool(static_cast<unsigned>(state.range(0)));
  const std::int64_t channels = state.range(1), extent = state.range(2), window = state.range(3);
  pooling_problem p{.planes = channels, .average = state.range(5) != 0};
  p.input = {1, extent, extent};
  p.window = {1, window, window};
  p.stride = {1, state.range(4), state.range(4)};
  p.pad_begin = p.pad_end = {0, window / 2, window / 2};
  for (std::size_t d = 1; d < 3; ++d) p.output[d] = (extent + 2 * (window / 2) - window) / p.stride[d] + 1;
  floats x(channels * extent * extent), y(channels * p.output[1] * p.output[2]);
  p.x = x.data();
  p.y = y.data();
  const nhwc_pooling images{1, channels, channels, channels};
  for (auto _ : state) state.range(6) != 0 ? isa().pool_nhwc(pool, p, images) : isa().pool(pool, p);
  rate(state, "GB/s", static_cast<double>(x.bytes() + y.bytes()));
}
void pooling_cases(benchmark::internal::Benchmark* b) {
  b->ArgNames({"threads", "channels", "extent", "window", "stride", "average", "nhwc"});
  for (std::int64_t last : {0, 1})
    for (std::int64_t average : {0, 1}) {
      b->Args({2, 64, 56, 3, 2, average, last})->Args({2, 256, 28, 3, 1, average, last});
      b->Args({2, 128, 28, 2, 2, average, last})->Args({2, 512, 14, 5, 1, average, last});
    }
}
BENCHMARK(pooling)->Apply(pooling_cases)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
