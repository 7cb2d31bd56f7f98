// Ops that sample between elements, through the Eigen target: resampled axes, grids of positions, pooled regions; and
// as gathers.
#include <gmock/gmock.h>

#include "eigen/expanded.hpp"
#include "kiln/op/nn/grid_sample.hpp"
#include "kiln/op/nn/resample.hpp"
#include "kiln/op/nn/roi_align.hpp"
#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

std::string first_kernel(const std::function<void(builder&)>& make) {
  const executable e = compile_eigen(make);
  return e.report().steps[0].kernel;
}

struct table {
  dims lens;
  std::vector<std::int64_t> at;
  std::vector<double> weights;
};
// Taps anywhere in the extent, counted from either end; weights of few digits, so that sums of bytes are not next to
// where they are cut.
table random_table(std::int64_t in, std::int64_t out, std::int64_t taps, std::mt19937& engine) {
  table t{{taps, out}, {}, {}};
  for (std::int64_t i = 0; i < taps * out; ++i) {
    t.at.push_back(static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(2 * in)) - in);
    t.weights.push_back((static_cast<double>(engine() % 8) / 4 - .25) / static_cast<double>(taps));
  }
  return t;
}

// x of `lens` with `made` elements along each axis. Tables are constants or operands of the run.
void expect_resampled(dtype type, const dims& lens, const ints& axes, const ints& made, std::int64_t taps,
                      bool weighted) {
  SCOPED_TRACE(::testing::Message() << to_string(shape{type, lens}) << " axis " << axes[0] << ", " << axes.size()
                                    << " axes, taps " << taps);
  std::mt19937 engine(7);
  std::vector<table> tables;
  for (std::size_t k = 0; k < axes.size(); ++k)
    tables.push_back(random_table(lens[static_cast<std::size_t>(axes[k])].value(), made[k], taps, engine));
  const dtype real = type == dtype::f64 ? dtype::f64 : dtype::f32;
  for (const bool constant : {true, false}) {
    const auto make = [&](builder& b) {
      small_vector<value> in{b.input("x", type, lens)};
      for (std::size_t k = 0; k < tables.size(); ++k) {
        const table& t = tables[k];
        const std::string name = std::to_string(k);
        in.push_back(constant ? b.constant<std::int64_t>(dtype::i64, t.lens, t.at)
                              : b.input("at" + name, dtype::i64, t.lens));
        if (weighted)
          in.push_back(constant ? b.constant<double>(real, t.lens, t.weights) : b.input("w" + name, real, t.lens));
      }
      b.output(b.add(op::resample{axes, weighted}, in));
    };
    std::vector<argument> inputs = random_inputs(make, 3, -100, 100);
    for (std::size_t k = 0, i = 1; k < tables.size() && !constant; ++k) {
      inputs[i++] = argument(literal::of<std::int64_t>({dtype::i64, tables[k].lens}, tables[k].at));
      if (weighted) inputs[i++] = argument(literal::of<double>({real, tables[k].lens}, tables[k].weights));
    }
    const bool exact = !weighted || is_integer(type);
    expect_same(make, inputs,
                exact                ? tolerance{0, 0}
                : type == dtype::f64 ? tolerance{1e-12, 1e-12}
                                     : tolerance{2e-5, 2e-4});
    EXPECT_EQ(first_kernel(make), weighted ? "resample" : "resample, nearest");
    if (::testing::Test::HasFailure()) return;
  }
}

struct axes_case {
  dims lens;
  ints axes, made;
};
const axes_case axes_cases[] = {
    {{2, 3, 5, 7}, {2, 3}, {11, 9}},
    {{1, 1, 1, 1}, {2, 3}, {4, 5}},
    {{2, 6, 5, 3}, {1, 2}, {13, 4}},
    {{1, 6, 5, 40}, {1, 2}, {9, 11}},
    {{3, 40}, {1}, {77}},
    {{1, 2, 4, 5, 6}, {2, 3, 4}, {5, 3, 13}},
    {{4, 3, 2, 5}, {1, 3}, {2, 17}},
    {{3, 4, 5}, {0}, {7}},
    {{0, 2, 3, 4}, {2, 3}, {6, 8}},
    {{1, 2, 70, 90}, {2, 3}, {33, 200}},
    {{1, 1, 600, 20}, {2, 3}, {250, 41}},
    {{2, 3, 4}, {1, 2}, {0, 5}},
};

TEST(resample, sums_equal_the_reference) {
  for (const auto& [lens, axes, made] : axes_cases)
    for (const dtype type : {dtype::f32, dtype::f64, dtype::u8, dtype::i8})
      for (const std::int64_t taps : {1, 2, 3, 4, 7}) {
        if (taps > 4 && axes.size() > 2) continue;  // the reference takes all combinations
        expect_resampled(type, lens, axes, made, taps, true);
        if (::testing::Test::HasFailure()) return;
      }
}
TEST(resample, picked_elements_equal_the_reference) {
  for (const auto& [lens, axes, made] : axes_cases)
    for (const dtype type : {dtype::f32, dtype::i64, dtype::u8, dtype::bf16, dtype::boolean}) {
      expect_resampled(type, lens, axes, made, 1, false);
      if (::testing::Test::HasFailure()) return;
    }
}
TEST(resample, repeats_elements) {
  for (const std::int64_t times : {1, 2, 3, 4, 5})
    for (const dims& lens : {dims{1, 2, 7, 37}, dims{1, 7, 5, 3}, dims{1, 2, 3, 16}, dims{1, 2, 3, 15}}) {
      const auto make = [&](builder& b, dtype type, std::int64_t left) {
        small_vector<value> in{b.input("x", type, lens)};
        ints axes{1, 2};
        if (!(lens[3] == dimension(3))) axes = {2, 3};
        for (const std::int64_t a : axes) {
          std::vector<std::int64_t> at;
          for (std::int64_t i = 0; i < lens[static_cast<std::size_t>(a)].value() * times - left; ++i)
            at.push_back(i / times);
          in.push_back(b.constant<std::int64_t>(dtype::i64, {1, static_cast<std::int64_t>(at.size())}, at));
        }
        b.output(b.add(op::resample{axes, false}, in));
      };
      for (const dtype type : {dtype::f32, dtype::u8, dtype::bf16, dtype::i64})
        for (const std::int64_t left : {0, 1}) expect_same([&](builder& b) { make(b, type, left); }, {0, 0});
    }
}
TEST(resample, names_a_position_outside) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f32, {4});
    b.output(b.add(op::resample{{0}, false}, x, b.input("at", dtype::i64, {1, 2})));
  };
  const executable e = compile_eigen(make);
  const std::vector<argument> in{
      random_argument({dtype::f32, {4}}, 1),
      argument(literal::of<std::int64_t>({dtype::i64, {1, 2}}, std::vector<std::int64_t>{3, 4}))};
  const auto [code, text] = error_of([&] { e.run(in); });
  EXPECT_EQ(code, errc::invalid_argument);
  EXPECT_THAT(text, ::testing::HasSubstr("an index lies within the extent"));
}

TEST(grid_sample, equals_the_reference) {
  using op::sampling_mode, op::sampling_padding;
  const std::pair<dims, dims> cases[] = {
      {{2, 3, 7}, {2, 9, 1}},       {{2, 3, 5, 6}, {2, 4, 3, 2}},
      {{1, 1, 1, 1}, {1, 2, 5, 2}}, {{1, 4, 3, 4, 5}, {1, 3, 2, 4, 3}},
      {{0, 2, 3, 3}, {0, 2, 2, 2}}, {{1, 2, 20, 30}, {1, 70, 41, 2}},
      {{1, 2, 6, 7}, {1, 0, 3, 2}}, {{1, 70, 9, 8}, {1, 33, 2}},
      {{1, 2, 0, 4}, {1, 3, 2}},
  };
  for (const auto& [image, grid] : cases)
    for (const sampling_mode mode : {sampling_mode::nearest, sampling_mode::linear, sampling_mode::cubic})
      for (const sampling_padding padding :
           {sampling_padding::zeros, sampling_padding::border, sampling_padding::reflection})
        for (const bool corners : {false, true})
          for (const bool normalized : {true, false}) {
            SCOPED_TRACE(::testing::Message() << to_string(shape{dtype::f32, image}) << ' ' << to_string(mode) << ' '
                                              << to_string(padding) << ' ' << corners << normalized);
            const auto make = [&](builder& b) {
              const value x = b.input("x", dtype::f32, image);
              b.output(
                  b.add(op::grid_sample{mode, padding, corners, normalized}, x, b.input("grid", dtype::f32, grid)));
            };
            std::vector<argument> in = random_inputs(make, 5);
            in[1] = random_argument({dtype::f32, grid}, 9, -2.5, normalized ? 2.5 : 9);
            expect_same(make, in, {1e-5, 1e-5});
            EXPECT_EQ(first_kernel(make), "grid_sample " + std::string(to_string(mode)));
            if (::testing::Test::HasFailure()) return;
          }
}

// A table holds the taps of several of these images, or of a part of one.
TEST(grid_sample, of_many_images_equals_the_reference) {
  using op::sampling_mode;
  for (const dtype type : {dtype::f32, dtype::f64})
    for (const auto& [image, grid] :
         {std::pair<dims, dims>{{40, 2, 9, 8}, {40, 7, 2}}, std::pair<dims, dims>{{5, 2, 9, 8}, {5, 5003, 2}},
          std::pair<dims, dims>{{300, 1, 3, 4}, {300, 33, 2}}})
      for (const sampling_mode mode : {sampling_mode::nearest, sampling_mode::linear, sampling_mode::cubic}) {
        SCOPED_TRACE(::testing::Message() << to_string(shape{type, image}) << ' ' << to_string(mode));
        const auto make = [&](builder& b) {
          b.output(b.add(op::grid_sample{.mode = mode}, b.input("x", type, image), b.input("grid", type, grid)));
        };
        const double close = type == dtype::f64 ? 1e-13 : 1e-5;
        expect_same(make, random_inputs(make, 5), {close, close});
        if (::testing::Test::HasFailure()) return;
      }
}

// f32 has no 2^24 + 3, the last place: it rounds to that after it, which here is the next channel's first.
TEST(grid_sample, of_an_extent_beyond_the_whole_numbers_of_f32) {
  constexpr std::int64_t n = (1 << 24) + 4;
  std::vector<argument> in{argument(shape{dtype::f32, {1, 2, n}}), argument(shape{dtype::f32, {1, 1, 1}})};
  auto* const x = in[0].as<float>().data();
  std::fill_n(x, 2 * n, 0.F);
  x[n - 1] = 3, x[n] = 7, x[2 * n - 1] = 5;
  in[1].as<float>()[0] = 1;
  for (const op::sampling_mode mode : {op::sampling_mode::nearest, op::sampling_mode::linear})
    for (const bool constant : {false, true}) {  // the kernel takes extents of a run, the op's own computation others
      SCOPED_TRACE(::testing::Message() << to_string(mode) << ' ' << constant);
      const executable e = compile_eigen([&](builder& b) {
        const op::grid_sample op{.mode = mode, .padding = op::sampling_padding::border, .align_corners = true};
        const value image = b.input("x", dtype::f32, {1, 2, constant ? dimension(n) : dimension::symbol("n")});
        b.output(b.add(op, image, b.input("grid", dtype::f32, {1, 1, 1})));
      });
      EXPECT_THAT(e.run(in)[0].to<float>(), ::testing::ElementsAre(3, 5));
    }
}

TEST(grid_sample, of_f64_equals_the_reference) {
  using op::sampling_mode, op::sampling_padding;
  const std::pair<dims, dims> cases[] = {{{2, 3, 7}, {2, 9, 1}},
                                         {{1, 3, 20, 30}, {1, 70, 41, 2}},
                                         {{1, 4, 3, 4, 5}, {1, 3, 2, 4, 3}},
                                         {{2, 1, 9, 8}, {2, 5003, 2}}};  // more taps of a plane than are found at once
  for (const auto& [image, grid] : cases)
    for (const sampling_mode mode : {sampling_mode::nearest, sampling_mode::linear, sampling_mode::cubic})
      for (const sampling_padding padding :
           {sampling_padding::zeros, sampling_padding::border, sampling_padding::reflection}) {
        const auto make = [&](builder& b) {
          const value x = b.input("x", dtype::f64, image);
          b.output(b.add(op::grid_sample{mode, padding, false, true}, x, b.input("grid", dtype::f64, grid)));
        };
        std::vector<argument> in = random_inputs(make, 5);
        in[1] = random_argument({dtype::f64, grid}, 9, -2.5, 2.5);
        expect_same(make, in, {1e-13, 1e-13});
        EXPECT_EQ(first_kernel(make), "grid_sample " + std::string(to_string(mode)));
      }
}

// Positions that are no numbers, infinite, or exactly at elements and edges, alone and beside others.
TEST(grid_sample, of_any_position_equals_the_reference) {
  using op::sampling_mode, op::sampling_padding;
  constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> at;
  for (std::int64_t i = 0; i < 83; ++i)
    for (const double v : {nan, -1., 1., 0., infinity, -infinity, 1e30, -1.0000001, .2, -1. / 3})
      at.push_back((i + static_cast<std::int64_t>(at.size())) % 3 == 0 ? v : .1);
  for (const dtype type : {dtype::f32, dtype::f64})
    for (const sampling_mode mode : {sampling_mode::nearest, sampling_mode::linear, sampling_mode::cubic})
      for (const sampling_padding padding :
           {sampling_padding::zeros, sampling_padding::border, sampling_padding::reflection})
        for (const bool corners : {false, true})
          for (const std::int64_t height : {4, 1}) {
            SCOPED_TRACE(::testing::Message() << to_string(type) << ' ' << to_string(mode) << ' ' << to_string(padding)
                                              << " corners " << corners << " height " << height);
            const auto make = [&](builder& b) {
              const value x = b.input("x", type, {1, 3, height, 5});
              b.output(
                  b.add(op::grid_sample{mode, padding, corners, true}, x, b.constant<double>(type, {1, 415, 2}, at)));
            };
            expect_same(make, {1e-5, 1e-5});
          }
}

// Sums of pairs that lie close together, far apart, in falling order, and in rows shorter and longer than vectors.
TEST(resample, pairs_equal_the_reference) {
  std::vector<std::int64_t> row_at;
  std::vector<double> row_weights;
  for (std::int64_t i = 0; i < 38; ++i)
    row_at.push_back(i * 5 % 13), row_weights.push_back(.25 * static_cast<double>(1 + i % 4));
  for (const std::int64_t extent : {2, 15, 31, 33, 100})
    for (const std::int64_t made : {3, 16, 46, 117})
      for (const bool falls : {false, true}) {
        std::vector<std::int64_t> at;
        std::vector<double> weights;
        for (const std::int64_t tap : {0, 1})
          for (std::int64_t i = 0; i < made; ++i) {
            const std::int64_t from = std::min(extent - 1, i * extent / made + tap);
            at.push_back(falls ? extent - 1 - from : from);
            weights.push_back(.125 * static_cast<double>(1 + (i + 3 * tap) % 7));
          }
        const auto make = [&](builder& b) {
          const value x = b.input("x", dtype::f32, {3, extent});
          b.output(b.add(op::resample{{1}, true}, x, b.constant<std::int64_t>(dtype::i64, {2, made}, at),
                         b.constant<double>(dtype::f32, {2, made}, weights)));
        };
        expect_same(make, {1e-6, 1e-6});
        const auto make_image = [&](builder& b) {
          const value x = b.input("x", dtype::f32, {2, 13, extent});
          const value rows = b.constant<std::int64_t>(dtype::i64, {2, 19}, row_at);
          b.output(b.add(op::resample{{1, 2}, true}, x, rows, b.constant<double>(dtype::f32, {2, 19}, row_weights),
                         b.constant<std::int64_t>(dtype::i64, {2, made}, at),
                         b.constant<double>(dtype::f32, {2, made}, weights)));
        };
        expect_same(make_image, {1e-6, 1e-6});
      }
}

TEST(roi_align, equals_the_reference) {
  for (const bool greatest : {false, true})
    for (const bool half : {false, true})
      for (const std::int64_t samples : {0, 1, 2, 5})
        for (const dims& image : {dims{2, 3, 20, 30}, dims{1, 1, 1, 1}, dims{2, 70, 9, 5}}) {
          SCOPED_TRACE(::testing::Message()
                       << to_string(shape{dtype::f32, image}) << " samples " << samples << ' ' << greatest << half);
          const std::int64_t regions = 7;
          const auto make = [&](builder& b) {
            const op::roi_align op{3, 5, samples, .75F, half, greatest};
            const value x = b.input("x", dtype::f32, image), rois = b.input("rois", dtype::f32, {regions, 4});
            b.output(b.add(op, x, rois, b.input("at", dtype::i64, {regions})));
          };
          std::vector<argument> in = random_inputs(make, 5);
          in[1] = random_argument({dtype::f32, {regions, 4}}, 9, -6, 40);
          in[2] = random_argument({dtype::i64, {regions}}, 2, -1, image[0] == dimension(2) ? 2 : 1);
          expect_same(make, in, {1e-5, 1e-5});
          EXPECT_EQ(first_kernel(make), greatest ? "roi_align max" : "roi_align mean");
          if (::testing::Test::HasFailure()) return;
        }
}
TEST(roi_align, takes_the_greatest_of_whole_pixels) {
  for (const dims& image : {dims{2, 3, 20, 30}, dims{1, 1, 1, 1}, dims{2, 70, 9, 5}, dims{1, 2, 150, 220}}) {
    const std::int64_t regions = 9;
    const auto make = [&](builder& b) {
      const value x = b.input("x", dtype::f32, image), rois = b.input("rois", dtype::f32, {regions, 4}),
                  at = b.input("at", dtype::i64, {regions});
      b.output(b.add(op::roi_align{3, 5, -1, .75F, false, true}, x, rois, at));
      b.output(b.add(op::roi_align{1, 1, -1, 1.5F, false, true}, x, rois, at));
    };
    std::vector<argument> in = random_inputs(make, 5);
    in[1] = random_argument({dtype::f32, {regions, 4}}, 9, -6, static_cast<double>(image[3].value()) + 10);
    in[2] = random_argument({dtype::i64, {regions}}, 2, -1, image[0] == dimension(2) ? 2 : 1);
    expect_same(make, in, {0, 0});
    EXPECT_EQ(first_kernel(make), "roi_align whole pixels");
  }
}
// A bin of more samples than a kernel's scratch holds at once.
TEST(roi_align, takes_any_number_of_samples) {
  for (const bool greatest : {false, true}) {
    const auto make = [&](builder& b) {
      const value x = b.input("x", dtype::f32, {1, 2, 150, 220}), rois = b.input("rois", dtype::f32, {1, 4});
      b.output(b.add(op::roi_align{1, 2, 0, 1, true, greatest}, x, rois, b.input("at", dtype::i64, {1})));
    };
    std::vector<argument> in = random_inputs(make, 5);
    in[1] = argument(literal::of<double>({dtype::f32, {1, 4}}, std::vector<double>{1, 2, 215, 148}));
    in[2] = argument(literal::of<std::int64_t>({dtype::i64, {1}}, std::vector<std::int64_t>{0}));
    expect_same(make, in, {1e-5, 1e-5});
  }
}

TEST(expand_sampling, resample_is_gathers) {
  for (const dtype type : {dtype::f32, dtype::u8, dtype::i8})
    for (const bool weighted : {false, true}) {
      const auto make = [&](builder& b) {
        small_vector<value> in{b.input("x", type, {2, 3, 5, 4})};
        std::mt19937 engine(5);
        for (const std::int64_t n : {5, 4}) {
          const table t = random_table(n, 7, weighted ? 3 : 1, engine);
          in.push_back(b.constant<std::int64_t>(dtype::i64, t.lens, t.at));
          if (weighted) in.push_back(b.constant<double>(dtype::f32, t.lens, t.weights));
        }
        b.output(b.add(op::resample{{2, 3}, weighted}, in));
      };
      expect_expanded(make, random_inputs(make, 3, -100, 300), {1e-5, is_float(type) ? 1e-4 : 0});
    }
}

}  // namespace
}  // namespace kiln::testing
