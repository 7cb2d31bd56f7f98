// When products, convolutions and attention have the kernels of families, and how these are planned, without a device.
#include <gmock/gmock.h>

#include "hip_kernels/plan_cases.hpp"
#include "kiln/backend/hip/impl/conv/convolution_parts.hpp"
#include "kiln/backend/hip/impl/conv/held_columns.hpp"
#include "kiln/backend/hip/impl/gemm/streamed.hpp"
#include "kiln/backend/hip/impl/gemm/untiled.hpp"
#include "kiln/backend/hip/kernels/attention/arguments.hpp"
#include "kiln/op/more.hpp"
#include "kiln/op/nn/resample.hpp"

namespace kiln::testing {
namespace {

hip::gemm_problem product_in_f32(std::int64_t rows, std::int64_t cols, std::int64_t depth) {
  hip::gemm_problem p = product_of(rows, cols, depth, false);
  p.type = p.types[0] = dtype::f32, p.a.vector = p.b.vector = 4;
  return p;
}

// A thread sums a result where sums are short, whatever the type is.
TEST(family_plans, short_sums_have_no_tiles) {
  const hip::architecture where = hip::architecture::named("sm_90");
  const auto atoms = [&](const hip::gemm_problem& p) {
    std::vector<std::string_view> all;
    for (const hip::gemm_tile& t : hip::tiles_for(p, where)) all.push_back(t.atom);
    return all;
  };
  const auto is_each = [](const std::vector<std::string_view>& all) { return all.front() == hip::each_result; };
  const auto has_each = [](const std::vector<std::string_view>& all) {
    return std::find(all.begin(), all.end(), hip::each_result) != all.end();
  };
  EXPECT_TRUE(is_each(atoms(product_in_f32(10000, 8, 16))));
  EXPECT_TRUE(has_each(atoms(product_of(10000, 8, 16, false))));
  hip::gemm_problem batch = product_in_f32(7, 11, 9);
  batch.batch0 = 3001;
  EXPECT_TRUE(is_each(atoms(batch)));
  EXPECT_TRUE(has_each(atoms(product_in_f32(10000, 8, 64))));
  EXPECT_FALSE(has_each(atoms(product_in_f32(10000, 8, 65))));
  EXPECT_FALSE(is_each(atoms(product_in_f32(4096, 4096, 64))));  // that fill tiles
}

// Few rows of either factor, of a type that no matrix unit multiplies, and whole runs of 16 bytes of the other.
TEST(family_plans, few_rows_of_the_vector_unit_are_streamed) {
  const auto first = [](const hip::gemm_problem& p, const char* name = "sm_90") {
    return hip::tiles_for(p, hip::architecture::named(name)).front().atom;
  };
  EXPECT_EQ(first(product_in_f32(1, 4096, 4096)), hip::streamed);
  EXPECT_EQ(first(product_in_f32(4, 256, 128)), hip::streamed);
  EXPECT_EQ(first(product_in_f32(256, 4, 128)), hip::streamed);
  EXPECT_NE(first(product_in_f32(5, 256, 128)), hip::streamed);
  EXPECT_NE(first(product_in_f32(4, 255, 128)), hip::streamed);
  EXPECT_NE(first(product_in_f32(4, 256, 124)), hip::streamed);
  hip::gemm_problem p = product_in_f32(4, 256, 128);
  p.b.vector = 2;
  EXPECT_NE(first(p), hip::streamed);
  // the many's rows are contiguous: there are to be whole runs of them
  p = product_in_f32(4, 256, 130);
  p.b = {hip::matrix_argument{nullptr, {0, 0}, 1, 256}, false, 4};
  EXPECT_EQ(first(p), hip::streamed);
  p.cols = 258;
  EXPECT_NE(first(p), hip::streamed);
  EXPECT_NE(first(product_of(4, 256, 128, false)), hip::streamed);
  EXPECT_EQ(first(product_in_f32(4, 256, 128), "gfx1030"), hip::streamed);
  EXPECT_NE(first(product_in_f32(4, 256, 128), "gfx90a"), hip::streamed);  // whose matrix unit multiplies f32
}

// What a thread holds fits in its registers, whatever the window and however many outputs would be stored at once.
TEST(family_plans, columns_of_a_window_are_held) {
  int held = 0;
  for (const bool backwards : {false, true})
    for (int taps = 1; taps <= 40; ++taps)
      for (int stride = 1; stride <= 9; ++stride)
        for (const int dilation : {1, 3})
          for (int most : {1, 4, 8}) {
            gpu::grouped_tile t;
            t.backwards = backwards, t.cols = taps, t.stride_cols = stride, t.dilation_cols = dilation;
            t.pad_cols = (taps - 1) / 2;
            if (!hip::hold_columns(t, 1)) continue;
            for (const int enough : {1, 2, 4, 8}) {
              hip::hold_most_columns(t, most, [&](int outputs) { return outputs <= enough; });
              ASSERT_LE(t.reach(), hip::most_held_columns) << taps << " " << stride << " " << dilation << " " << most;
              ASSERT_GE(t.outputs, 1);
              ASSERT_GE(t.part, 1);
              ++held;
            }
          }
  EXPECT_GT(held, 1000);
  // of eight outputs 22 taps meet 29 columns
  gpu::grouped_tile t;
  t.backwards = true, t.cols = 22;
  EXPECT_FALSE(hip::hold_columns(t, 8));
  hip::hold_most_columns(t, 8, [](int) { return true; });
  EXPECT_LE(t.reach(), hip::most_held_columns);
  EXPECT_LT(t.outputs, 8);
}

// The kernels that a family lowers an op to, by their names.
TEST(family_plans, convolutions_of_few_channels_a_group_have_a_kernel) {
  const auto where = std::make_shared<const hip::context>(hip::architecture::named("sm_90"), "");
  const auto name = [&](const operation& op, const shape& x, const shape& w) {
    const lowered_op lowered(hip::lower_grouped, op, {x, w}, where);
    return lowered.made ? lowered.made->name() : std::string();
  };
  const shape x(dtype::f32, {2, 16, 9, 9});
  EXPECT_EQ(name(op::convolution{.stride = {1, 1}, .group = 16}, x, shape(dtype::f32, {16, 1, 3, 3})),
            "depthwise convolution");
  EXPECT_EQ(name(op::convolution{.stride = {1, 1}, .group = 8}, x, shape(dtype::f32, {8, 2, 3, 3})),
            "grouped convolution");
  EXPECT_EQ(name(op::deconvolution{.stride = {2, 2}, .group = 16}, x, shape(dtype::f32, {16, 1, 3, 3})),
            "transposed depthwise convolution");
  EXPECT_EQ(name(op::convolution{.stride = {1, 1}, .group = 4}, x, shape(dtype::f32, {4, 4, 3, 3})), "");
}

// What a convolution needs beside its operands: a copy of images whose channels lie apart.
TEST(family_plans, images_whose_channels_lie_apart_are_copied) {
  if (const std::string why = why_skipped("sm_90"); !why.empty()) GTEST_SKIP() << why;
  const auto where = std::make_shared<const hip::context>(hip::architecture::named("sm_90"), "");
  const shape x(dtype::f16, {16, 64, 56, 56}), w(dtype::f16, {512, 64, 1, 1});
  const lowered_op lowered(hip::lower_convolution, op::convolution{.stride = {2, 2}}, {x, w}, where);
  const tensor out = lowered_op::at(nullptr, lowered.result), apart = lowered_op::at(nullptr, x);
  const auto room_of = [&](const tensor& images) {
    const tensor in[] = {images, lowered_op::at(nullptr, w)};
    return lowered.made->scratch_bytes(in, {&out, 1}, 1);
  };
  EXPECT_EQ(room_of(apart),
            room_of(hip::channels_last_images::copy_of(apart, nullptr)) + hip::channels_last_images::bytes(apart));
}

// Attention of f32 by few queries shares the keys of a head among blocks, which no other kernel of f32 does.
TEST(family_plans, attention_of_the_vector_unit_splits_keys) {
  if (const std::string why = why_skipped("sm_90"); !why.empty()) GTEST_SKIP() << why;
  const auto where = std::make_shared<const hip::context>(hip::architecture::named("sm_90"), "");
  const auto room_of = [&](std::int64_t keys, std::int64_t value_depth) {
    const shape q(dtype::f32, {1, 8, 1, 64}), k(dtype::f32, {1, 8, keys, 64}), v(dtype::f32, {1, 8, keys, value_depth});
    const lowered_op lowered(hip::lower_attention, op::attention{}, {q, k, v}, where);
    std::vector<tensor> in;
    for (const shape& s : lowered.shapes) in.push_back(lowered_op::at(nullptr, s));
    const tensor out = lowered_op::at(nullptr, lowered.result);
    return lowered.made->scratch_bytes(in, {&out, 1}, 1);
  };
  EXPECT_GT(room_of(1000, 64), 0u);
  EXPECT_EQ(room_of(40, 64), 0u);
  EXPECT_EQ(room_of(1000, 320), 0u);  // deeper than that kernel takes
}

// Attention of 16-bit floats by few queries is split into whole rounds of blocks: one a multiprocessor, of which there
// are 132 here, and two where keys are few.
TEST(family_plans, attention_of_few_rows_splits_keys) {
  if (const std::string why = why_skipped("sm_90"); !why.empty()) GTEST_SKIP() << why;
  const auto where = std::make_shared<const hip::context>(hip::architecture::named("sm_90"), "");
  const auto splits_of = [&](std::int64_t groups, std::int64_t keys) {
    const shape q(dtype::f16, {1, 4 * groups, 1, 128}), k(dtype::f16, {1, groups, keys, 128});
    const lowered_op lowered(hip::lower_attention, op::attention{}, {q, k, k}, where);
    std::vector<tensor> in;
    for (const shape& s : lowered.shapes) in.push_back(lowered_op::at(nullptr, s));
    const tensor out = lowered_op::at(nullptr, lowered.result);
    const std::size_t room = lowered.made->scratch_bytes(in, {&out, 1}, 1);
    const auto of_split = static_cast<std::size_t>(groups * gpu::split_floats(16, 128)) * sizeof(float);
    return room / of_split;  // and a counter for each group
  };
  EXPECT_EQ(splits_of(8, 8192), 16u);
  EXPECT_EQ(splits_of(8, 1500), 5u);  // at least two steps of each warp
  EXPECT_EQ(splits_of(8, 300), 2u);
  EXPECT_EQ(splits_of(200, 300), 0u);
  EXPECT_EQ(splits_of(32, 8192), 4u);
  EXPECT_EQ(splits_of(132, 8192), 0u);
  EXPECT_EQ(splits_of(160, 8192), 3u);  // 480 blocks in four rounds, where 640 in five fill little more
}

// Nothing is read of what has no element: an index into it is an error, and no launch.
TEST(family_plans, nothing_is_read_of_empty_operands) {
  const auto where = std::make_shared<const hip::context>(hip::architecture::named("sm_90"), "");
  const auto code_of = [&](const operation& op, const std::vector<shape>& shapes) {
    const lowered_op lowered(hip::lower_sampling, op, shapes, where);
    std::vector<tensor> given;
    for (const shape& s : shapes) given.push_back(lowered_op::at(nullptr, s));
    const tensor out = lowered_op::at(nullptr, lowered.result);
    try {
      lowered.made->prepare(given, {&out, 1});
    } catch (const error& e) {
      EXPECT_THAT(e.what(), ::testing::HasSubstr("an index lies within the extent"));
      return e.code();
    }
    return errc::internal;
  };
  const shape tables(dtype::i64, {1, 3}), weights(dtype::f32, {1, 3});
  for (const shape& x : {shape(dtype::f32, {0, 4}), shape(dtype::f32, {0, 1})}) {
    EXPECT_EQ(code_of(op::resample{{0}, false}, {x, tables}), errc::invalid_argument);
    EXPECT_EQ(code_of(op::resample{{0}, true}, {x, tables, weights}), errc::invalid_argument);
  }
  const shape rois(dtype::f32, {5, 4}), images(dtype::i64, {5});
  EXPECT_EQ(code_of(op::roi_align{3, 2, 1, 1, true, false}, {shape(dtype::f32, {0, 2, 8, 8}), rois, images}),
            errc::invalid_argument);
}

}  // namespace
}  // namespace kiln::testing
