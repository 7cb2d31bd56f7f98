// What the host writes is what the device reads: the arguments of kernels and their shared memory, without a device.
#include <gmock/gmock.h>

#include <cstring>

#include "kiln/backend/hip/impl/gemm/gemm_plan.hpp"
#include "kiln/backend/hip/impl/index/index_call.hpp"
#include "kiln/backend/hip/kernels/atom/atom_fma.hpp"
#include "kiln/backend/hip/kernels/conv/image_operand.hpp"
#include "kiln/backend/hip/kernels/gemm/gemm.hpp"

namespace kiln::hip {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

gemm_problem small_problem() {
  gemm_problem p;
  p.rows = 100, p.cols = 90, p.depth = 80, p.pixels = 25;
  p.a = {matrix_argument{nullptr, {1, 2}, 80, 1}, true, 4};
  p.b = {matrix_argument{nullptr, {3, 4}, 1, 90}, false, 2};
  p.steps = {{11, 12, 13, 1}, {21, 22, 23, 24}, {31, 32, 33, 0}};
  p.types = {dtype::f32, dtype::f32, dtype::f16}, p.aligned = {16, 16, 16};
  return p;
}

// The kernel's struct, as its text has it.
struct epilogue {
  gpu::result_place<float, true> place;
  gpu::epilogue_operand x1, x2;
};

TEST(device_arguments, a_result_and_its_operands_are_read_as_they_are_written) {
  std::vector<std::byte> bytes = epilogue_value(small_problem());
  const int result = 0, first = 0, second = 0;
  const void* const extra[] = {&first, &second};
  put_addresses(bytes, &result, extra);
  ASSERT_EQ(bytes.size(), sizeof(epilogue));
  epilogue f;
  std::memcpy(static_cast<void*>(&f), bytes.data(), sizeof f);
  EXPECT_EQ(static_cast<const void*>(f.place.base), &result);
  EXPECT_THAT(f.place.step, ElementsAre(11, 12, 13, 1));
  EXPECT_EQ(f.place.pixels, 25);
  EXPECT_EQ(f.x1.base, &first);
  EXPECT_THAT(f.x1.step, ElementsAre(21, 22, 23, 24));
  EXPECT_EQ(f.x2.base, &second);
  EXPECT_THAT(f.x2.step, ElementsAre(31, 32, 33, 0));
}

TEST(device_arguments, a_kernel_checks_the_size_of_what_the_host_writes) {
  kernel_text t;
  write_epilogue(t, small_problem(), nullptr, false, 1);
  EXPECT_THAT(t.str(), HasSubstr("static_assert(sizeof(epilogue) == " + std::to_string(sizeof(epilogue))));
}

TEST(device_arguments, operands_of_each_result_are_prefetched_by_lines_of_the_cache) {
  gemm_problem p = small_problem();
  kernel_text without, with;
  write_epilogue(without, p, nullptr, false, 1);
  EXPECT_THAT(without.str(), HasSubstr("expected = 0;")) << "neither lies along the columns";
  p.steps[1][3] = 1;
  write_epilogue(with, p, nullptr, false, 1);
  EXPECT_THAT(with.str(), HasSubstr("expected = 32;"));
  EXPECT_THAT(with.str(), HasSubstr("prefetch(static_cast<const float*>(x1.base) + offset_of(x1.step, p));"));
}

// Templates of the device add no field to what the host fills.
static_assert(sizeof(gpu::matrix_operand<float, true, 4>) == sizeof(matrix_argument));
static_assert(sizeof(gpu::image_operand<float, true, 3, 1, 3, 3, 3>) == sizeof(image_argument));
static_assert(sizeof(gpu::result_place<float, true>) == sizeof(result_argument));

TEST(device_arguments, factors_name_their_types) {
  const gemm_problem p = small_problem();
  EXPECT_EQ(p.a.text(dtype::f32), "matrix_operand<float, true, 4>");
  EXPECT_EQ(p.b.text(dtype::f16), "matrix_operand<f16, false, 2>");
  const gemm_factor image{image_argument{}, true, 8, "64, 8, 64, 3, 3"};
  EXPECT_EQ(image.text(dtype::f16), "image_operand<f16, true, 64, 8, 64, 3, 3>");
}

TEST(device_arguments, shared_memory_of_a_plan_is_what_its_kernel_divides) {
  using A = gpu::matrix_operand<float, true, 4>;
  using B = gpu::matrix_operand<float, false, 2>;
  using tile = gpu::block_tile<64, 32, 16, 2, 1, 3>;
  const architecture where = architecture::named("gfx1030");  // as many lanes as the emulated device
  const auto bytes = [&](bool cluster) {
    return plan_gemm(small_problem(), nullptr, {"atom_fma", 64, 32, 16, 2, 1, 3, 2, cluster}, where).shared_bytes;
  };
  constexpr auto memory = gpu::memory_of_gemm<gpu::atom_fma<float>, tile, A, B>;
  EXPECT_EQ(bytes(false), static_cast<std::size_t>(memory.bytes()));
  EXPECT_EQ(bytes(true), static_cast<std::size_t>(gpu::memory_of_gemm<gpu::atom_fma<float>, tile, A, B, true>.bytes()));
  // the tiles of three stages, padded by 16 bytes a line
  EXPECT_EQ(memory.stage_bytes(), (64 * (16 + 4) + 16 * (32 + 4)) * 4);
  EXPECT_EQ(memory.bytes(), 3 * memory.stage_bytes());
}

TEST(device_arguments, numbers_of_a_call_carry_their_type) {
  const call_numbers n(gpu::gather_sizes{5, 6, 7});
  EXPECT_EQ(n.type, "kiln::gpu::gather_sizes");
  gpu::gather_sizes read;
  ASSERT_EQ(n.value.size(), sizeof read);
  std::memcpy(&read, n.value.data(), sizeof read);
  EXPECT_EQ(read.inner, 5);
  EXPECT_EQ(read.indices, 6);
  EXPECT_EQ(read.extent, 7);
}

}  // namespace
}  // namespace kiln::hip
