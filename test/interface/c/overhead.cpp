// What a call through kiln.h costs beyond the same call in C++: at most 0.2 us.
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/graph/builder.hpp"
#include "kiln/interface/c/kiln.h"
#include "kiln/onnx/export.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/runtime/executable.hpp"

namespace {

using clock_type = std::chrono::steady_clock;

std::string tiny_mlp() {
  kiln::builder b;
  std::vector<float> w1(4 * 8, 0.5f), w2(8 * 2, 0.25f);
  const auto x = b.input("x", kiln::dtype::f32, {1, 4});
  const auto hidden = x.dot(b.constant<float>(kiln::dtype::f32, {4, 8}, std::span<const float>(w1))).relu();
  b.output(hidden.dot(b.constant<float>(kiln::dtype::f32, {8, 2}, std::span<const float>(w2))), "y");
  return kiln::onnx::export_model(b.finish());
}

// Seconds of one call: the least of many rounds that alternate, so that what else the machine does counts for neither.
template <class A, class B> std::pair<double, double> least_seconds(A&& a, B&& b) {
  constexpr int rounds = 400, calls = 500;
  const auto time = [](auto& f) {
    const auto start = clock_type::now();
    for (int i = 0; i < calls; ++i) f();
    return std::chrono::duration<double>(clock_type::now() - start).count() / calls;
  };
  std::pair<double, double> least(1, 1);
  for (int r = 0; r < rounds; ++r) {
    least.first = std::min(least.first, time(a));
    least.second = std::min(least.second, time(b));
  }
  return least;
}

#if KILN_CHECKED || KILN_SANITIZES_ADDRESSES
constexpr bool measures = false;
#else
constexpr bool measures = true;
#endif

TEST(c_interface, costs_at_most_a_fifth_of_a_microsecond) {
  const std::string model = tiny_mlp();
  float in[4] = {1, 2, 3, 4}, out[2] = {}, out_c[2] = {};

  kiln::compile_options options;
  options.threads = 1;
  const kiln::executable mlp =
      kiln::compile(kiln::onnx::parse_model(std::as_bytes(std::span(model))).graph, kiln::eigen_target(), options);
  kiln::workspace workspace;
  const std::vector<kiln::argument> inputs = {{{kiln::dtype::f32, {1, 4}}, in}};
  std::vector<kiln::argument> outputs = {{{kiln::dtype::f32, {1, 2}}, out}};

  kiln_program* program = nullptr;
  kiln_compile_options* options_c = nullptr;
  kiln_executable* mlp_c = nullptr;
  kiln_workspace* workspace_c = nullptr;
  kiln_tensor *x = nullptr, *y = nullptr;
  const std::int64_t in_lens[] = {1, 4}, out_lens[] = {1, 2};
  ASSERT_EQ(kiln_program_import_memory(model.data(), model.size(), nullptr, &program), KILN_OK) << kiln_last_error();
  ASSERT_EQ(kiln_compile_options_create(&options_c), KILN_OK);
  ASSERT_EQ(kiln_compile_options_set(options_c, "threads", "1"), KILN_OK) << kiln_last_error();
  ASSERT_EQ(kiln_compile(program, "eigen", options_c, &mlp_c), KILN_OK) << kiln_last_error();
  ASSERT_EQ(kiln_workspace_create(&workspace_c), KILN_OK);
  ASSERT_EQ(kiln_tensor_borrow(KILN_F32, 2, in_lens, nullptr, in, nullptr, nullptr, &x), KILN_OK);
  ASSERT_EQ(kiln_tensor_borrow(KILN_F32, 2, out_lens, nullptr, out_c, nullptr, nullptr, &y), KILN_OK);

  kiln_status worst = KILN_OK;
  const auto in_cpp = [&] { mlp.run(workspace, inputs, outputs); };
  const auto in_c = [&] { worst = std::max(worst, kiln_run(mlp_c, workspace_c, 1, &x, 1, &y, nullptr)); };
  const auto [cpp, c] = least_seconds(in_cpp, in_c);
  EXPECT_EQ(worst, KILN_OK) << kiln_last_error();
  EXPECT_EQ(out[0], out_c[0]);
  EXPECT_NE(out[0], 0);
  std::printf("a run of a tiny perceptron: %.3f us in C++, %.3f us in C\n", 1e6 * cpp, 1e6 * c);
  if (measures) {
    EXPECT_LE(c - cpp, 0.2e-6);
  }

  kiln_tensor_destroy(y);
  kiln_tensor_destroy(x);
  kiln_workspace_destroy(workspace_c);
  kiln_executable_destroy(mlp_c);
  kiln_compile_options_destroy(options_c);
  kiln_program_destroy(program);
}

}  // namespace
