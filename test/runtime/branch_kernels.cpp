// Branches that run side by side with the kernels of the Eigen target.
#include <gtest/gtest.h>

#include "kiln/op/sequence/recurrent.hpp"
#include "kiln/runtime/run_options.hpp"
#include "runtime/recorded_target.hpp"

namespace kiln::testing {
namespace {

// What kernels estimate, by their names.
using estimates = std::vector<std::pair<std::string, double>>;

// A kernel that is told to take the same time by one thread and by several.
class uncut_kernel final : public kernel {
 public:
  uncut_kernel(std::unique_ptr<kernel> of, estimates* found) : of_(std::move(of)), found_(found) {}
  std::string name() const override { return of_->name(); }
  void run(const launch& l) const override { of_->run(l); }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    return of_->scratch_bytes(in, out, threads);
  }
  double estimated_seconds(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    if (found_) found_->emplace_back(name(), of_->estimated_seconds(in, out, threads));
    return 1e-3;
  }
  stride_support input_strides(std::size_t i) const override { return of_->input_strides(i); }
  stride_support output_strides(std::size_t k) const override { return of_->output_strides(k); }
  bool writes_strided_channels(std::size_t k, dimension run) const override {
    return of_->writes_strided_channels(k, run);
  }
  bool packed_input(std::size_t i) const override { return of_->packed_input(i); }
  std::size_t packed_bytes() const override { return of_->packed_bytes(); }

 private:
  std::unique_ptr<kernel> of_;
  estimates* found_;
};

class uncut_target final : public target {
 public:
  explicit uncut_target(estimates* found) : found_(found) {}
  std::string_view name() const override { return eigen_.name(); }
  target_passes passes() const override { return eigen_.passes(); }
  bool flushes_denormals() const override { return true; }
  lower::layout_role role(const program& whole, const basic_instruction<operation>& instruction) const override {
    return eigen_.role(whole, instruction);
  }
  std::unique_ptr<kernel> make_kernel(const kernel_request& r) const override {
    auto made = eigen_.make_kernel(r);
    return made ? std::make_unique<uncut_kernel>(std::move(made), found_) : nullptr;
  }

 private:
  eigen_target eigen_;
  estimates* found_;
};

executable compile_uncut(const std::function<void(builder&)>& make, estimates* found = nullptr) {
  builder b;
  make(b);
  return compile(b.finish(), uncut_target(found), plain_options());
}

// Runs side by side and one by one are alike bit for bit.
void expect_alike(const std::function<void(builder&)>& make, std::span<const argument> in, tolerance t = {}) {
  const executable e = compile_uncut(make);
  workspace w;
  std::vector<argument> beside(e.outputs().size()), after(e.outputs().size());
  e.run(w, in, beside);
  run_options watched;
  watched.profile = [](std::size_t, double) {};
  e.run(w, in, after, watched);
  const auto expected = reference_run(make, in);
  for (std::size_t k = 0; k < beside.size(); ++k) {
    expect_close(beside[k], after[k], {0, 0});
    expect_close(beside[k], expected[k], t);
  }
}

std::vector<float> weights(std::int64_t n, unsigned seed) {
  const argument a = random_argument({dtype::f32, {n}}, seed, -0.3, 0.3);
  return {a.as<float>().begin(), a.as<float>().end()};
}

value convolved(builder& b, value x, std::int64_t from, std::int64_t to, std::int64_t width, unsigned seed) {
  const value w = b.constant<float>(dtype::f32, {to, from, width, width}, weights(to * from * width * width, seed));
  const std::int64_t pad = width / 2;
  return x.conv(w, {.pads = {pad, pad, pad, pad}}).relu();
}

void module_of_four(builder& b, dimension batch) {
  const value x = b.input("x", dtype::f32, {batch, 32, 7, 7});
  const value one = convolved(b, x, 32, 16, 1, 1);
  const value three = convolved(b, convolved(b, x, 32, 16, 1, 2), 16, 32, 3, 3);
  const value twice = convolved(b, convolved(b, convolved(b, x, 32, 16, 1, 4), 16, 16, 3, 5), 16, 16, 3, 6);
  const value pooled = convolved(b, x.pool({.lengths = {3, 3}, .stride = {1, 1}, .pads = {1, 1, 1, 1}}), 32, 16, 1, 7);
  const value all = one.concat(three, 1).concat(twice, 1).concat(pooled, 1);
  b.output(convolved(b, all, 80, 16, 1, 8), "y");
}

TEST(branch_kernels, convolutions_that_are_concatenated) {
  const auto make = [](builder& b) { module_of_four(b, 1); };
  EXPECT_TRUE(has_groups(compile_uncut(make)));
  expect_alike(make, random_inputs(make), {1e-4, 1e-5});
}

TEST(branch_kernels, of_a_symbolic_batch) {
  const auto make = [](builder& b) { module_of_four(b, dimension::symbol("batch", 1)); };
  EXPECT_FALSE(has_groups(compile_uncut(make))) << "a run's sizes decide";
  for (const std::int64_t batch : {1, 3, 2})
    expect_alike(make, std::vector{random_argument({dtype::f32, {batch, 32, 7, 7}}, 1)}, {1e-4, 1e-5});
}

TEST(branch_kernels, one_that_another_reads) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f32, {1, 32, 7, 7});
    const value left = convolved(b, x, 32, 32, 3, 1), right = convolved(b, x, 32, 32, 1, 2);
    const value mixed = convolved(b, left + right, 32, 16, 1, 3);
    b.output(convolved(b, left, 32, 16, 3, 4).concat(mixed, 1), "y");
    b.output(convolved(b, right, 32, 8, 3, 5), "z");
  };
  EXPECT_TRUE(has_groups(compile_uncut(make)));
  expect_alike(make, random_inputs(make), {1e-4, 1e-5});
}

TEST(branch_kernels, convolutions_of_single_pixels_have_estimates) {
  for (const std::int64_t groups : {1, 2, 6})
    for (const std::int64_t channels : {6, 12, 96}) {
      estimates found;
      compile_uncut(
          [&](builder& b) {
            const value x = b.input("x", dtype::f32, {1, channels, 1, 1});
            for (const std::int64_t to : {12, 48}) {
              const value w = b.constant<float>(dtype::f32, {to, channels / groups, 1, 1},
                                                weights(to * channels / groups, static_cast<unsigned>(to)));
              b.output(x.conv(w, {.group = groups}));
            }
          },
          &found);
      ASSERT_FALSE(found.empty());
      for (const auto& [name, seconds] : found) {
        EXPECT_GT(seconds, 0) << name << ", " << channels << " channels in " << groups;
        EXPECT_LT(seconds, 1) << name << ", " << channels << " channels in " << groups;
      }
    }
}

// Weights that a run gives are multiplied by a kernel for planes.
TEST(branch_kernels, convolutions_with_weights_of_a_run_have_finite_estimates) {
  estimates found;
  const auto make = [](builder& b) {
    const value x = convolved(b, b.input("x", dtype::f32, {1, 32, 8, 8}), 32, 64, 3, 1);
    const value y = x.conv(b.input("w", dtype::f32, {32, 64, 1, 1})),
                z = x.conv(b.input("v", dtype::f32, {48, 64, 1, 1}));
    b.output(convolved(b, y, 32, 32, 3, 2));
    b.output(convolved(b, z, 48, 32, 3, 3));
  };
  EXPECT_TRUE(has_groups(compile_uncut(make, &found)));
  for (const auto& [name, seconds] : found) EXPECT_LT(seconds, 1) << name;
  expect_alike(make, random_inputs(make, 1, -0.3, 0.3), {1e-4, 5e-5});
}

TEST(branch_kernels, convolutions_estimate_weights_that_stay_near) {
  const auto estimated = [](bool near) {
    estimates found;
    compile_uncut(
        [&](builder& b) {
          const value x = b.input("x", dtype::f32, {1, 32, 16, 16});
          b.output(convolved(b, x, 32, 64, 3, 1));
          b.output(convolved(b, x, 32, 64, 3, 2));
          if (!near)
            b.output(b.input("z", dtype::f32, {1 << 17}) +
                     b.constant<float>(dtype::f32, {1 << 17}, weights(1 << 17, 3)));
        },
        &found);
    double most = 0;
    for (const auto& [name, seconds] : found)
      if (name.find("winograd 4x4") != name.npos) most = std::max(most, seconds);
    return most;
  };
  EXPECT_GT(estimated(true), 0);
  EXPECT_LT(estimated(true), estimated(false));
}

TEST(branch_kernels, both_directions_of_a_recurrence) {
  constexpr std::int64_t steps = 9, hidden = 48;
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f32, {steps, 1, 4 * hidden}), h = b.input("h", dtype::f32, {1, hidden});
    const std::vector<std::int64_t> lengths{steps};
    const std::vector<float> nothing(4 * hidden, 0.0F);
    const value bias = b.constant<float>(dtype::f32, {4 * hidden}, nothing);
    const value n = b.constant<std::int64_t>(dtype::i64, {1}, lengths);
    const value peep = b.constant<float>(dtype::f32, {3 * hidden}, std::vector<float>(3 * hidden, 0.0F));
    for (const bool reverse : {false, true}) {
      const value r = b.constant<float>(dtype::f32, {hidden, 4 * hidden}, weights(4 * hidden * hidden, reverse));
      const op::recurrent lstm{
          .cell = op::cell_kind::lstm,
          .functions = {op::cell_function::sigmoid, op::cell_function::tanh, op::cell_function::tanh},
          .alpha = {0, 0, 0},
          .beta = {0, 0, 0},
          .reverse = reverse};
      b.output(b.add(lstm, x, r, bias, h, n, h, peep), reverse ? "backward" : "forward");
    }
  };
  EXPECT_TRUE(has_groups(compile_uncut(make)));
  expect_alike(make, random_inputs(make), {1e-4, 1e-5});
}

}  // namespace
}  // namespace kiln::testing
