// What products and what stands beside them are planned to be, without a device and mostly without a compiler.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "hip_kernels/plan_cases.hpp"
#include "kiln/backend/hip/impl/conv/convolution_parts.hpp"
#include "kiln/backend/hip/impl/gemm/stored_form.hpp"
#include "kiln/backend/hip/impl/gemm/turn_weights.hpp"
#include "kiln/backend/hip/kernels/index/arguments.hpp"
#include "kiln/graph/builder.hpp"
#include "kiln/op/dynamic/progression.hpp"
#include "kiln/op/dynamic/selection.hpp"
#include "kiln/op/more.hpp"
#include "kiln/op/nn/block_attention.hpp"
#include "kiln/op/nn/pooling.hpp"
#include "kiln/pass/fuse_contraction.hpp"
#include "kiln/runtime/counting_kernel.hpp"
#include "pass/evaluate.hpp"
#include "peer/gpu/alone/fake_gpu.hpp"

namespace kiln::testing {
namespace {

// Images are copied to where channels lie last if these are whole runs and windows move many elements.
TEST(tile_kernels, images_are_copied_to_where_channels_lie_last) {
  using images = hip::channels_last_images;
  constexpr std::int64_t many = std::int64_t{1} << 23;
  const auto image = [](dtype t, const ints& lens) { return tensor{nullptr, t, lens, row_major(lens)}; };
  const tensor x = image(dtype::f16, {2, 48, 30, 34}), copy = images::copy_of(x, nullptr);
  EXPECT_EQ(copy.strides, (ints{48 * 30 * 34, 1, 34 * 48, 48}));
  EXPECT_EQ(images::bytes(x), (2 * 48 * 30 * 34 * 2 + 255) / 256 * 256u);
  EXPECT_TRUE(images::serves(x, 48, many));
  EXPECT_FALSE(images::serves(copy, 48, many));
  EXPECT_FALSE(images::serves(x, 12, many));  // runs are of eight
  EXPECT_TRUE(images::serves(image(dtype::f32, {2, 48, 30, 34}), 12, many));
  EXPECT_FALSE(images::serves(x, 48, 100000));
  EXPECT_FALSE(images::serves(image(dtype::f32, {2, 48, 300, 340}), 48, many));  // as much work as the copy
  EXPECT_EQ(images::copy_of(image(dtype::f32, {2, 8, 3, 5, 7}), nullptr).strides,
            (ints{8 * 3 * 5 * 7, 1, 5 * 7 * 8, 7 * 8, 8}));
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
    by.form.rows = by.form.cols = {2, 4, 1};
    by.divide(p, hip::image_steps(out), 2);
    EXPECT_EQ(p.rows, 2 * 3 * 4);
    EXPECT_EQ(p.batch0, 4);
    EXPECT_EQ(hip::epilogue_width(p, false), width) << pixel;
  }
}
// Lines of a phase begin at multiples of what divides all that they lie apart, in planes, too.
TEST(tile_kernels, phases_count_lines_from_image_to_image) {
  const tensor out{nullptr, dtype::f32, {2, 8, 5, 6, 12}, {2880 * 3, 1, 600, 96, 8}};  // rows and planes with gaps
  hip::gemm_problem p;
  p.cols = 8, p.depth = p.channels = 4, p.types = {p.type}, p.aligned = {16}, p.steps = {{0, 8, 0, 1}};
  p.a = {hip::image_argument{}, true, 4, "4, 4, 4, 1, 1, image_places<1, true, 1, 1, 1>"},
  p.b = {hip::matrix_argument{nullptr, {0, 32}, 4, 1}, true, 4};
  hip::phases by;
  by.form = {{2, 2, 0}, {1, 1, 0}, {2, 2, 0}};
  by.divide(p, hip::image_steps(out), 2);
  ASSERT_TRUE(p.phases);
  EXPECT_EQ(p.batch0, 4);
  EXPECT_EQ(p.rows, 2 * 3 * 6 * 6);
  EXPECT_EQ(p.steps[0][2], 16);
  const auto& to = p.phases->place;
  EXPECT_EQ(to.image_lines * p.steps[0][0], 2880 * 3);
  EXPECT_EQ(to.plane_lines * p.steps[0][0], 1200);
  EXPECT_EQ(to.row_lines * p.steps[0][0], 96);
  EXPECT_EQ(p.phases->reach, 1 + 2880 * 3 + 4 * 600 + 5 * 96 + 11 * 8 + 7);
  hip::kernel_text t(nullptr);
  hip::write_epilogue(t, p, nullptr, false, 1);
  EXPECT_THAT(t.str(), ::testing::HasSubstr("phase_place<float>"));
  EXPECT_FALSE(by.divide_to(p, hip::image_steps(out), 2, 0));  // planes are no lines
}
// More blocks than 32 bits count: an error, not a launch of some of them.
TEST(tile_kernels, counts_of_blocks_keep_to_a_launch) {
  const auto where = std::make_shared<const hip::context>(hip::architecture::named("sm_90"), "");
  const auto refused = [](auto&& f) {
    try {
      f();
      ADD_FAILURE() << "no error";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::limit) << e.what();
      EXPECT_THAT(e.what(), ::testing::HasSubstr("blocks of a launch"));
    }
  };
  EXPECT_EQ(hip::blocks_of(0x7fffffff), 0x7fffffffu);
  refused([] { hip::blocks_of(std::int64_t{1} << 31); });
  refused([] { hip::blocks_of(-1); });
  const hip::gemm_tile tile{"atom_fma", 64, 64, 32, 2, 2, 2};
  hip::gemm_problem p;
  p.rows = p.cols = std::int64_t{1} << 23, p.depth = 4;  // 2^34 tiles
  p.a = p.b = {hip::matrix_argument{nullptr, {0, 0}, 4, 1}, true, 4};
  p.steps = {{0, 0, p.cols, 1}}, p.types = {p.type}, p.aligned = {16};
  refused([&] { hip::plan_gemm(p, nullptr, tile, where->arch()); });
  p.rows = 1 << 13;
  EXPECT_EQ(hip::plan_gemm(p, nullptr, tile, where->arch()).grid.x, 1u << 24);
  // extents whose blocks are 0 or a few modulo 2^32
  const auto prepares = [&](lowered_op::family family, const operation& op, const std::vector<shape>& shapes) {
    const lowered_op lowered(family, op, shapes, where);
    std::vector<tensor> given;
    for (const shape& s : shapes) given.push_back(lowered_op::at(nullptr, s));
    const tensor out[] = {lowered_op::at(nullptr, lowered.result)};
    lowered.made->prepare(given, out);
  };
  for (const dtype t : {dtype::f64, dtype::f32, dtype::f16}) {
    const shape heads(t, {1 << 16, 1 << 16, 1, 16});
    refused([&] { prepares(hip::lower_attention, op::attention{}, {heads, heads, heads}); });
  }
  for (const dtype t : {dtype::f32, dtype::f16}) {
    const shape q(t, {1, 1 << 16, 1, 16}), table(dtype::i64, {1 << 16, 24});
    refused([&] {
      prepares(hip::lower_block_attention, op::block_attention{.head = 16, .most = 32}, {q, q, q, table});
    });
  }
}
// Columns of a window are one piece of a copy: of a box where there is a copy unit and few of them are of no use.
TEST(tile_kernels, windows_of_few_channels_are_widened_to_boxes_where_little_is_added) {
  const hip::architecture unit = hip::architecture::named("sm_90"), none = hip::architecture::named("sm_80");
  const auto columns = hip::padded_images::columns_of;
  EXPECT_EQ(columns(7, unit), 8);
  EXPECT_EQ(columns(6, unit), 8);
  EXPECT_EQ(columns(8, unit), 8);
  EXPECT_EQ(columns(11, unit), 16);
  EXPECT_EQ(columns(5, unit), 5);
  EXPECT_EQ(columns(3, unit), 3);
  EXPECT_EQ(columns(1, unit), 1);
  EXPECT_EQ(columns(9, unit), 9);
  EXPECT_EQ(columns(7, none), 7);
}
// Which products read constant weights as rows of runs: few rows, a constant, both depths contiguous. By lines where a
// block has the memory, and else into registers.
TEST(tile_kernels, few_rows_have_tiles_of_their_own) {
  const auto first = [&](std::int64_t rows, std::int64_t cols, bool constant, bool contiguous,
                         const char* name = "sm_90") {
    hip::gemm_problem p;
    p.type = dtype::f16, p.rows = rows, p.cols = cols, p.depth = 4096, p.constant_b = constant;
    p.a = {hip::matrix_argument{nullptr, {0, 0}, 4096, 1}, true, 8};
    p.b = contiguous ? hip::gemm_factor{hip::matrix_argument{nullptr, {0, 0}, 4096, 1}, true, 8}
                     : hip::gemm_factor{hip::matrix_argument{nullptr, {0, 0}, 1, cols}, false, 8};
    p.steps = {{0, 0, cols, 1}}, p.types = {dtype::f16}, p.aligned = {16};
    const hip::architecture where = hip::architecture::named(name);
    const hip::gemm_tile t = hip::tiles_for(p, where).front();
    if (t.atom == hip::staged) {
      const hip::gemm_plan plan = hip::plan_gemm(p, nullptr, t, where);
      EXPECT_LE(plan.shared_bytes, where.shared_bytes);
      EXPECT_EQ(plan.grid.x, std::min<std::int64_t>(cols / hip::staged_run, where.multiprocessors));
    }
    return t;
  };
  EXPECT_EQ(first(1, 4096, true, true).atom, "staged");
  EXPECT_EQ(first(1, 256, true, true).atom, "staged");
  EXPECT_EQ(first(8, 11008, true, true).rows, 8);
  EXPECT_EQ(first(9, 11008, true, true).rows, 16);
  EXPECT_EQ(first(32, 4096, true, true).rows, 32);
  EXPECT_NE(first(33, 4096, true, true).atom, "staged");
  EXPECT_NE(first(1, 4096, false, true).atom, "staged");
  EXPECT_NE(first(1, 4096, true, false).atom, "staged");
  EXPECT_NE(first(1, 128, true, true).atom, "staged");
  // of a block's memory two slots are left there, or none
  EXPECT_EQ(first(8, 4096, true, true, "sm_86").stages, 2);
  EXPECT_EQ(first(16, 4096, true, true, "sm_86").atom, "few_rows");
  EXPECT_EQ(first(16, 4096, true, true, "sm_86").cols, 16);
}
// Numbers in blocks pass by lines where their scales are words of their own and rows are more than four.
TEST(tile_kernels, scales_in_words_pass_staged) {
  const hip::architecture where = hip::architecture::named("sm_90");
  const auto atom = [&](std::int64_t rows, int words) {
    hip::gemm_problem p;
    p.rows = rows, p.cols = 4096;
    hip::stored_form form;
    form.scale_words = words;
    return hip::stored_tile(p, form, where).atom;
  };
  EXPECT_EQ(atom(5, 4), hip::staged);
  EXPECT_EQ(atom(32, 1), hip::staged);
  EXPECT_EQ(atom(4, 4), hip::few_rows);
  EXPECT_EQ(atom(9, 0), hip::few_rows);
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
  // small scales beside great ones keep their bits
  EXPECT_EQ(form_of({0, 1e-6}), "centered_nibbles<32, 24>");
  EXPECT_EQ(form_of({0.06, -0x1p-10}), "centered_nibbles<32, 20>");
  EXPECT_EQ(form_of({0.06, -0x1.ffp-11}), "as stored");
  EXPECT_EQ(form_of({1, 1e-4}), "as stored");
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
      EXPECT_EQ(kiln::test::evaluate(p, given), test::evaluate(before, given));
    }
    return changed;
  };
  EXPECT_TRUE(turns({5, k}, n, true));
  EXPECT_TRUE(turns({dimension::symbol("rows", 1), k}, n, false));
  EXPECT_FALSE(turns({33, k}, n, false));
  EXPECT_FALSE(turns({5, k}, 128, false));
}
// What the device counts: elements of types that its kernels compute on, and boxes whose bounds are of the types that
// theirs read; the host takes the others.
TEST(tile_kernels, selections_of_types_that_kernels_read) {
  const auto where = std::make_shared<const hip::context>(hip::architecture::named("sm_90"), "");
  const auto lowers = [&](const operation& op, const std::vector<shape>& shapes) {
    return lowered_op(hip::lower_select, op, shapes, where).made != nullptr;
  };
  const dimension n = dimension::symbol("n");
  for (std::size_t k = 0; k < all_dtypes; ++k) {
    const auto t = static_cast<dtype>(k);
    EXPECT_EQ(lowers(op::nonzero{n}, {{t, {5, 8}}}), k < dtype_count) << to_string(t);
  }
  const shape boxes(dtype::f32, {2, 30, 4}), scores(dtype::f32, {2, 3, 30});
  const auto bounds = [&](dtype most, dtype overlap, dtype least) {
    return lowers(op::non_max_suppression{false, true, n}, {boxes, scores, {most, {1}}, {overlap, {1}}, {least, {}}});
  };
  EXPECT_TRUE(bounds(dtype::i64, dtype::f32, dtype::f32));
  EXPECT_FALSE(bounds(dtype::i32, dtype::f32, dtype::f32));
  EXPECT_FALSE(bounds(dtype::i64, dtype::f64, dtype::f32));
  EXPECT_FALSE(bounds(dtype::i64, dtype::f32, dtype::f16));
}
// Bounds without an element are an error on the device as in the op's own computation.
TEST(tile_kernels, boxes_need_bounds) {
  const auto where = std::make_shared<const hip::context>(hip::architecture::named("sm_90"), "");
  for (std::size_t empty = 2; empty < 5; ++empty) {
    std::vector<shape> shapes = {{dtype::f32, {1, 3, 4}}, {dtype::f32, {1, 1, 3}}};
    for (const dtype t : {dtype::i64, dtype::f32, dtype::f32}) shapes.push_back({t, {shapes.size() == empty ? 0 : 1}});
    const op::non_max_suppression op{false, true, dimension::symbol("n")};
    const lowered_op lowered(hip::lower_select, op, shapes, where);
    std::vector<argument> in;
    std::vector<tensor> given;
    for (const shape& s : shapes) {
      in.emplace_back(s);
      given.push_back(lowered_op::at(in.back().data(), s));
    }
    fake::queue queue(nullptr);
    launch l{given, {}, {}};
    l.queue = &queue;
    const auto expect = [&](const std::function<void()>& f) {
      try {
        f();
        ADD_FAILURE() << "no error";
      } catch (const error& e) {
        EXPECT_EQ(e.code(), errc::shape_mismatch) << e.what();
        EXPECT_THAT(e.what(), ::testing::HasSubstr("elements of the most boxes"));
      }
    };
    expect([&] { dynamic_cast<const counting_kernel&>(*lowered.made).count(l); });
    expect([&] { op.produce(in); });
  }
}

// Nothing is counted from numbers that are not there, and what a count says is an error of the op.
TEST(device_plans, ranges_of_wrong_numbers_are_errors) {
  const auto where = std::make_shared<const hip::context>(hip::architecture::named("sm_90"), "");
  const std::vector<shape> shapes(3, shape(dtype::f32, {1}));
  const lowered_op lowered(hip::lower_select, op::progression{dimension::symbol("n")}, shapes, where);
  const auto* counts = dynamic_cast<const counting_kernel*>(lowered.made.get());
  ASSERT_NE(counts, nullptr);
  std::vector<tensor> given;
  for (const shape& s : shapes) given.push_back(lowered_op::at(nullptr, s));
  const auto code_of = [](const std::function<void()>& f) {
    try {
      f();
    } catch (const error& e) {
      return e.code();
    }
    return errc::internal;
  };
  EXPECT_EQ(counts->made(given, 7).lens, dims{7});
  EXPECT_EQ(code_of([&] { counts->made(given, gpu::range_without_step); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { counts->made(given, gpu::range_without_end); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { counts->made(given, gpu::most_of_range + 1); }), errc::limit);
  given[1].lens = {0};
  EXPECT_EQ(code_of([&] { counts->count(launch{given, {}, {}}); }), errc::shape_mismatch);
}

// Greatest elements of long windows are taken along one dim after the other, with room for what lies between.
TEST(device_plans, long_windows_have_room_between_their_dims) {
  const auto where = std::make_shared<const hip::context>(hip::architecture::named("sm_90"), "");
  const auto room_of = [&](const op::pooling& p, const shape& x) {
    const lowered_op lowered(hip::lower_window, p, {x}, where);
    const tensor in = lowered_op::at(nullptr, x), out = lowered_op::at(nullptr, lowered.result);
    return lowered.made->scratch_bytes({&in, 1}, {&out, 1}, 1);
  };
  const shape x(dtype::f32, {2, 8, 16, 32});
  EXPECT_EQ(room_of({.lengths = {9, 9}, .stride = {1, 1}, .pads = {4, 4, 4, 4}}, x), 2u * 8 * 16 * 32 * 4);
  EXPECT_EQ(room_of({.lengths = {9, 9}, .stride = {1, 4}}, x), 2u * 8 * 16 * 6 * 4);
  EXPECT_EQ(room_of({.lengths = {5, 5}, .stride = {1, 1}}, x), 0u);
  EXPECT_EQ(room_of({.lengths = {1, 31}, .stride = {1, 1}}, x), 0u);
  EXPECT_EQ(room_of({.mode = op::pooling_mode::average, .lengths = {9, 9}, .stride = {1, 1}}, x), 0u);
  // one tap that skips planes, of which there are as many then as before
  EXPECT_EQ(room_of({.lengths = {1, 6, 6}, .stride = {2, 1, 1}, .pads = {1, 0, 0, 1, 0, 0}},
                    shape(dtype::f32, {1, 8, 3, 8, 8})),
            8u * 3 * 8 * 3 * 4 + 1024);  // 864 bytes of the second, a multiple of 256
  EXPECT_EQ(room_of({.lengths = {4, 4, 4}, .stride = {1, 1, 1}}, shape(dtype::f32, {1, 8, 8, 8, 8})),
            (8u * 8 * 8 * 5 + 8 * 8 * 5 * 5) * 4);
}

}  // namespace
}  // namespace kiln::testing
