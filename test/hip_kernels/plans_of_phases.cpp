// How transposed convolutions part into phases: how many, what their kernels' text says, and where weights are put.
#include <gmock/gmock.h>

#include <filesystem>
#include <numeric>

#include "hip_kernels/plan_cases.hpp"
#include "kiln/backend/hip/impl/conv/convolution_parts.hpp"
#include "support/temporary_folder.hpp"

namespace kiln::testing {
namespace {

hip::phases phases_of(const op::deconvolution& op, const ints& lens) {
  dims all;
  for (const std::int64_t n : lens) all.push_back(n);
  return hip::phases(hip::convolution_attributes(operation(op), lens.size()), shape(dtype::f16, all));
}

// Products of strides that no int holds are no phases, and neither are very many.
TEST(phase_plans, there_are_few_phases) {
  const auto count = [](const small_vector<std::int64_t>& stride) {
    ints lens(stride.size() + 2, 1);
    op::deconvolution op;
    op.stride.assign(stride.begin(), stride.end());
    const hip::phases made = phases_of(op, lens);
    return made ? made.form.phases() : 0;
  };
  EXPECT_EQ(count({2, 3}), 6);
  EXPECT_EQ(count({32, 32}), 1024);
  EXPECT_EQ(count({1024}), 1024);
  EXPECT_EQ(count({1025}), 0);
  EXPECT_EQ(count({41, 25}), 0);
  EXPECT_EQ(count({30000, 30000}), 0);
  EXPECT_EQ(count({2100, 2100, 2100}), 0);
  EXPECT_EQ(count({32768, 32768, 32768}), 0);
  EXPECT_EQ(count({1, 1}), 0);
}

// Of results of several sizes, one kernel: what it is passed says how many places there are.
TEST(phase_plans, sizes_stand_in_no_text) {
  const hip::phases by = phases_of({.stride = {2, 2}}, {64, 8, 4, 4});
  const auto plan = [&](std::int64_t rows, std::int64_t cols, const std::string& where) {
    const std::int64_t pixel = 8;
    const tensor out{nullptr, dtype::f16, {2, 8, rows, cols}, {rows * cols * pixel, 1, cols * pixel, pixel}};
    hip::gemm_problem p;
    p.type = dtype::f16, p.cols = 8, p.depth = 64 * 4, p.channels = 64, p.images = 2, p.types = {p.type};
    p.aligned = {16}, p.steps = {{0, 8, 0, 1}};
    p.a = {hip::image_argument{}, true, 8, "64, 8, 64, 2, 2, image_places<0, true, 1, 1, 1>"};
    p.b = {hip::matrix_argument{nullptr, {0, 0}, 64 * 16, 1}, true, 8};
    by.divide(p, hip::image_steps(out), 2);
    const hip::architecture arch = hip::architecture::named(where);
    return hip::plan_gemm(p, nullptr, {hip::atom_for(p.type, arch), 32, 32, 32, 2, 2, 2}, arch);
  };
  for (const char* where : {"gfx90a", "gfx1030", "sm_90"}) {
    SCOPED_TRACE(where);
    const hip::gemm_plan small = plan(18, 20, where), large = plan(36, 50, where);
    EXPECT_EQ(small.what.text, large.what.text);
    EXPECT_THAT(small.what.text, ::testing::HasSubstr("phase_shape{{1, 1, 0}, {2, 4, 0}, {2, 4, 0}}"));
    EXPECT_NE(small.result, large.result);
    if (!why_skipped(where).empty()) continue;
    EXPECT_FALSE(hip::compile(small.what, hip::architecture::named(where), {}).empty());
  }
}

// The taps of a phase lie together, phase after phase, each with its channels: by one view where all have as many.
TEST(phase_plans, weights_are_put_together_by_phase) {
  struct form {
    small_vector<std::int64_t> stride;
    ints lens;  // channels, filters of a group, taps
    std::int64_t groups;
    std::size_t views;
  };
  for (const form& f : {form{{2, 3}, {6, 5, 4, 6}, 2, 1},
                        {{2, 3}, {6, 5, 4, 5}, 2, 6},
                        {{3}, {4, 5, 6}, 1, 1},
                        {{2, 1, 3}, {4, 5, 2, 3, 6}, 1, 1},
                        {{2, 2, 2}, {4, 5, 2, 4, 2}, 2, 8},  // more dims than a copy has
                        {{3, 2}, {4, 3, 2, 1}, 1, 2}}) {     // phases without a tap
    op::deconvolution op;
    op.stride.assign(f.stride.begin(), f.stride.end());
    const hip::phases by = phases_of(op, f.lens);
    ASSERT_TRUE(by);
    const ints steps = row_major(f.lens);
    const auto views = by.order(f.lens, steps, f.groups);
    EXPECT_EQ(views.size(), f.views);
    std::vector<std::int64_t> found(static_cast<std::size_t>(product(f.lens)), -1), expected;
    for (const hip::filters_view& v : views)
      for (std::int64_t n = 0; n < product(v.lens); ++n) {
        std::int64_t from = v.from, to = v.to, rest = n;
        for (std::size_t d = v.lens.size(); d-- > 0; rest /= v.lens[d])
          from += rest % v.lens[d] * v.strides[d], to += rest % v.lens[d] * v.placed[d];
        found.at(static_cast<std::size_t>(to)) = from;
      }
    const std::size_t dims = f.stride.size();
    const std::int64_t channels = f.lens[0] / f.groups;
    ints stride(3 - dims, 1), taps(3 - dims, 1), step(3 - dims, 0);
    for (std::size_t d = 0; d < dims; ++d)
      stride.push_back(f.stride[d]), taps.push_back(f.lens[2 + d]), step.push_back(steps[2 + d]);
    for (std::int64_t group = 0; group < f.groups; ++group)
      for (std::int64_t filter = 0; filter < f.lens[1]; ++filter)
        for (std::int64_t phase = 0; phase < product(stride); ++phase)
          for (std::int64_t p = phase / (stride[1] * stride[2]); p < taps[0]; p += stride[0])
            for (std::int64_t r = phase / stride[2] % stride[1]; r < taps[1]; r += stride[1])
              for (std::int64_t c = phase % stride[2]; c < taps[2]; c += stride[2])
                for (std::int64_t channel = 0; channel < channels; ++channel)
                  expected.push_back((group * channels + channel) * steps[0] + filter * steps[1] + p * step[0] +
                                     r * step[1] + c * step[2]);
    EXPECT_EQ(found, expected);
  }
}

// Phases that don't all fit blocks that work tile after tile are one product, and no other kernel is built.
TEST(phase_plans, one_product_is_built_where_a_phase_does_not_fit) {
  if (const std::string why = why_skipped("sm_90"); !why.empty()) GTEST_SKIP() << why;
  const auto kernels_of = [](std::int64_t taps) {
    const test::temporary_folder folder;
    const auto where = std::make_shared<const hip::context>(hip::architecture::named("sm_90"), folder.path().string());
    const shape x(dtype::f16, {64, 128, 32, 32}), w(dtype::f16, {128, 64, 3, taps});
    const lowered_op lowered(hip::lower_convolution, op::deconvolution{.stride = {2, 2}, .output_padding = {1, 1}},
                             {x, w}, where);
    tensor given = lowered_op::at(nullptr, x), out = lowered_op::at(nullptr, lowered.result);
    for (tensor* t : {&given, &out})
      t->strides = {t->lens[1] * t->lens[2] * t->lens[3], 1, t->lens[1] * t->lens[3], t->lens[1]};
    const tensor in[] = {given, lowered_op::at(nullptr, w)};
    lowered.made->scratch_bytes(in, {&out, 1}, 1);
    std::filesystem::directory_iterator files(folder.path());
    return std::distance(begin(files), end(files));
  };
  EXPECT_EQ(kernels_of(3), 4);
  EXPECT_EQ(kernels_of(1), 1);  // columns of odd numbers have no tap
}

}  // namespace
}  // namespace kiln::testing
