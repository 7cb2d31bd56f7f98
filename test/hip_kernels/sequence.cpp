// Kernels of recurrences and of ops that stand alone, run lane by lane beside the ops' own computations.
#include "kiln/backend/hip/kernels/sequence/sequence.hpp"

#include <gtest/gtest.h>

#include "emulated_device.hpp"
#include "kiln/backend/hip/kernels/index/random.hpp"
#include "kiln/backend/hip/kernels/index/roi_align.hpp"
#include "kiln/backend/hip/kernels/platform/narrow.hpp"
#include "kiln/backend/hip/kernels/reduce/determinant.hpp"
#include "kiln/backend/hip/kernels/sequence/fourier.hpp"
#include "kiln/backend/hip/kernels/sequence/recurrent_held.hpp"
#include "kiln/op/more.hpp"
#include "reference.hpp"

namespace kiln::testing {
namespace {

using namespace kiln::gpu;

// A launch of one thread an element, or of a block a row.
template <class F> void each_element(i64 work, F&& f) {
  for (i64 at = 0; at < work; ++at) f(at);
}
template <int Lanes, class F> void each_row(i64 rows, F&& f) {
  run_grid(static_cast<int>(rows), 1, Lanes, 0, [&](char*) { f(block_x(), thread_index()); });
}

void expect_values(const std::vector<float>& found, const std::vector<double>& expected, double bound) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t k = 0; k < found.size(); ++k) ASSERT_NEAR(static_cast<double>(found[k]), expected[k], bound) << k;
}

constexpr i64 steps = 5, batch = 3, hidden = 40;

// A launch a step and, where one block holds the matrix, one launch: in registers, and with depths beside them.
template <class Cell> void check_cell(const op::recurrent& r, bool two) {
  const i64 all = r.gates() * hidden, units = batch * hidden;
  const bool remembers = r.cell == op::cell_kind::lstm;
  const auto make = [&](builder& b) {
    small_vector<value> in;
    int n = 0;
    for (const dims& lens : {dims{steps, batch, all}, dims{hidden, all}, dims{all}, dims{batch, hidden}})
      in.push_back(b.input("x" + std::to_string(n++), dtype::f32, lens));
    in.push_back(b.constant(literal::of<std::int64_t>({dtype::i64, {batch}}, std::vector<std::int64_t>{5, 0, 3})));
    if (remembers)
      for (const dims& lens : {dims{batch, hidden}, dims{3 * hidden}})
        in.push_back(b.input("x" + std::to_string(n++), dtype::f32, lens));
    const value y = b.add(r, in);
    for (unsigned k = 0; k < (remembers ? 3u : 2u); ++k) b.output(y.result(k));
  };
  const auto [given, expected] = reference_of(make);
  std::vector<float> y(static_cast<std::size_t>(steps * units), 77), last(static_cast<std::size_t>(units), 77),
      cells = last, room(static_cast<std::size_t>(cell_states * units), 77);
  const i64 lengths[] = {5, 0, 3};
  recurrent_sizes n{steps, batch, hidden, 0, r.clip, {}, {}};
  for (std::size_t f = 0; f < r.alpha.size(); ++f) n.alpha[f] = r.alpha[f], n.beta[f] = r.beta[f];
  const cell_step<Cell, float, i64> step{y.data(),
                                         last.data(),
                                         remembers ? cells.data() : nullptr,
                                         room.data(),
                                         given[0].data(),
                                         given[1].data(),
                                         given[2].data(),
                                         given[3].data(),
                                         lengths,
                                         remembers ? given[4].data() : nullptr,
                                         remembers ? given[5].data() : nullptr,
                                         n};
  each_element(units, [&](i64 at) { step.begin(at); });
  for (; n.step < steps; ++n.step) {
    constexpr i64 blocks = batch * ((hidden + cell_units - 1) / cell_units);
    if (two) each_row<256>(blocks, [&](i64 row, int lane) { step.template advance<true>(row, lane); });
    each_row<256>(blocks, [&](i64 row, int lane) { step.template advance<false>(row, lane); });
  }
  const auto same = [&] {
    expect_values(y, expected[0], 1e-4);
    expect_values(last, expected[1], 1e-4);
    if (remembers) expect_values(cells, expected[2], 1e-4);
    for (auto* v : {&y, &last, &cells, &room}) std::fill(v->begin(), v->end(), 77.0f);
  };
  same();
  const auto in_one = [&]<held_shape Tile>() {
    SCOPED_TRACE(Tile.entries);
    run_grid((static_cast<int>(batch) + Tile.entries - 1) / Tile.entries, 1, Tile.threads(),
             static_cast<std::size_t>(Tile.shared_bytes()),
             [&](char* shared) { recur_with_held_matrix<Cell, Tile>(step, shared); });
    same();
  };
  constexpr bool first = Cell::kind == 1 && !Cell::linear_reset;
  in_one.template operator()<held_shape{Cell::gates, hidden, 1, 2, 2, 4, first}>();
  in_one.template operator()<held_shape{Cell::gates, hidden, 1, 4, 3, 4, first, 32}>();
}

op::recurrent cell_of(op::cell_kind kind, std::initializer_list<op::cell_function> functions) {
  op::recurrent r;
  r.cell = kind;
  r.functions.clear(), r.alpha.clear(), r.beta.clear();
  for (const op::cell_function f : functions) r.functions.push_back(f), r.alpha.push_back(0.3f), r.beta.push_back(0.6f);
  return r;
}

using op::cell_function;
constexpr cell_function tanh_ = cell_function::tanh, sigmoid = cell_function::sigmoid;

TEST(device_sequences, plain_cells) {
  op::recurrent r = cell_of(op::cell_kind::plain, {cell_function::scaled_tanh});
  r.reverse = true;
  check_cell<cell<0, cell_function::scaled_tanh, tanh_, tanh_, true, false, false>>(r, false);
}
TEST(device_sequences, gated_units) {
  op::recurrent r = cell_of(op::cell_kind::gru, {sigmoid, tanh_});
  check_cell<cell<1, sigmoid, tanh_, tanh_, false, false, false>>(r, true);
  r.linear_before_reset = r.reverse = true;
  check_cell<cell<1, sigmoid, tanh_, tanh_, true, true, false>>(r, false);
}
TEST(device_sequences, long_short_term_memory) {
  op::recurrent r = cell_of(op::cell_kind::lstm, {sigmoid, tanh_, cell_function::softsign});
  check_cell<cell<2, sigmoid, tanh_, cell_function::softsign, false, false, false>>(r, false);
  r.coupled = r.reverse = true;
  r.clip = 0.4f;
  check_cell<cell<2, sigmoid, tanh_, cell_function::softsign, true, false, true>>(r, false);
}

// With parts, as blocks hold columns in registers.
template <bool Corrects, int Parts = 0, int Each = 0>
void check_linear_attention(i64 steps, i64 heads, i64 depth, i64 width) {
  const auto make = [&](builder& b) {
    small_vector<value> in;
    int n = 0;
    for (const dims& lens : {dims{2, steps, heads, depth}, dims{2, steps, 2, depth}, dims{2, steps, 2, width},
                             dims{2, 2, depth, width}, dims{2, steps, 2, depth}, dims{2, steps, 2}})
      in.push_back(b.input("x" + std::to_string(n++), dtype::f32, lens));
    const value y = b.add(op::linear_attention{.5f, Corrects}, in);
    b.output(y);
    b.output(y.result(1));
  };
  const reference_values r = reference_of(make);
  const auto& in = r.in;
  const auto& expected = r.out;
  std::vector<float> y(static_cast<std::size_t>(2 * steps * heads * width), 77),
      last(static_cast<std::size_t>(2 * 2 * depth * width), 77), state(last.size());
  const linear_attention_sizes n{steps, heads, 2, depth, width, .5};
  if constexpr (Parts == 0) {
    each_element(2 * 2 * width, [&](i64 at) {
      linear_attention<Corrects>(y.data(), last.data(), state.data(), in[0].data(), in[1].data(), in[2].data(),
                                 in[3].data(), in[4].data(), in[5].data(), n, at);
    });
  } else {
    constexpr i64 columns = 256 / Parts;
    each_row<256>(2 * 2 * ((width + columns - 1) / columns), [&](i64 row, int lane) {
      linear_attention_columns<Corrects, Parts, Each, 256>(y.data(), last.data(), in[0].data(), in[1].data(),
                                                           in[2].data(), in[3].data(), in[4].data(), in[5].data(), n,
                                                           row, lane);
    });
  }
  expect_values(y, expected[0], 1e-5);
  expect_values(last, expected[1], 1e-5);
}
TEST(device_sequences, linear_attention) {
  check_linear_attention<false>(3, 4, 4, 5);
  check_linear_attention<true>(3, 4, 4, 5);
}
TEST(device_sequences, linear_attention_in_registers) {
  check_linear_attention<false, 8, 1>(3, 4, 4, 5);
  check_linear_attention<true, 8, 2>(3, 6, 13, 37);
  check_linear_attention<true, 32, 2>(4, 2, 40, 8);
  check_linear_attention<true, 8, 1>(0, 4, 4, 5);
}

TEST(device_matrices, determinants) {
  for (const std::int64_t n : {1, 2, 7}) {
    const auto make = [n](builder& b) { b.output(b.add(op::det{}, b.input("x", dtype::f32, {3, n, n}))); };
    const auto [in, expected] = reference_of(make, [n](auto& given) {
      if (n != 7) return;
      for (std::int64_t k = 0; k < n; ++k)  // a singular one: two equal rows
        given[0][static_cast<std::size_t>(n * n + n + k)] = given[0][static_cast<std::size_t>(n * n + k)];
    });
    const float* x = in[0].data();
    std::vector<float> out(3), left(static_cast<std::size_t>(3 * n * n)), work(left.size());
    each_row<256>(3,
                  [&](i64 row, int lane) { determinant<256>(out.data(), left.data(), work.data(), x, n, row, lane); });
    expect_values(out, expected[0], 1e-6);
  }
}

TEST(device_matrices, inverses) {
  for (const std::int64_t n : {1, 2, 7}) {
    const auto make = [n](builder& b) { b.output(b.add(op::inverse{}, b.input("x", dtype::f32, {3, n, n}))); };
    const auto [in, expected] = reference_of(make, [n](auto& given) {
      const auto at = [&](std::int64_t k) -> float& { return given[0][static_cast<std::size_t>(n * n + k)]; };
      for (std::int64_t k = 0; k < n; ++k) at(k) = 0;  // a singular one among others, and one with a zero to exchange
      given[0][0] = n == 1 ? 2.f : 0.f;
    });
    const float* x = in[0].data();
    std::vector<float> out(static_cast<std::size_t>(3 * n * n)), left(out.size()), work(2 * out.size());
    each_row<256>(3, [&](i64 row, int lane) { inverted<256>(out.data(), left.data(), work.data(), x, n, row, lane); });
    for (std::size_t k = 0; k < out.size(); ++k) {
      const bool singular = k / static_cast<std::size_t>(n * n) == 1;
      EXPECT_EQ(std::isnan(out[k]), singular) << n << ' ' << k;
      if (singular) continue;
      EXPECT_NEAR(out[k], expected[0][k], 1e-4 * (1 + std::fabs(expected[0][k])));
    }
  }
}

// One transform a block of 2^Bits numbers, with what it reads besides.
template <bool Inverse, int Bits> void run_fourier(float* out, const float* x, const fourier_sizes& n, i64 rows) {
  constexpr i64 count = 1 << Bits;
  constexpr std::size_t shared = sizeof(fourier_number<float>) * (count + count / 2);
  const bool by_chirps = n.length != count;
  const i64 entries = count / 2 + (by_chirps ? n.length : 0);
  std::vector<fourier_number<float>> table(static_cast<std::size_t>(entries + (by_chirps ? count : 0)), {77, 77});
  each_element(entries, [&](i64 at) { fourier_entry<Inverse, Bits>(table.data(), n, at); });
  if (by_chirps)
    run_grid(1, 1, 256, shared, [&](char* room) { fourier_chirp<Bits, 256>(table.data(), n, thread_index(), room); });
  run_grid(static_cast<int>(rows), 1, 256, shared, [&](char* room) {
    if (by_chirps)
      fourier_by_chirps<Inverse, Bits, 256>(out, x, table.data(), n, block_x(), thread_index(), room);
    else
      fourier_block<Inverse, Bits, 256>(out, x, table.data(), n, block_x(), thread_index(), room);
  });
}

// With bits, as blocks make transforms: of a power of two numbers, or of others in twice as many or more.
template <bool Inverse, int Bits = 0> void check_fourier(bool one_sided, i64 own, i64 n, i64 parts) {
  const op::dft o{.axis = 1, .inverse = Inverse, .one_sided = one_sided, .length = n};
  const auto make = [&](builder& b) { b.output(b.add(o, b.input("x", dtype::f32, {2, own, 3, parts}))); };
  const auto [in, expected] = reference_of(make);
  const i64 made = one_sided && !Inverse ? n / 2 + 1 : n, given = o.signal_of(own, n, parts == 2).given;
  const i64 out_parts = one_sided && Inverse ? 1 : 2;
  std::vector<float> out(static_cast<std::size_t>(2 * made * 3 * out_parts));
  const fourier_sizes numbers{own, made, 3, parts, out_parts, n, given, one_sided && Inverse};
  const float* x = in[0].data();
  if constexpr (Bits == 0)
    each_element(2 * made * 3, [&](i64 at) { fourier<Inverse>(out.data(), x, numbers, at); });
  else
    run_fourier<Inverse, Bits>(out.data(), x, numbers, 2 * 3);
  expect_values(out, expected[0], Bits == 0 ? 1e-5 : 1e-4);
}
TEST(device_fourier, transforms) {
  check_fourier<false>(false, 6, 6, 2);
  check_fourier<false>(true, 6, 8, 1);
  check_fourier<true>(false, 6, 5, 2);
  check_fourier<true>(true, 6, 10, 2);
  check_fourier<true>(true, 6, 9, 1);
}
TEST(device_fourier, transforms_of_powers_of_two) {
  check_fourier<false, 6>(false, 64, 64, 2);
  check_fourier<false, 7>(true, 100, 128, 1);
  check_fourier<false, 9>(false, 600, 512, 1);
  check_fourier<true, 6>(false, 64, 64, 2);
  check_fourier<true, 7>(true, 65, 128, 2);
}
TEST(device_fourier, transforms_of_other_lengths) {
  check_fourier<false, 8>(false, 65, 65, 2);
  check_fourier<false, 8>(true, 100, 127, 1);
  check_fourier<false, 9>(false, 300, 200, 1);
  check_fourier<true, 8>(false, 70, 99, 2);
  check_fourier<true, 9>(true, 65, 129, 2);
}

TEST(device_fourier, an_inverse_of_great_numbers_is_no_greater) {
  constexpr float great = 1e38f;
  const auto check = [&]<int Bits>(std::integral_constant<int, Bits>, i64 n) {
    const fourier_sizes numbers{n, n, 1, 2, 2, n, n, false};
    std::vector<float> x(static_cast<std::size_t>(2 * n), 0), out(x.size(), -1);
    for (std::size_t i = 0; i < x.size(); i += 2) x[i] = great;
    run_fourier<true, Bits>(out.data(), x.data(), numbers, 1);
    EXPECT_NEAR(out[0], great, n == 64 ? 0 : 1e-6f * great);
    for (std::size_t i = 1; i < out.size(); ++i) EXPECT_NEAR(out[i], 0, 1e-6f * great) << n << ' ' << i;
  };
  check(std::integral_constant<int, 6>(), 64);
  check(std::integral_constant<int, 8>(), 99);
}

TEST(device_random, numbers_are_those_of_the_op) {
  const std::pair<std::int64_t, double> cases[] = {{1, 3}, {311, 3}, {1000, 3}, {1000, -2 + 0x1p-21}};
  for (const auto& [count, high] : cases) {
    const op::random_uniform op{.lens = {count}, .low = -2, .high = high, .seed = 77};
    const auto make = [&](builder& b) { b.output(b.add(op)); };
    std::vector<float> out(static_cast<std::size_t>(count));
    const uniform_range range = op.range();
    const random_sizes n{count, 77, range.low, range.width, range.least, range.most};
    each_element((count + 1) / 2, [&](i64 pair) { random_uniform(out.data(), n, pair); });
    expect_values(out, reference_of(make).out[0], 0);
  }
}

template <bool HalfPixel, bool Greatest, int Each> void check_regions(std::int64_t samples) {
  constexpr std::int64_t channels = 5;
  op::roi_align r;
  r.height = 2, r.width = 3, r.samples = samples, r.scale = .7f, r.half_pixel = HalfPixel, r.greatest = Greatest;
  const auto make = [&](builder& b) {
    const value x = b.input("x", dtype::f32, {2, channels, 8, 9}), rois = b.input("rois", dtype::f32, {4, 4});
    b.output(b.add(r, x, rois,
                   b.constant(literal::of<std::int64_t>({dtype::i64, {4}}, std::vector<std::int64_t>{0, 1, 1, -1}))));
  };
  const auto [in, expected] =
      reference_of(make, [](auto& given) { given[1] = {1, 1, 6, 5, 0, 2, 30, 7, 4, 4, 4, 4, -3, -2, 3, 9}; });
  const float *x = in[0].data(), *rois = in[1].data();
  std::vector<float> out(4 * channels * 2 * 3);
  constexpr i64 groups = (channels + Each - 1) / Each;
  const roi_sizes n{2, channels, 8, 9, 2, 3, samples, groups, double{.7f}};
  const i64 batches[] = {0, 1, 1, -1};
  int faults = 0;
  each_element(4 * groups * 2 * 3,
               [&](i64 at) { roi_align<HalfPixel, Greatest, Each>(out.data(), x, rois, batches, n, at, &faults); });
  EXPECT_EQ(faults, 0);
  expect_values(out, expected[0], 1e-6);
}
TEST(device_regions, bins) {
  check_regions<true, false, 1>(0);
  check_regions<false, true, 2>(2);
  check_regions<false, false, 4>(0);
  check_regions<false, true, 4>(-1);
  check_regions<true, true, 8>(0);
}

// Every code is read as core reads it, and what is stored is what core makes of the number.
template <class T> void check_short() {
  using V = decltype(value_of(T{}));
  for (unsigned code = 0; code < 256; ++code) {
    T x;
    x.bits = static_cast<std::uint8_t>(code);
    const V v = value_of(x);
    EXPECT_TRUE(v != v || v == convert_value<V>(x)) << code;
    EXPECT_EQ(stored<T>(v).bits, convert_value<T>(v).bits) << code;
  }
  for (const double d : {0., -0., .3, -1.6, 7.4, 100., -448., 1e5, 3e38, -1e300}) {
    EXPECT_EQ(stored<T>(static_cast<float>(d)).bits, convert_value<T>(static_cast<float>(d)).bits) << d;
    EXPECT_EQ(stored<T>(d).bits, convert_value<T>(d).bits) << d;
  }
  EXPECT_EQ(stored<T>(i64{-9}).bits, convert_value<T>(std::int64_t{-9}).bits);
  EXPECT_EQ(stored<T>(true).bits, convert_value<T>(true).bits);
}
TEST(device_elements, numbers_of_at_most_eight_bits) {
  check_short<float8_e4m3fn>();
  check_short<float8_e4m3fnuz>();
  check_short<float8_e5m2>();
  check_short<float8_e5m2fnuz>();
  check_short<float8_e8m0>();
  check_short<float4_e2m1>();
  check_short<int4>();
  check_short<uint4>();
  check_short<int2>();
  check_short<uint2>();
}

}  // namespace
}  // namespace kiln::testing
