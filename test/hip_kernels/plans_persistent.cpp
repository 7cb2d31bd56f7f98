// Which products blocks work tile after tile, and how the copy unit of sm_90 is told to read and write for them.
#include <gmock/gmock.h>

#include <algorithm>

#include "hip_kernels/plan_cases.hpp"
#include "kiln/backend/hip/impl/gemm/blas.hpp"
#include "kiln/backend/hip/impl/gemm/untiled.hpp"
#include "kiln/graph/builder.hpp"

namespace kiln::testing {
namespace {

// How the copy unit is told to read windows: from the first one's corner to the last one's, in bytes and elements.
TEST(tile_kernels, windows_are_boxes_of_the_copy_unit) {
  hip::gemm_problem p = product_of(64 * 14 * 14, 256, 256 * 9, false);
  p.channels = 256, p.images = 64, p.pixels = 14 * 14;
  hip::image_argument image{};
  image.channel_step = 1, image.col_step = 256, image.row_step = 28 * 256, image.image_step = 28 * 28 * 256;
  image.planes = 1, image.height = image.width = 28, image.out_rows = image.out_cols = 14, image.out_pixels = 196;
  image.stride_rows = image.stride_cols = 2, image.dilation_rows = image.dilation_cols = 1;
  image.pad_rows = image.pad_cols = 1;
  p.a = {image, true, 8, "64, 8, 256, 3, 3"};
  const hip::architecture where = hip::architecture::named("sm_90");
  const auto first = [&] { return hip::tiles_for(p, where).front(); };
  ASSERT_TRUE(first().persistent());
  const hip::gemm_plan plan = hip::plan_gemm(p, nullptr, first(), where);
  ASSERT_TRUE(plan.boxes_a && plan.boxes_b);
  EXPECT_EQ(plan.grid.x, 98u);
  const hip::tensor_boxes &a = *plan.boxes_a, &b = *plan.boxes_b;
  EXPECT_EQ(a.mode, hip::copy_mode::im2col);
  EXPECT_EQ(a.rank, 4);
  EXPECT_THAT(a.extents, ::testing::ElementsAre(256, 28, 28, 64));
  EXPECT_THAT(a.step_bytes, ::testing::ElementsAre(512, 28 * 512, 28 * 28 * 512));
  EXPECT_THAT(a.lower, ::testing::ElementsAre(-1, -1));
  EXPECT_THAT(a.upper, ::testing::ElementsAre(-2, -2));  // the last window begins at 25 of 27
  EXPECT_THAT(a.stride, ::testing::ElementsAre(1, 2, 2, 1));
  EXPECT_EQ(a.across, 128u);
  EXPECT_EQ(b.mode, hip::copy_mode::tiled);
  EXPECT_EQ(b.rank, 2);
  EXPECT_EQ(b.extents[0], 256u * 9);
  EXPECT_EQ(b.extents[1], 256u);
  EXPECT_EQ(b.step_bytes[0], 256u * 9 * 2);
  EXPECT_EQ(b.across, static_cast<unsigned>(first().cols));
  // images that are one and the same, or lie at no distance because there is one
  std::get<hip::image_argument>(p.a.value).image_step = 0;
  EXPECT_FALSE(first().persistent());
  p.images = 1;
  EXPECT_TRUE(first().persistent());
  p.images = 64, std::get<hip::image_argument>(p.a.value).image_step = 28 * 28 * 256;
  // channels that are no multiple of a box, corners too far away, kernels that run backwards
  p.channels = 96, p.depth = 96 * 9;
  EXPECT_FALSE(first().persistent());
  p.channels = 256, p.depth = 256 * 9;
  std::get<hip::image_argument>(p.a.value).pad_cols = 128;
  EXPECT_FALSE(first().persistent());
  std::get<hip::image_argument>(p.a.value).pad_cols = 1;
  p.a.image_arguments += ", image_places<0, true, 1, 1, 1>";
  EXPECT_FALSE(first().persistent());
}
// A phase of a transposed convolution whose kernel is 4 x 6 in strides of 2: windows begin with their last tap.
TEST(tile_kernels, phases_are_boxes_of_the_copy_unit) {
  hip::gemm_problem p = product_of(64 * 14 * 20, 64, 128 * 6, false);
  p.channels = 128, p.images = 64, p.pixels = 20;
  hip::image_argument image{};
  image.channel_step = 1, image.col_step = 128, image.row_step = 20 * 128, image.image_step = 14 * 20 * 128;
  image.planes = 1, image.height = image.out_rows = 14, image.width = image.out_cols = 20, image.out_pixels = 280;
  image.stride_rows = image.stride_cols = 2, image.dilation_rows = image.dilation_cols = 1;
  image.pad_rows = 1, image.pad_cols = 0;
  p.a = {image, true, 8, "128, 8, 128, 2, 3, image_places<0, true, 1, 1, 1>", 2, 3};
  const hip::architecture where = hip::architecture::named("sm_90");
  const hip::gemm_tile tile = hip::tiles_for(p, where).front();
  ASSERT_TRUE(tile.persistent());
  const hip::gemm_plan plan = hip::plan_gemm(p, nullptr, tile, where);
  ASSERT_TRUE(plan.boxes_a);
  EXPECT_THAT(plan.boxes_a->extents, ::testing::ElementsAre(128, 20, 14, 64));
  EXPECT_THAT(plan.boxes_a->lower, ::testing::ElementsAre(-2, 0));  // columns, rows
  EXPECT_THAT(plan.boxes_a->upper, ::testing::ElementsAre(-2, 0));  // as far from the last pixel
  EXPECT_THAT(plan.boxes_a->stride, ::testing::ElementsAre(1, 1, 1, 1));
  if (why_skipped("sm_90").empty()) {
    EXPECT_FALSE(hip::compile(plan.what, where, {}).empty());
  }
}
// Which products work tile after tile: all but those for each of whose results lanes read an element themselves.
TEST(tile_kernels, persistent_products) {
  const hip::architecture where = hip::architecture::named("sm_90");
  const auto first = [&](std::int64_t rows, std::int64_t cols, std::int64_t depth, bool adds) {
    return hip::tiles_for(product_of(rows, cols, depth, adds), where).front();
  };
  EXPECT_TRUE(first(12544, 256, 1024, false).persistent());
  EXPECT_TRUE(first(200704, 64, 256, false).persistent());
  EXPECT_EQ(first(200704, 64, 256, false).cols, 64);
  EXPECT_EQ(first(50176, 128, 512, false).cols, 128);
  EXPECT_EQ(first(12544, 256, 1024, false).cols, 256);
  EXPECT_TRUE(first(200704, 256, 64, false).persistent());
  // groups of warps alternate where there is little to multiply beside what is stored
  EXPECT_TRUE(first(200704, 64, 576, false).alternate);
  EXPECT_TRUE(first(65536, 64, 512, false).alternate);
  EXPECT_FALSE(first(50176, 128, 1152, false).alternate);
  EXPECT_FALSE(first(12544, 256, 2304, false).alternate);
  for (const auto& tile : {first(200704, 256, 64, true), first(12544, 1024, 256, true)}) {
    EXPECT_TRUE(tile.persistent());
    EXPECT_TRUE(tile.alternate);
    EXPECT_EQ(tile.cols, 128);
    EXPECT_EQ(tile.boxes, 4);
  }
  hip::gemm_problem wide = product_of(200704, 256, 64, true);
  wide.types[1] = dtype::f32;
  const hip::gemm_tile tile = hip::tiles_for(wide, where).front();
  EXPECT_EQ(tile.atom, "wgmma");
  EXPECT_FALSE(tile.persistent());
  EXPECT_EQ(tile.cols, 128);
}
// Factors whose rows or columns are neighbors are read in boxes of 64 of them and as many depths; where tiles have
// parts without a row, boxes of 64 are read alone.
TEST(tile_kernels, factors_are_boxes_whichever_way_they_lie) {
  const hip::architecture where = hip::architecture::named("sm_90");
  hip::gemm_problem p = product_of(12544, 320, 1024, false);
  p.a = {hip::matrix_argument{nullptr, {0, 0}, 1, 12552}, false, 8};
  const auto plan_of = [&](int cols) {
    const auto tiles = hip::tiles_for(p, where);
    const auto at = std::find_if(tiles.begin(), tiles.end(),
                                 [&](const hip::gemm_tile& t) { return t.persistent() && t.cols == cols; });
    EXPECT_NE(at, tiles.end());
    return hip::plan_gemm(p, nullptr, *at, where);
  };
  const hip::gemm_plan plan = plan_of(256);
  ASSERT_TRUE(plan.boxes_a && plan.boxes_b);
  EXPECT_EQ(plan.boxes_a->extents[0], 12544u);
  EXPECT_EQ(plan.boxes_a->extents[1], 1024u);
  EXPECT_EQ(plan.boxes_a->step_bytes[0], 12552u * 2);
  EXPECT_EQ(plan.boxes_a->along, 64u);
  EXPECT_EQ(plan.boxes_a->across, 64u);
  EXPECT_EQ(plan.boxes_b->across, 64u);  // 192 columns of the second tile don't exist
  EXPECT_EQ(plan_of(64).boxes_b->across, 64u);
  p.cols = 512;
  EXPECT_EQ(plan_of(256).boxes_b->across, 256u);
  // floats of eight bits are multiplied along the depth alone
  p.type = dtype::f8e4m3fn, p.a.vector = p.b.vector = 16;
  EXPECT_FALSE(hip::tiles_for(p, where).front().persistent());
}
// What an epilogue's functions take: sums and comparisons are no functions.
TEST(tile_kernels, functions_of_epilogues_are_counted) {
  const auto work = [](const auto& make) {
    builder b;
    b.output(make(b.input("x", dtype::f16, {4, 8}), b.input("y", dtype::f16, {4, 8})));
    const program p = b.finish();
    const auto body = hip::row_program::make(p.main());
    return body ? hip::work_of(&*body) : -1;
  };
  EXPECT_EQ(hip::work_of(nullptr), 0);
  EXPECT_EQ(work([](value x, value y) { return (x + y).relu() * x; }), 0);
  EXPECT_EQ(work([](value x, value y) { return (x + y).gelu(); }), 20);
  EXPECT_EQ(work([](value x, value y) { return (x + y).silu() * y.erf(); }), 40);
}
// The library computes large products that nothing follows, and those whose epilogue takes so long that other tiles
// than those of blocks that work tile after tile would apply it.
TEST(tile_kernels, the_library_is_asked_where_kernels_in_turns_apply_no_epilogue) {
  const hip::architecture where = hip::architecture::named("sm_90");
  const auto with_functions = [](int count) {
    builder b;
    value x = b.input("x", dtype::f16, {4, 8}) + b.input("y", dtype::f16, {4, 8});
    for (int k = 0; k < count; ++k) x = x.erf();
    b.output(x.relu());
    const program p = b.finish();
    return hip::row_program::make(p.main());
  };
  const auto none = with_functions(0), many = with_functions(120);
  ASSERT_TRUE(none && many);
  ASSERT_EQ(hip::work_of(&*many), 2400);
  hip::gemm_problem p = product_of(2048, 2048, 2048, true);
  EXPECT_TRUE(hip::tiles_for(p, where).front().persistent());
  EXPECT_FALSE(hip::blas_gemm::is_asked(p, &*none, where));
  EXPECT_TRUE(hip::blas_gemm::is_asked(p, &*many, where));
  p.work = hip::work_of(&*many);
  EXPECT_FALSE(hip::tiles_for(p, where).front().persistent());
  const hip::gemm_problem alone = product_of(4096, 4096, 4096, false);
  EXPECT_TRUE(hip::blas_gemm::is_asked(alone, nullptr, where));
  EXPECT_FALSE(hip::blas_gemm::is_asked(product_of(1024, 1024, 4096, false), nullptr, where));
  EXPECT_FALSE(hip::blas_gemm::is_asked(product_of(65536, 65536, 256, false), nullptr, where));
}
// Floats of eight bits have twice the depth in a step; few rows, and those that lie at odd addresses, have other tiles.
TEST(tile_kernels, persistent_float8_products) {
  const hip::architecture where = hip::architecture::named("sm_90");
  struct types {
    dtype of, to;
  };
  for (const types t : {types{dtype::f8e4m3fn, dtype::f16}, {dtype::f8e5m2, dtype::f8e5m2}}) {
    SCOPED_TRACE(std::string(to_string(t.of)));
    hip::gemm_problem p = product_of(4096, 4096, 2048, false);
    p.type = t.of, p.types[0] = t.to, p.a.vector = p.b.vector = 16, p.constant_b = true;
    const auto compiles = [&](const hip::gemm_tile& tile) {
      const hip::gemm_plan plan = hip::plan_gemm(p, nullptr, tile, where);
      return !why_skipped("sm_90").empty() || !hip::compile(plan.what, where, {}).empty();
    };
    const hip::gemm_tile large = hip::tiles_for(p, where).front();
    ASSERT_TRUE(large.persistent());
    EXPECT_EQ(large.depth, 128);
    const hip::gemm_plan plan = hip::plan_gemm(p, nullptr, large, where);
    ASSERT_TRUE(plan.boxes_a && plan.boxes_b);
    EXPECT_TRUE(plan.boxes_a->bytes);
    EXPECT_EQ(plan.boxes_a->along, 128u);
    EXPECT_EQ(plan.boxes_b->step_bytes[0], 2048u);
    EXPECT_EQ(plan.boxes_result.has_value(), t.to == dtype::f16);
    EXPECT_TRUE(compiles(large));
    p.rows = 3;
    const hip::gemm_tile few = hip::tiles_for(p, where).front();
    EXPECT_EQ(few.atom, "few_rows");
    EXPECT_TRUE(compiles(few));
    p.rows = 4096, p.a.vector = 4;
    const hip::gemm_tile plain = hip::tiles_for(p, where).front();
    EXPECT_EQ(plain.atom, "atom_fma");
    EXPECT_TRUE(compiles(plain));
    p.rows = 10000, p.cols = 8, p.depth = 16, p.a.vector = 16;
    const hip::gemm_tile each = hip::tiles_for(p, where).front();
    EXPECT_EQ(each.atom, hip::each_result);
    EXPECT_TRUE(compiles(each));
  }
  EXPECT_FALSE(hip::multiplies_float8(dtype::f8e4m3fnuz, where));
  EXPECT_FALSE(hip::multiplies_float8(dtype::f8e4m3fn, hip::architecture::named("sm_80")));
}
// How the copy unit writes results and brings what the epilogue adds; rows of lines that lie apart are places of these.
TEST(tile_kernels, results_are_boxes_of_the_copy_unit) {
  const hip::architecture where = hip::architecture::named("sm_90");
  hip::gemm_problem p = product_of(4000 * 48, 256, 128, true);
  for (auto& steps : p.steps) steps[2] = 264;
  const auto plan_of = [&] { return hip::plan_gemm(p, nullptr, hip::tiles_for(p, where).front(), where); };
  hip::gemm_plan plan = plan_of();
  ASSERT_TRUE(plan.boxes_result && plan.boxes_operand);
  EXPECT_EQ(plan.boxed, 1u);
  EXPECT_EQ(plan.boxes_result->mode, hip::copy_mode::tiled);
  EXPECT_EQ(plan.boxes_result->rank, 2);
  EXPECT_EQ(plan.boxes_result->extents[0], 256u);
  EXPECT_EQ(plan.boxes_result->extents[1], 4000u * 48);
  EXPECT_EQ(plan.boxes_result->step_bytes[0], 528u);
  EXPECT_EQ(plan.boxes_result->across, 64u);
  p.pixels = 48, p.steps[0][0] = 50 * 264, p.steps[1][0] = 48 * 264;
  plan = plan_of();
  ASSERT_TRUE(plan.boxes_result && plan.boxes_operand);
  for (const hip::tensor_boxes& boxes : {*plan.boxes_result, *plan.boxes_operand}) {
    EXPECT_EQ(boxes.mode, hip::copy_mode::im2col);
    EXPECT_EQ(boxes.rank, 3);
    EXPECT_EQ(boxes.extents[1], 48u);
    EXPECT_EQ(boxes.extents[2], 4000u);
    EXPECT_EQ(boxes.step_bytes[0], 528u);
  }
  EXPECT_EQ(plan.boxes_result->step_bytes[1], 50u * 528);
  EXPECT_EQ(plan.boxes_operand->step_bytes[1], 48u * 528);
  // steps that are no multiple of 16 bytes, types of other sizes, an address in between
  const auto boxes_of_first = [&] { return hip::tiles_for(p, where).front().boxes; };
  p.steps[0][0] += 4;
  EXPECT_EQ(boxes_of_first(), 0);
  p.steps[0][0] -= 4, p.types[0] = dtype::f32;
  EXPECT_EQ(boxes_of_first(), 0);
  p.types[0] = dtype::f16, p.aligned[0] = 8;
  EXPECT_EQ(boxes_of_first(), 0);
  p.aligned[0] = 16, p.aligned[1] = 2;
  EXPECT_EQ(plan_of().boxed, 0u);
}
// Lanes read what the epilogue adds to a box in words of two elements: where rows begin between words, one by one.
TEST(tile_kernels, operands_beside_boxes_are_read_by_words_where_rows_begin_at_words) {
  const hip::architecture where = hip::architecture::named("sm_90");
  struct rows_apart {
    std::int64_t result, operand;
    std::size_t aligned;
    const char* kind;
  };
  for (const rows_apart& step : {rows_apart{33, 33, 16, "strided"},
                                 {33, 34, 16, "contiguous"},
                                 {40, 33, 16, "strided"},
                                 {40, 34, 16, "contiguous"},
                                 {40, 34, 2, "strided"}}) {
    SCOPED_TRACE(std::to_string(step.result) + " " + std::to_string(step.operand));
    hip::gemm_problem p = product_of(12544, 33, 64, true);
    p.steps = {{0, step.result, 40, 1}, {0, step.operand, step.operand, 1}};
    p.aligned[1] = step.aligned;
    const auto tiles = hip::tiles_for(p, where);
    const auto tile = std::find_if(tiles.begin(), tiles.end(), [](const hip::gemm_tile& t) { return t.boxes != 0; });
    ASSERT_NE(tile, tiles.end());
    const hip::gemm_plan plan = hip::plan_gemm(p, nullptr, *tile, where);
    ASSERT_EQ(plan.boxed, 0u);
    EXPECT_THAT(plan.what.text, ::testing::HasSubstr(std::string("read_run<f16, run_kind::") + step.kind));
  }
}

}  // namespace
}  // namespace kiln::testing
