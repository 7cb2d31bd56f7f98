// Ops that move elements, through the Eigen target: padding, triangles, gathers along any axis, places of extremes,
// transposed operands.
#include <gmock/gmock.h>

#include "kiln/op/index/arg_min.hpp"
#include "kiln/op/linear/mel_weights.hpp"
#include "kiln/op/random/random_uniform.hpp"
#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

constexpr dtype types[] = {dtype::f32, dtype::f64, dtype::i8, dtype::boolean, dtype::i64, dtype::bf16};

std::string first_kernel(const std::function<void(builder&)>& make) {
  const executable e = compile_eigen(make);
  return e.report().steps[0].kernel;
}

TEST(pad, equals_the_reference) {
  using P = inline_vector<dimension, 2 * max_rank>;
  const std::pair<dims, P> cases[] = {
      {{5}, {2, 3}},
      {{5}, {-2, 1}},
      {{5}, {7, 9}},
      {{5}, {0, -5}},
      {{3, 4}, {1, 2, 0, 3}},
      {{3, 4}, {-1, 2, 2, -3}},
      {{2, 3, 4}, {0, 1, 0, 0, 2, 0}},
      {{2, 3, 4, 5}, {0, 0, 1, 1, 0, 0, 1, 1}},
      {{1, 300, 70}, {0, 2, 9, 0, 4, 3}},
  };
  for (const auto& [lens, pads] : cases)
    for (const op::pad_mode mode :
         {op::pad_mode::constant, op::pad_mode::reflect, op::pad_mode::edge, op::pad_mode::wrap})
      for (const dtype type : types)
        for (const bool valued : {false, true}) {
          if (valued && mode != op::pad_mode::constant) continue;
          if (mode != op::pad_mode::constant && lens.size() == 1 && pads[1] == dimension(-5)) continue;
          SCOPED_TRACE(::testing::Message() << to_string(shape{type, lens}) << ' ' << to_string(mode));
          const auto make = [&](builder& b) {
            small_vector<value> in{b.input("x", type, lens)};
            if (valued) in.push_back(b.input("value", type, {1}));
            b.output(b.add(op::pad{mode, pads}, in));
          };
          expect_same(make, random_inputs(make, 3, -9, 9), {0, 0});
          EXPECT_EQ(first_kernel(make), "pad " + std::string(to_string(mode)));
          if (::testing::Test::HasFatalFailure()) return;
        }
}

TEST(mel_weights, equals_the_reference) {
  for (const auto& [mels, length] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {3, 2}, {80, 1024}, {129, 4099}, {17, 33}})
    for (const dtype edge : {dtype::f32, dtype::f64, dtype::f16}) {
      SCOPED_TRACE(::testing::Message() << mels << " filters, " << length << ' ' << to_string(edge));
      const auto make = [&, m = mels, n = length](builder& b) {
        const value rate = b.input("rate", dtype::i32, {}), lowest = b.input("lowest", edge, {}),
                    highest = b.input("highest", edge, {1});
        b.output(b.add(op::mel_weights{m, n}, rate, lowest, highest));
      };
      const auto scalar = [](dtype t, const dims& lens, double x) {
        return argument(literal::of<double>({t, lens}, {&x, 1}));
      };
      const std::vector<argument> in{scalar(dtype::i32, {}, 16000), scalar(edge, {}, 62.5), scalar(edge, {1}, 7800)};
      expect_same(make, in, {0, 0});
      EXPECT_EQ(compile_eigen(make).report().steps.back().kernel, "mel_weights");  // after halves are widened
    }
}

TEST(mel_weights, of_symbols) {
  const auto scalar = [](dtype t, double x) { return argument(literal::of<double>({t, {}}, {&x, 1})); };
  builder b;
  const dimension mels = dimension::symbol("placed_mels", 0, 200), length = dimension::symbol("placed_length", 0, 5000);
  // what has these extents
  const value m = b.input("m", dtype::f32, {mels}), n = b.input("n", dtype::f32, {length});
  const value rate = b.input("rate", dtype::i32, {}), lowest = b.input("lowest", dtype::f32, {}),
              highest = b.input("highest", dtype::f32, {});
  b.output(b.add(op::mel_weights{mels, length}, rate, lowest, highest));
  b.output(m + 1), b.output(n + 1);
  const executable e = compile(b.finish(), eigen_target(), plain_options());
  for (const auto& [filters, samples] :
       {std::pair<std::int64_t, std::int64_t>{80, 1024}, {17, 4099}, {0, 64}, {80, 1024}}) {
    SCOPED_TRACE(::testing::Message() << filters << " filters, " << samples);
    const std::vector<argument> numbers{scalar(dtype::i32, 16000), scalar(dtype::f32, 62.5), scalar(dtype::f32, 7800)};
    std::vector<argument> in{random_argument({dtype::f32, {filters}}, 1), random_argument({dtype::f32, {samples}}, 2)};
    in.insert(in.end(), numbers.begin(), numbers.end());
    const auto known = [m = filters, n = samples](builder& r) {
      const value rate = r.input("rate", dtype::i32, {}), lowest = r.input("lowest", dtype::f32, {}),
                  highest = r.input("highest", dtype::f32, {});
      r.output(r.add(op::mel_weights{m, n}, rate, lowest, highest));
    };
    expect_close(e.run(in)[0], reference_run(known, numbers)[0], {0, 0});
  }
}

TEST(mel_weights, reject_operands_of_no_or_many_numbers) {
  builder b;
  const value rate = b.input("rate", dtype::i64, {}), lowest = b.input("lowest", dtype::f32, {}),
              highest = b.input("highest", dtype::f32, {dimension::symbol("placed_edges", 0, 9)});
  b.output(b.add(op::mel_weights{4, 64}, rate, lowest, highest));
  const program p = b.finish();
  std::vector<argument> in{
      random_argument({dtype::i64, {}}, 1, 8000, 8001), random_argument({dtype::f32, {}}, 1, 100, 101), {}};
  for (const bool reference : {false, true}) {
    SCOPED_TRACE(reference);
    const executable e =
        reference ? compile(p, reference_target(), plain_options()) : compile(p, eigen_target(), plain_options());
    for (const std::int64_t n : {0, 3}) {
      in[2] = random_argument({dtype::f32, {n}}, 1, 3000, 3001);
      EXPECT_EQ(error_of([&] { (void)e.run(in); }).first, errc::shape_mismatch) << n;
    }
    in[2] = random_argument({dtype::f32, {1}}, 1, 3000, 3001);
    EXPECT_EQ(e.run(in)[0].elements(), 33 * 4);
  }
}

TEST(random_uniform, equals_the_reference) {
  for (const dims& lens : {dims{1}, dims{311}, dims{2048}, dims{3, 1401}, dims{0}})
    for (const dtype type : {dtype::f32, dtype::f64, dtype::f16, dtype::bf16}) {
      SCOPED_TRACE(to_string(shape{type, lens}));
      const auto make = [&](builder& b) {
        b.output(b.add(op::random_uniform{.lens = lens, .low = -2, .high = 3, .seed = 77, .type = type}));
      };
      expect_same(make, {}, {0, 0});
      EXPECT_EQ(first_kernel(make), "random_uniform");
      EXPECT_FALSE(compile_eigen(make).report().steps[0].fallback);
    }
}

TEST(tri, equals_the_reference) {
  for (const dims& lens : {dims{4, 6}, dims{6, 4}, dims{3, 70, 80}, dims{2, 0, 3}, dims{2, 3, 0}})
    for (const std::int64_t k : {-100, -6, -2, -1, 0, 1, 3, 6, 100})
      for (const bool upper : {false, true})
        for (const dtype type : types) {
          SCOPED_TRACE(::testing::Message() << to_string(shape{type, lens}) << " k " << k << " upper " << upper);
          const auto make = [&](builder& b) {
            b.output(b.add(op::tri{upper, k}, small_vector<value>{b.input("x", type, lens)}));
          };
          expect_same(make, random_inputs(make, 3, -9, 9), {0, 0});
          if (::testing::Test::HasFatalFailure()) return;
        }
}

TEST(gather, moves_slices_of_any_size) {
  for (const dims& lens : {dims{3, 7, 5}, dims{40, 90, 30}})
    for (const std::int64_t axis : {0, 1, 2})
      for (const dtype index : {dtype::i64, dtype::i32})
        for (const dtype type : types) {
          const auto make = [&](builder& b) {
            b.output(
                b.add(op::gather{axis}, small_vector<value>{b.input("x", type, lens), b.input("i", index, {3, 4})}));
          };
          auto in = random_inputs(make, 3, -9, 9);
          in[1] =
              random_argument(in[1].get_shape(), 5, -static_cast<double>(lens[static_cast<std::size_t>(axis)].value()),
                              lens[static_cast<std::size_t>(axis)].value());
          expect_same(make, in, {0, 0});
          EXPECT_EQ(first_kernel(make), "gather");
          if (::testing::Test::HasFatalFailure()) return;
        }
  const auto make = [](builder& b) {
    b.output(b.input("x", dtype::f32, {2, 5}).gather(b.input("i", dtype::i64, {2}), 1));
  };
  auto in = random_inputs(make);
  in[1].as<std::int64_t>()[1] = 5;
  EXPECT_EQ(error_of([&] { compile_eigen(make).run(in); }).first, errc::invalid_argument);
}

TEST(arg_extreme, equals_the_reference) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const dims& lens : {dims{7}, dims{70, 1}, dims{3, 1000}, dims{5, 6, 130}, dims{2, 65, 3}, dims{4, 64}})
    for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(lens.size()); ++axis)
      for (const bool last : {false, true})
        for (const bool with_nan : {false, true}) {
          SCOPED_TRACE(::testing::Message() << to_string(shape{dtype::f32, lens}) << " axis " << axis << " last "
                                            << last << " nan " << with_nan);
          const auto make = [&](builder& b) {
            const value x = b.input("x", dtype::f32, lens);
            b.output(b.add(op::arg_max{axis, last}, small_vector<value>{x}));
            b.output(b.add(op::arg_min{axis, last}, small_vector<value>{x}));
          };
          auto in = random_inputs(make, 3, -9, 9);
          auto x = in[0].as<float>();
          for (float& v : x) v = std::floor(v);  // equal elements
          if (with_nan)
            for (std::size_t k = 1; k < x.size(); k += 37) x[k] = nan;
          expect_same(make, in, {0, 0});
          EXPECT_THAT(first_kernel(make), ::testing::AnyOf("arg_max", "arg_min"));
          if (::testing::Test::HasFatalFailure()) return;
        }
}

TEST(arg_extreme, a_run_without_an_element_to_choose_is_refused) {
  const dimension a = dimension::symbol("a");
  const executable e = compile_eigen([&](builder& b) {
    b.output(b.add(op::arg_max{1, false}, small_vector<value>{b.input("x", dtype::f32, {2, a})}));
  });
  workspace w = e.make_workspace();
  const shape none[] = {{dtype::f32, {2, 0}}}, three[] = {{dtype::f32, {2, 3}}};
  const auto [code, message] = error_of([&] { e.bind(w, none); });
  EXPECT_EQ(code, errc::shape_mismatch);
  EXPECT_THAT(message, ::testing::HasSubstr("an element to choose"));
  EXPECT_NO_THROW(e.bind(w, three));
}

// Operands of pointwise groups whose rows are another's columns, which tiles transpose: beside repeats, of every width,
// past the last whole tile, along more than one dim, and where operands disagree about which.
TEST(transposed_operands, equal_the_reference) {
  for (const dtype t : {dtype::f32, dtype::f64, dtype::f16, dtype::u8, dtype::i64})
    for (const auto& [rows, columns] : {std::pair<std::int64_t, std::int64_t>{80, 515}, {17, 530}, {129, 33}}) {
      const auto make = [&](builder& b) {
        const value x = b.input("x", t, {2, columns, rows + 3}), y = b.input("y", t, {2, rows, columns}),
                    z = b.input("z", t, {2, rows, 1}), w = b.input("w", t, {columns, rows, 2});
        const value part = x.slice({.axes = {2}, .starts = {1}, .ends = {rows + 1}}).transpose({0, 2, 1});
        b.output(part * z);
        b.output(part + y);
        b.output((part + y).transpose({1, 2, 0}) * part.transpose({1, 2, 0}));
        b.output(part + w.transpose({2, 1, 0}));
      };
      const auto in = random_inputs(make, 7, 0, 10);
      const auto expected = reference_run(make, in), found = compile_eigen(make).run(in);
      for (std::size_t k = 0; k < expected.size(); ++k)
        expect_close(found[k], expected[k], {t == dtype::f16 ? 2e-3 : 1e-6, 1e-6});
    }
}

}  // namespace
}  // namespace kiln::testing
