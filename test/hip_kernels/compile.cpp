#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "kiln/backend/hip/compile.hpp"
#include "kiln/backend/hip/hip_target.hpp"
#include "kiln/backend/hip/impl/conv/convolution_parts.hpp"
#include "kiln/backend/hip/impl/gemm/gemm_plan.hpp"
#include "kiln/backend/hip/impl/gemm/stored_form.hpp"
#include "kiln/backend/hip/impl/gemm/turn_weights.hpp"
#include "kiln/graph/builder.hpp"
#include "kiln/op/more.hpp"
#include "kiln/op/nn/block_attention.hpp"
#include "kiln/pass/fuse_contraction.hpp"
#include "kiln/runtime/executable.hpp"
#include "pass/evaluate.hpp"
#include "peer/gpu/alone/fake_gpu.hpp"

using namespace kiln;

namespace {

// Products, convolutions and attention of one dtype, each with what may follow it.
program corpus(dtype type) {
  builder b;
  const auto x = b.input("x", type, {2, 3, 40, 64});
  const auto w = b.input("w", type, {64, 48});
  const auto bias = b.input("bias", type, {48});
  b.output((x.dot(w) + bias).relu(), "dense");
  const auto q = b.input("q", type, {2, 8, 40, 64}), k = b.input("k", type, {2, 4, 40, 64});
  const auto v = b.input("v", type, {2, 4, 40, 64}), mask = b.input("mask", dtype::boolean, {2, 1, 40, 40});
  b.output(b.add(op::attention{.scale = 0.125f, .causal = true}, q, k, v), "causal");
  b.output(b.add(op::attention{.scale = 0.125f}, q, k, v, mask), "masked");
  const auto image = b.input("image", type, {2, 16, 12, 12});
  const auto filter = b.input("filter", type, {32, 16, 3, 3}), one = b.input("one", type, {32, 16, 1, 1});
  const auto grouped = b.input("grouped", type, {16, 1, 3, 3});
  b.output(image.conv(filter, {.pads = {1, 1, 1, 1}}).relu(), "convolution");
  b.output(image.conv(one, {}), "one");
  b.output(image.conv(grouped, {.stride = {2, 2}, .group = 16}), "grouped");
  return b.finish();
}

std::string why_skipped(const std::string& architecture) {
  const std::string why = hip::why_not_compiled(hip::architecture::named(architecture));
  return why.empty() ? why : "NOT CHECKED: " + why;
}
hip_target target_for(const std::string& architecture) {
  hip_options options;
  options.architecture = architecture;
  options.keep = false;
  return hip_target(options);
}

void compiles_for(const std::string& architecture, std::initializer_list<dtype> types) {
  if (const std::string why = why_skipped(architecture); !why.empty()) GTEST_SKIP() << why;
  for (dtype type : types) {
    const executable made = compile(corpus(type), target_for(architecture));
    for (const step_info& step : made.report().steps)
      EXPECT_FALSE(step.fallback) << step.kernel << " over " << to_string(type);
  }
}

TEST(tile_kernels, compile_for_sm_90) { compiles_for("sm_90", {dtype::f16, dtype::bf16, dtype::f32}); }
TEST(tile_kernels, large_products_compile_for_sm_90) {
  if (const std::string why = why_skipped("sm_90"); !why.empty()) GTEST_SKIP() << why;
  builder b;
  const dtype t = dtype::f16;
  const auto x = b.input("x", t, {4096, 1024}), w = b.input("w", t, {1024, 4096}), v = b.input("v", t, {4096, 1024});
  b.output((x.dot(w) + b.input("bias", t, {4096})).gelu(), "rows");
  b.output(x.transpose({1, 0}).dot(v), "columns");
  b.output(x.dot(v.transpose({1, 0})), "depths");
  EXPECT_EQ(compile(b.finish(), target_for("sm_90")).report().steps.size(), 3u);
}
// A long batch is few launches of about equal parts, whatever divides it.
TEST(tile_kernels, long_batches_have_parts) {
  const auto parts = [](std::int64_t entries, std::int64_t most) {
    const hip::batch_parts p(entries, most);
    EXPECT_LE(p.each, most);
    EXPECT_EQ(p.each * (p.count - 1) + p.last, entries);
    EXPECT_TRUE(p.last > 0 && p.last <= p.each);
    return p.count;
  };
  EXPECT_EQ(parts(1, hip::most_gemm_entries), 1);
  EXPECT_EQ(parts(65535, hip::most_gemm_entries), 1);
  EXPECT_EQ(parts(65537, hip::most_gemm_entries), 2);  // a prime
  EXPECT_EQ(parts(200003, hip::most_gemm_entries), 4);
  EXPECT_EQ(parts(1000, 300), 4);
}
// Launches of a batch visit each of its entries once.
TEST(tile_kernels, batches_are_visited_once) {
  const auto check = [](const std::vector<std::int64_t>& extents, std::size_t launches) {
    hip::loop_nest outer;
    outer.step.resize(1);
    std::int64_t all = 1;
    for (std::size_t d = extents.size(); d-- > 0; all *= extents[d]) {
      outer.extent.insert(outer.extent.begin(), extents[d]);
      outer.step[0].insert(outer.step[0].begin(), all);
    }
    hip::gemm_problem p;
    std::vector<std::array<std::int64_t, 2>> inner(1, {0, 0});
    const std::int64_t last = hip::take_batch(p, outer, inner, 100);
    ASSERT_LE(p.batch0 * p.batch1, 100);
    std::vector<int> visits(static_cast<std::size_t>(all), 0);
    std::vector<std::int64_t> at(outer.extent.size(), 0);
    std::size_t count = 0;
    for (bool more = true; more; ++count) {
      std::int64_t base = 0;
      for (std::size_t d = 0; d < at.size(); ++d) base += at[d] * outer.step[0][d];
      const bool ends = !at.empty() && at.back() + 1 == outer.extent.back();
      const std::int64_t entries = ends && last != 0 ? last : p.batch0 * p.batch1;
      for (std::int64_t e = 0; e < entries; ++e)
        ++visits.at(static_cast<std::size_t>(base + e / p.batch1 * inner[0][0] + e % p.batch1 * inner[0][1]));
      std::size_t d = at.size();
      while (d > 0 && ++at[d - 1] == outer.extent[d - 1]) at[--d] = 0;
      more = d > 0;
    }
    EXPECT_EQ(std::count(visits.begin(), visits.end(), 1), all);
    EXPECT_EQ(count, launches);
  };
  check({}, 1);
  check({100}, 1);
  check({101}, 2);
  check({7, 14}, 1);
  check({3, 11, 9}, 3);
  check({5, 23, 9}, 15);  // parts of 8, 8 and 7 rows of the second
  check({3, 60}, 3);
  check({2, 3, 251}, 18);
}
// Phases of a result whose pixels lie 12 channels apart begin 24 bytes apart.
TEST(tile_kernels, phases_store_no_more_than_their_begin_is_aligned_to) {
  for (const auto& [pixel, width] : {std::pair{12, 4}, {16, 8}, {10, 2}}) {
    const tensor out{nullptr, dtype::f16, {2, 8, 6, 8}, {48 * pixel, 1, 8 * pixel, pixel}};
    hip::gemm_problem p;
    p.type = dtype::f16, p.cols = 8, p.types = {p.type}, p.aligned = {16}, p.steps = {{0, 8, 0, 1}};
    p.a.value = hip::image_argument{};
    hip::phases by;
    by.rows = by.cols = 2;
    const std::int64_t begin[] = {1, 1};
    by.divide(p, hip::image_steps(out), begin, 2);
    EXPECT_EQ(p.rows, 2 * 3 * 4);
    EXPECT_EQ(p.batch0, 4);
    EXPECT_EQ(hip::epilogue_width(p, false), width) << pixel;
  }
}
// More entries of a batch, groups of heads, or rows of a table than a grid's second dim has blocks.
TEST(tile_kernels, long_batches_fit_a_launch) {
  if (const std::string why = why_skipped("sm_90"); !why.empty()) GTEST_SKIP() << why;
  const auto where = std::make_shared<const hip::context>(hip::architecture::named("sm_90"), "");
  using lower = std::unique_ptr<kernel> (*)(const kernel_request&, const hip::context_pointer&);
  const auto launch_of = [&](lower family, const operation& op, const std::vector<shape>& shapes) {
    program p;
    small_vector<value_id> in;
    for (const shape& s : shapes) in.push_back(p.main().add_parameter("x" + std::to_string(in.size()), s));
    const value_id made = p.main().add(op, in);
    const auto n = shapes.size();
    const auto kernel = family(
        {p, p.main(), p.main()[made.instruction], std::vector<const literal*>(n), std::vector<layout>(n), shapes},
        where);
    ASSERT_TRUE(kernel);
    std::vector<buffer> memory;
    const auto of = [&](const shape& s) {
      ints lens;
      for (const dimension& d : s.lens) lens.push_back(d.value());
      memory.push_back(buffer::allocate(static_cast<std::size_t>(s.bytes().value())));
      return tensor{memory.back().data(), s.type, lens, row_major(lens)};
    };
    std::vector<tensor> given;
    for (const shape& s : shapes) given.push_back(of(s));
    const tensor out[] = {of(p.main().shape_of(made))};
    std::vector<std::byte> scratch(kernel->scratch_bytes(given, out, 1));
    fake::queue queue(nullptr);
    launch l{given, out, scratch};
    l.queue = &queue;
    try {
      kernel->run(l);
      FAIL() << "ran";
    } catch (const error& e) {  // the device is not here; a launch that it refused would be `limit`
      EXPECT_EQ(e.code(), errc::unsupported) << e.what();
    }
  };
  for (const dtype t : {dtype::f32, dtype::f16}) {
    const shape table(dtype::i64, {9000, 24}), q(t, {1, 8, 4, 16});
    launch_of(hip::lower_block_attention, op::block_attention{.head = 16, .most = 32}, {q, q, q, table});
    const shape many(t, {70000, 1, 1, 16});
    launch_of(hip::lower_attention, op::attention{}, {many, many, many});
    const shape image(t, {70000, 4, 1, 2});  // rows of one product are images where they follow each other evenly
    launch_of(hip::lower_convolution, op::convolution{.group = 2}, {image, shape(t, {4, 2, 1, 1})});
    launch_of(hip::lower_convolution, op::deconvolution{.stride = {2, 2}, .group = 17000},
              {shape(t, {1, 17000, 1, 1}), shape(t, {17000, 1, 2, 2})});
  }
}
// Conversions around a rotation of 16-bit floats that is computed in f32 are in its kernel.
TEST(tile_kernels, rotations_are_one_kernel) {
  if (const std::string why = why_skipped("sm_90"); !why.empty()) GTEST_SKIP() << why;
  builder b;
  const auto x = b.input("x", dtype::f16, {1, 8, 3, 128}).convert(dtype::f32);
  const auto by = b.input("cos", dtype::f32, {1, 8, 3, 64});
  const auto low = x.slice({{3}, {0}, {64}, {}}), high = x.slice({{3}, {64}, {128}, {}});
  b.output((low * by - high).concat(high * by + low, 3).convert(dtype::f16));
  EXPECT_EQ(compile(b.finish(), target_for("sm_90")).report().steps.size(), 1u);
}
// Attention over blocks of caches, on matrix units where heads fit a tile.
void blocks_compile_for(const std::string& architecture) {
  if (const std::string why = why_skipped(architecture); !why.empty()) GTEST_SKIP() << why;
  program p;
  module_graph& m = p.main();
  const value_id table = m.add_parameter("table", shape(dtype::i64, {2, 24}));
  const value_id sinks = m.add_parameter("sinks", shape(dtype::f32, {8}));
  for (const dtype t : {dtype::f16, dtype::bf16, dtype::f32}) {
    const bool bounded = t == dtype::f32;
    const std::string name(to_string(t));
    const auto operand = [&](const std::string& of, std::int64_t heads, std::int64_t depth) {
      return m.add_parameter(of + name, shape(t, {1, heads, 3, depth}));
    };
    small_vector<value_id> in{operand("q", 8, 128), operand("k", 4, 128), operand("v", 4, 96), table};
    if (bounded) in.push_back(sinks);
    m.outputs.push_back(m.add(op::block_attention{.head = 8, .most = 32, .softcap = bounded ? 30.0f : 0}, in));
    m.output_names.push_back(text("y" + name));
  }
  const executable made = compile(std::move(p), target_for(architecture));
  ASSERT_EQ(made.report().steps.size(), 3u);
  for (const step_info& step : made.report().steps) EXPECT_EQ(step.kernel, "attention over blocks");
}
TEST(tile_kernels, attention_over_blocks_compiles_for_sm_90) { blocks_compile_for("sm_90"); }
TEST(tile_kernels, attention_over_blocks_compiles_for_gfx90a) { blocks_compile_for("gfx90a"); }
TEST(tile_kernels, attention_over_blocks_compiles_for_gfx1030) { blocks_compile_for("gfx1030"); }
// Attention on wgmma, and blocks of one product in a cluster.
TEST(tile_kernels, what_only_sm_90_has_compiles) {
  if (const std::string why = why_skipped("sm_90"); !why.empty()) GTEST_SKIP() << why;
  builder b;
  const dtype t = dtype::f16;
  for (const std::int64_t depth : {std::int64_t{64}, std::int64_t{128}}) {
    const std::string n = std::to_string(depth);
    const dims lens{16, 12, 512, depth};
    const auto q = b.input("q" + n, t, lens), k = b.input("k" + n, t, lens), v = b.input("v" + n, t, lens);
    b.output(b.add(op::attention{.scale = 0.125f, .causal = depth == 128}, q, k, v));
  }
  const auto x = b.input("x", t, {128, 3072}), w = b.input("w", t, {3072, 768});
  b.output((x.dot(w) + b.input("bias", t, {768})).gelu());
  EXPECT_EQ(compile(b.finish(), target_for("sm_90")).report().steps.size(), 3u);
}
// A product of 16-bit floats whose factors lie along the depth; its epilogue reads an element for each of the result
// where `adds`.
hip::gemm_problem product_of(std::int64_t rows, std::int64_t cols, std::int64_t depth, bool adds) {
  hip::gemm_problem p;
  p.type = dtype::f16, p.rows = rows, p.cols = cols, p.depth = depth;
  p.a = p.b = {hip::matrix_argument{nullptr, {0, 0}, depth, 1}, true, 8};
  p.steps.assign(adds ? 2 : 1, {0, 0, cols, 1});
  p.types.assign(p.steps.size(), dtype::f16), p.aligned.assign(p.steps.size(), 16);
  return p;
}
// Every tile of wgmma, for factors of either order; the copy unit reads those that lie along the depth.
TEST(tile_kernels, tiles_of_wgmma_compile) {
  if (const std::string why = why_skipped("sm_90"); !why.empty()) GTEST_SKIP() << why;
  const hip::architecture where = hip::architecture::named("sm_90");
  for (const bool turned : {false, true}) {
    hip::gemm_problem p = product_of(1024, 1024, 1024, true);
    if (turned) p.b = {hip::matrix_argument{nullptr, {0, 0}, 1, 1024}, false, 8};
    using kind = std::tuple<bool, bool, int>;  // in turns, alternate, columns
    std::set<kind> kinds, expected = {{false, false, 64}, {false, false, 128}, {false, false, 256}};
    if (!turned)
      expected.insert({{true, false, 64}, {true, false, 128}, {true, false, 256}, {true, true, 64}, {true, true, 128}});
    for (const hip::gemm_tile& tile : hip::tiles_for(p, where)) {
      if (tile.atom != "wgmma" || !kinds.emplace(tile.in_turns(), tile.alternate, tile.cols).second) continue;
      EXPECT_FALSE(hip::compile(hip::plan_gemm(p, nullptr, tile, where).what, where, {}).empty()) << tile.cols;
    }
    EXPECT_EQ(kinds, expected);
  }
}
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
  ASSERT_TRUE(first().in_turns());
  const hip::gemm_plan plan = hip::plan_gemm(p, nullptr, first(), where);
  ASSERT_TRUE(plan.boxes_a && plan.boxes_b);
  EXPECT_EQ(plan.grid.x, 98u);
  const hip::tensor_boxes &a = *plan.boxes_a, &b = *plan.boxes_b;
  EXPECT_EQ(a.rank, 4);
  EXPECT_THAT(a.extents, ::testing::ElementsAre(256, 28, 28, 64));
  EXPECT_THAT(a.step_bytes, ::testing::ElementsAre(512, 28 * 512, 28 * 28 * 512));
  EXPECT_THAT(a.lower, ::testing::ElementsAre(-1, -1));
  EXPECT_THAT(a.upper, ::testing::ElementsAre(-2, -2));  // the last window begins at 25 of 27
  EXPECT_THAT(a.stride, ::testing::ElementsAre(1, 2, 2, 1));
  EXPECT_EQ(a.across, 128u);
  EXPECT_EQ(b.rank, 2);
  EXPECT_EQ(b.extents[0], 256u * 9);
  EXPECT_EQ(b.extents[1], 256u);
  EXPECT_EQ(b.step_bytes[0], 256u * 9 * 2);
  EXPECT_EQ(b.across, static_cast<unsigned>(first().cols));
  // channels that are no multiple of a box, corners too far away, kernels that run backwards
  p.channels = 96, p.depth = 96 * 9;
  EXPECT_FALSE(first().in_turns());
  p.channels = 256, p.depth = 256 * 9;
  std::get<hip::image_argument>(p.a.value).pad_cols = 128;
  EXPECT_FALSE(first().in_turns());
  std::get<hip::image_argument>(p.a.value).pad_cols = 1;
  p.a.image_arguments += ", image_places<0, true, 1, 1, 1>";
  EXPECT_FALSE(first().in_turns());
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
  ASSERT_TRUE(tile.in_turns());
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
// Which products work tile after tile: all but those of few steps whose epilogue reads an element for each of the
// result.
TEST(tile_kernels, products_in_turns) {
  const hip::architecture where = hip::architecture::named("sm_90");
  const auto first = [&](std::int64_t rows, std::int64_t cols, std::int64_t depth, bool adds) {
    return hip::tiles_for(product_of(rows, cols, depth, adds), where).front();
  };
  EXPECT_TRUE(first(12544, 256, 1024, false).in_turns());
  EXPECT_TRUE(first(200704, 64, 256, false).in_turns());
  EXPECT_EQ(first(200704, 64, 256, false).cols, 64);
  EXPECT_EQ(first(50176, 128, 512, false).cols, 128);
  EXPECT_EQ(first(12544, 256, 1024, false).cols, 256);
  EXPECT_TRUE(first(200704, 256, 64, false).in_turns());
  // groups of warps alternate where there is little to multiply beside what is stored
  EXPECT_TRUE(first(200704, 64, 576, false).alternate);
  EXPECT_TRUE(first(65536, 64, 512, false).alternate);
  EXPECT_FALSE(first(50176, 128, 1152, false).alternate);
  EXPECT_FALSE(first(12544, 256, 2304, false).alternate);
  EXPECT_FALSE(first(200704, 256, 64, true).in_turns());
  EXPECT_FALSE(first(12544, 1024, 256, true).in_turns());
  for (const auto& tile : {first(200704, 256, 64, true), first(12544, 1024, 256, true)}) {
    EXPECT_EQ(tile.atom, "wgmma");
    EXPECT_EQ(tile.cols, 128);
  }
}
// Which products read constant weights as rows of runs: few rows, a constant, both depths contiguous.
TEST(tile_kernels, few_rows_have_tiles_of_their_own) {
  const hip::architecture where = hip::architecture::named("sm_90");
  const auto first = [&](std::int64_t rows, std::int64_t cols, bool constant, bool contiguous) {
    hip::gemm_problem p;
    p.type = dtype::f16, p.rows = rows, p.cols = cols, p.depth = 4096, p.constant_b = constant;
    p.a = {hip::matrix_argument{nullptr, {0, 0}, 4096, 1}, true, 8};
    p.b = contiguous ? hip::gemm_factor{hip::matrix_argument{nullptr, {0, 0}, 4096, 1}, true, 8}
                     : hip::gemm_factor{hip::matrix_argument{nullptr, {0, 0}, 1, cols}, false, 8};
    p.steps = {{0, 0, cols, 1}}, p.types = {dtype::f16}, p.aligned = {16};
    return hip::tiles_for(p, where).front();
  };
  EXPECT_EQ(first(1, 4096, true, true).atom, "few_rows");
  EXPECT_EQ(first(1, 4096, true, true).cols, 16);
  EXPECT_EQ(first(8, 11008, true, true).cols, 32);  // two and a half blocks a multiprocessor
  EXPECT_EQ(first(9, 11008, true, true).rows, 16);
  EXPECT_EQ(first(32, 4096, true, true).rows, 32);
  EXPECT_NE(first(33, 4096, true, true).atom, "few_rows");
  EXPECT_NE(first(1, 4096, false, true).atom, "few_rows");
  EXPECT_NE(first(1, 4096, true, false).atom, "few_rows");
  EXPECT_NE(first(1, 128, true, true).atom, "few_rows");
}
// The power of two that scales of numbers about eight are lifted by.
TEST(tile_kernels, numbers_about_eight_are_lifted_as_far_as_scales_allow) {
  const auto form_of = [](const small_vector<double>& scales, int zero = 8, int bits = 4) {
    hip::stored_form form;
    form.of_few_rows = "as stored", form.value.zero = zero;
    stored_weights w;
    w.op.bits = bits, w.op.block = 32;
    hip::center(form, w, literal::of<double>({dtype::f16, {static_cast<std::int64_t>(scales.size())}}, scales));
    return form.of_few_rows;
  };
  EXPECT_EQ(form_of({0.01, -0.06, 0}), "centered_nibbles<32, 20>");
  EXPECT_EQ(form_of({0, 1e-4}), "centered_nibbles<32, 24>");
  EXPECT_EQ(form_of({255}), "centered_nibbles<32, 8>");
  EXPECT_EQ(form_of({257}), "as stored");
  EXPECT_EQ(form_of({0.01, std::numeric_limits<double>::infinity()}), "as stored");
  EXPECT_EQ(form_of({0.01}, 7), "as stored");
  EXPECT_EQ(form_of({0.01}, 8, 8), "as stored");
}
// Constant weights lie along their depth where rows may be few, and mean the same.
TEST(tile_kernels, weights_are_turned_where_rows_may_be_few) {
  constexpr std::int64_t n = 272, k = 72;
  const auto counted = [](const dims& lens) {
    small_vector<std::int64_t> values;
    for (std::int64_t i = 0; i < product(lens).value(); ++i) values.push_back(i * 7 % 9 - 4);
    return literal::of<std::int64_t>({dtype::f16, lens}, values);
  };
  const auto turns = [&](const dims& lens, std::int64_t cols, bool check) {
    builder b;
    const value x = b.input("x", dtype::f16, lens);
    b.output(x.dot(b.constant(counted({k, cols}))).relu(), "y");
    program p = b.finish();
    fuse_contraction(p);
    const program before = p;
    const bool changed = hip::turn_weights(p).changed();
    verify(p);
    if (check) {
      const small_vector<literal> given{counted(lens)};
      EXPECT_EQ(test::evaluate(p, given), test::evaluate(before, given));
    }
    return changed;
  };
  EXPECT_TRUE(turns({5, k}, n, true));
  EXPECT_TRUE(turns({dimension::symbol("rows", 1), k}, n, false));
  EXPECT_FALSE(turns({33, k}, n, false));
  EXPECT_FALSE(turns({5, k}, 128, false));
}
// Weights as they are and as they are stored in blocks, by few rows and by many.
TEST(tile_kernels, products_with_constant_weights_compile) {
  if (const std::string why = why_skipped("sm_90"); !why.empty()) GTEST_SKIP() << why;
  constexpr std::int64_t n = 512, k = 256, block = 32;
  const auto constant = [](builder& b, const shape& s) {
    buffer bytes = buffer::allocate(static_cast<std::size_t>(s.bytes().value()));
    std::fill_n(bytes.data(), bytes.size(), std::byte{0x11});
    return b.constant(literal(s, std::move(bytes)));
  };
  for (const dtype t : {dtype::f16, dtype::bf16})
    for (const std::int64_t rows : {1, 29, 100})
      for (const std::int64_t bits : {16, 8, 4}) {
        if (t == dtype::bf16 && rows != 29) continue;
        SCOPED_TRACE(std::string(to_string(t)) + " " + std::to_string(rows) + " " + std::to_string(bits));
        builder b;
        const value x = b.input("x", t, {1, rows, k});
        value w;
        if (bits == 16) {
          w = constant(b, {t, {n, k}});
        } else {
          const dtype numbers = bits == 4 ? dtype::u8 : dtype::i8;
          w = b.add(op::block_dequantize{.bits = bits, .axis = 1, .block = block, .zero = bits == 4 ? 8 : 0},
                    constant(b, {numbers, {n, k * bits / 8}}), constant(b, {t, {n, k / block}}));
        }
        b.output(x.dot(w.transpose({1, 0})).relu() + b.input("r", t, {1, rows, n}));
        const program p = b.finish();
        for (const char* architecture : {"sm_90", "sm_80"}) {
          if (rows != 29 && std::string(architecture) == "sm_80") continue;
          const executable made = compile(p, target_for(architecture));
          ASSERT_EQ(made.report().steps.size(), 1u) << architecture;
          EXPECT_EQ(made.report().steps[0].kernel, bits == 16 ? "dot+epilogue" : "dot of blocks+epilogue");
        }
      }
}
// Filters without elements: the result is zero everywhere.
TEST(tile_kernels, a_convolution_of_no_channels_compiles) {
  if (const std::string why = why_skipped("sm_90"); !why.empty()) GTEST_SKIP() << why;
  builder b;
  const value filters = b.constant(literal(shape{dtype::f16, {4, 0, 3, 3}}, buffer()));
  b.output(b.input("image", dtype::f16, {1, 0, 8, 8}).conv(filters, {}));
  const executable made = compile(b.finish(), target_for("sm_90"));
  EXPECT_EQ(made.outputs()[0].type.lens, (dims{1, 4, 6, 6}));
}
// Recurrent layers whose matrix a cluster holds, and one whose matrix is too large.
TEST(tile_kernels, recurrences_in_clusters_compile) {
  if (const std::string why = why_skipped("sm_90"); !why.empty()) GTEST_SKIP() << why;
  using f = op::cell_function;
  for (const std::int64_t hidden : {64, 512, 1024}) {
    builder b;
    const dtype t = dtype::f16;
    const op::recurrent r{.cell = op::cell_kind::lstm,
                          .functions = {f::sigmoid, f::tanh, f::tanh},
                          .alpha = {0, 0, 0},
                          .beta = {0, 0, 0}};
    b.output(b.add(r, b.input("x", t, {3, 9, 4 * hidden}), b.input("w", t, {hidden, 4 * hidden}),
                   b.input("bias", t, {4 * hidden}), b.input("first", t, {9, hidden}),
                   b.input("lengths", dtype::i64, {9}), b.input("cell", t, {9, hidden}),
                   b.input("peepholes", t, {3 * hidden})));
    const executable made = compile(b.finish(), target_for("sm_90"));
    EXPECT_FALSE(made.report().steps[0].fallback) << hidden;
  }
}
TEST(tile_kernels, compile_for_gfx90a) { compiles_for("gfx90a", {dtype::f16, dtype::bf16, dtype::f32}); }
TEST(tile_kernels, compile_for_gfx1030) { compiles_for("gfx1030", {dtype::f16, dtype::bf16, dtype::f32}); }

}  // namespace
