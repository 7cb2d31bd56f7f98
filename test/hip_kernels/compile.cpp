#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "hip_kernels/plan_cases.hpp"
#include "kiln/backend/hip/compile.hpp"
#include "kiln/backend/hip/impl/attention/wgmma_tiles.hpp"
#include "kiln/graph/builder.hpp"
#include "kiln/op/more.hpp"
#include "kiln/op/nn/block_attention.hpp"
#include "kiln/runtime/executable.hpp"
#include "peer/gpu/alone/fake_gpu.hpp"

namespace kiln::testing {
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
// More entries of a batch, groups of heads, or rows of a table than a grid's second dim has blocks.
TEST(tile_kernels, long_batches_fit_a_launch) {
  if (const std::string why = why_skipped("sm_90"); !why.empty()) GTEST_SKIP() << why;
  const auto where = std::make_shared<const hip::context>(hip::architecture::named("sm_90"), "");
  const auto launch_of = [&](lowered_op::family family, const operation& op, const std::vector<shape>& shapes) {
    const lowered_op lowered(family, op, shapes, where);
    ASSERT_TRUE(lowered.made);
    std::vector<buffer> memory;
    const auto of = [&](const shape& s) {
      memory.push_back(buffer::allocate(static_cast<std::size_t>(s.bytes().value())));
      return lowered_op::at(memory.back().data(), s);
    };
    std::vector<tensor> given;
    for (const shape& s : shapes) given.push_back(of(s));
    const tensor out[] = {of(lowered.result)};
    std::vector<std::byte> scratch(lowered.made->scratch_bytes(given, out, 1));
    fake::queue queue(nullptr);
    launch l{given, out, scratch};
    l.queue = &queue;
    try {
      lowered.made->run(l);
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
  struct sizes {
    std::int64_t batch, heads, queries;
    int depth;
    bool causal;
    int groups;  // of warps that multiply
  };
  int count = 0;
  for (const sizes& z : {sizes{16, 12, 512, 64, false, 4},
                         {1, 132, 128, 64, false, 2},
                         {16, 12, 512, 128, true, 2},
                         {16, 12, 512, 64, true, 4},
                         {16, 12, 1024, 64, true, 2},
                         {1, 132, 64, 64, false, 1},
                         {2, 128, 64, 128, true, 1}}) {
    const hip::wgmma_tiles tiles({z.batch, z.heads, z.queries}, z.heads, z.queries, z.depth, z.causal, false,
                                 hip::architecture::named("sm_90"));
    EXPECT_EQ(tiles.groups, z.groups) << count;
    const std::string n = std::to_string(count++);
    const dims lens{z.batch, z.heads, z.queries, z.depth};
    const auto q = b.input("q" + n, t, lens), k = b.input("k" + n, t, lens), v = b.input("v" + n, t, lens);
    b.output(b.add(op::attention{.scale = 0.125f, .causal = z.causal}, q, k, v));
  }
  const auto x = b.input("x", t, {128, 3072}), w = b.input("w", t, {3072, 768});
  b.output((x.dot(w) + b.input("bias", t, {768})).gelu());
  EXPECT_EQ(compile(b.finish(), target_for("sm_90")).report().steps.size(), 8u);
}
// Every tile of wgmma, for factors of either order. Results leave through boxes, with or without an operand that is
// brought, or, of 32 bits, through sums.
TEST(tile_kernels, tiles_of_wgmma_compile) {
  if (const std::string why = why_skipped("sm_90"); !why.empty()) GTEST_SKIP() << why;
  const hip::architecture where = hip::architecture::named("sm_90");
  for (const bool turned : {false, true}) {
    using kind = std::tuple<bool, bool, int, int>;  // in turns, alternate, columns, boxes
    std::set<kind> kinds, expected = {{false, false, 64, 0}, {false, false, 128, 0}, {false, false, 256, 0}};
    for (const int cols : {64, 128, 256})
      for (const int boxes : {0, cols == 256 ? 2 : 3, 4})
        for (const bool alternate : {false, true})
          if (cols < 256 || !alternate) expected.emplace(true, alternate, cols, boxes);
    for (const dtype result : {dtype::f16, dtype::f32})
      for (const bool adds : {true, false}) {
        hip::gemm_problem p = product_of(1024, 1024, 1024, adds);
        p.types[0] = result;
        if (turned) p.b = {hip::matrix_argument{nullptr, {0, 0}, 1, 1024}, false, 8};
        for (const hip::gemm_tile& tile : hip::tiles_for(p, where)) {
          if (tile.atom != "wgmma" || !kinds.emplace(tile.persistent(), tile.alternate, tile.cols, tile.boxes).second)
            continue;
          EXPECT_FALSE(hip::compile(hip::plan_gemm(p, nullptr, tile, where).what, where, {}).empty()) << tile.cols;
        }
      }
    EXPECT_EQ(kinds, expected);
  }
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
// Images of few channels, copied with lines of a box or of a window's row.
TEST(tile_kernels, convolutions_of_few_channels_compile) {
  if (const std::string why = why_skipped("sm_90"); !why.empty()) GTEST_SKIP() << why;
  for (const std::int64_t size : {7, 3}) {
    SCOPED_TRACE(size);
    builder b;
    const shape filters(dtype::f16, {16, 3, size, size});
    const value w = b.constant(literal(filters, buffer::allocate(static_cast<std::size_t>(filters.bytes().value()))));
    b.output(b.input("images", dtype::f16, {70, 3, 64, 64}).conv(w, {.stride = {2, 2}, .pads = {3, 3, 3, 3}}));
    const executable made = compile(b.finish(), target_for("sm_90"));
    ASSERT_EQ(made.report().steps.size(), 1u);
    EXPECT_FALSE(made.report().steps[0].fallback);
    // constant weights have eight channels, and of seven columns of a box eight
    EXPECT_EQ(made.report().packed_bytes, static_cast<std::size_t>(16 * size * (size == 7 ? 8 : size) * 8 * 2));
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
// Recurrent layers whose matrix a cluster holds, as factors of 16 bits or as numbers, and ones whose matrix is too
// large.
TEST(tile_kernels, recurrences_in_clusters_compile) {
  if (const std::string why = why_skipped("sm_90"); !why.empty()) GTEST_SKIP() << why;
  using f = op::cell_function;
  using kind = op::cell_kind;
  struct layer {
    dtype type;
    kind cell;
    std::int64_t hidden;
  };
  for (const auto& [t, cell, hidden] : {layer{dtype::f16, kind::lstm, 64},
                                        {dtype::f16, kind::lstm, 512},
                                        {dtype::f16, kind::lstm, 1024},
                                        {dtype::f32, kind::lstm, 333},
                                        {dtype::f32, kind::gru, 333},
                                        {dtype::f32, kind::lstm, 512},
                                        {dtype::f64, kind::lstm, 333},
                                        {dtype::f64, kind::plain, 512},
                                        {dtype::f64, kind::lstm, 512}}) {
    builder b;
    op::recurrent r{.cell = cell, .functions = {f::tanh}, .alpha = {0}, .beta = {0}};
    if (cell != kind::plain) r.functions = {f::sigmoid, f::tanh}, r.alpha = r.beta = {0, 0};
    if (cell == kind::lstm) r.functions.push_back(f::tanh), r.alpha.push_back(0), r.beta.push_back(0);
    const std::int64_t all = r.gates() * hidden;
    small_vector<value> in{b.input("x", t, {3, 9, all}), b.input("w", t, {hidden, all}), b.input("bias", t, {all}),
                           b.input("first", t, {9, hidden}), b.input("lengths", dtype::i64, {9})};
    if (cell == kind::lstm)
      in.push_back(b.input("cell", t, {9, hidden})), in.push_back(b.input("peepholes", t, {3 * hidden}));
    b.output(b.add(r, in));
    const executable made = compile(b.finish(), target_for("sm_90"));
    EXPECT_FALSE(made.report().steps[0].fallback) << to_string(t) << " " << hidden;
  }
}
TEST(tile_kernels, compile_for_gfx90a) { compiles_for("gfx90a", {dtype::f16, dtype::bf16, dtype::f32}); }
TEST(tile_kernels, compile_for_gfx1030) { compiles_for("gfx1030", {dtype::f16, dtype::bf16, dtype::f32}); }

}  // namespace
}  // namespace kiln::testing
