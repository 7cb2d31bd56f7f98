// Programs compiled for a GPU in files and in the cache: a load makes the same steps and compiles no kernel. Files are
// made for absent GPUs too; what runs is skipped, aloud, where there is no GPU.
#include <gmock/gmock.h>

#include <fstream>

#include "kiln/backend/hip/compile.hpp"
#include "kiln/backend/hip/hip_target.hpp"
#include "kiln/core/object.hpp"
#include "kiln/runtime/compile_cache.hpp"
#include "kiln/runtime/saved_program.hpp"
#include "runtime/compare.hpp"
#include "support/temporary_folder.hpp"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

literal weights(dims lens, unsigned seed) { return random_argument(shape{dtype::f32, lens}, seed, -1, 1).to_literal(); }

// A convolution whose filters are ordered for it, one that is transposed, products with large and small constants.
void network(builder& b) {
  const value x = b.input("x", dtype::f32, {2, 8, 16, 16});
  const value first = x.conv(b.constant(weights({64, 8, 3, 3}, 1)), {.pads = {1, 1, 1, 1}}).relu();
  const value larger = b.add(op::deconvolution{.stride = {2, 2}}, first, b.constant(weights({64, 32, 2, 2}, 2)));
  const value flat = larger.reduce_mean({2, 3}).reshape({2, 32});
  const value wide = flat.dot(b.constant(weights({32, 1000}, 3))) + b.constant(weights({1000}, 4));
  b.output(wide.softmax(1), "classes");
}
program finished(const std::function<void(builder&)>& make) {
  builder b;
  make(b);
  return b.finish();
}

class hip_saved : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(kernels()); }
  std::filesystem::path kernels() const { return folder / "kernels"; }
  // Kernels that were compiled since this was called last.
  std::size_t compiled() {
    const auto files = static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(kernels()), {}));
    std::filesystem::remove_all(kernels());
    std::filesystem::create_directories(kernels());
    return files;
  }
  std::string error_of_load(const target& t) const {
    try {
      load(file, t, plain_options());
    } catch (const error& e) {
      return e.what();
    }
    return "no error";
  }
  hip_options options_for(std::string architecture = {}) {
    hip_options o;
    o.architecture = std::move(architecture);
    o.cache = kernels();
    return o;
  }
  test::temporary_folder folder;
  std::filesystem::path file = folder / "program.kiln";
};

class hip_saved_for : public hip_saved, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    const std::string why = hip::why_not_compiled(hip::architecture::named(GetParam()));
    if (!why.empty()) GTEST_SKIP() << "SKIPPED: programs for " << GetParam() << " are not saved: " << why;
    hip_saved::SetUp();
  }
};

// Kernels take seconds to compile: one program serves all questions about its file.
TEST_P(hip_saved_for, the_file_has_the_code_of_all_kernels) {
  const program source = finished(network);
  const executable exe = compile(source, hip_target(options_for(GetParam())), plain_options());
  EXPECT_GT(compiled(), 3u);
  save(exe, file);
  const saved_program_info info = inspect(file);
  EXPECT_EQ(info.target, "hip");
  EXPECT_THAT(info.format, HasSubstr(GetParam()));

  const hip_target fresh(options_for(GetParam()));
  const executable again = load(file, fresh, plain_options());
  EXPECT_EQ(compiled(), 0u);
  EXPECT_THAT(again.report().passes, IsEmpty());
  ASSERT_EQ(again.report().steps.size(), exe.report().steps.size());
  for (std::size_t i = 0; i < exe.report().steps.size(); ++i)
    EXPECT_EQ(again.report().steps[i].kernel, exe.report().steps[i].kernel);
  EXPECT_EQ(again.report().constant_bytes, exe.report().constant_bytes);
  save(again, folder / "again.kiln");  // what was loaded can be saved
  EXPECT_EQ(inspect(folder / "again.kiln").file_bytes, info.file_bytes);

  EXPECT_THAT(error_of_load(eigen_target()), HasSubstr("target: expected eigen, found hip"));
  const std::string other = GetParam() == std::string("gfx90a") ? "gfx1030" : "sm_80";
  EXPECT_THAT(error_of_load(hip_target(options_for(other))), HasSubstr("machine: expected hip " + other));
  {
    std::fstream at(file, std::ios::in | std::ios::out | std::ios::binary);
    at.seekp(-50, std::ios::end);
    at.put('\x5a').put('\xa5');
  }
  EXPECT_THAT(error_of_load(fresh), HasSubstr("is damaged"));
  save(exe, source, file);
  EXPECT_EQ(load(file, eigen_target(), plain_options()).report().target, "eigen");
}

TEST_P(hip_saved_for, the_cache_keeps_programs_for_a_gpu) {
  compile_options options = plain_options();
  options.cache = folder / "programs";
  const auto make = [&] {
    return compile(finished([](builder& b) { b.output(b.input("x", dtype::f32, {64}).exp(), "y"); }),
                   hip_target(options_for(GetParam())), options);
  };
  EXPECT_FALSE(make().report().passes.empty());
  EXPECT_EQ(compiled(), 1u);
  EXPECT_THAT(make().report().passes, IsEmpty());
  EXPECT_EQ(compiled(), 0u);
  EXPECT_EQ(cached_programs(options.cache).size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(each, hip_saved_for, ::testing::Values("gfx90a", "sm_90"),
                         [](const auto& info) { return std::string(info.param); });

// ---- on a GPU

class hip_saved_here : public hip_saved {
 protected:
  void SetUp() override {
    if (hip::device_count(hip::platform::amd) + hip::device_count(hip::platform::nvidia) == 0)
      GTEST_SKIP() << "SKIPPED: there is no GPU to run saved programs on";
    hip_saved::SetUp();
  }
  void expect_same_again(const std::function<void(builder&)>& make, const std::vector<argument>& inputs,
                         const compile_options& options = plain_options()) {
    const executable exe = compile(finished(make), hip_target(options_for()), options);
    const auto expected = exe.run(inputs);
    save(exe, file);
    compiled();
    const executable again = load(file, hip_target(options_for()), plain_options());
    const auto found = again.run(inputs);
    EXPECT_EQ(compiled(), 0u);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t k = 0; k < found.size(); ++k) EXPECT_TRUE(equal_values(found[k], expected[k])) << "output " << k;
  }
};

TEST_F(hip_saved_here, a_network_computes_the_same_bits) {
  expect_same_again(network, {random_argument({dtype::f32, {2, 8, 16, 16}}, 5)});
}

TEST_F(hip_saved_here, a_tuned_network_keeps_its_choices) {
  compile_options options = plain_options();
  options.tune = true;
  options.tuning_file = (folder / "tuned.tsv").string();
  expect_same_again(network, {random_argument({dtype::f32, {2, 8, 16, 16}}, 5)}, options);
}

TEST_F(hip_saved_here, sizes_that_have_run_are_in_the_file) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f32, {dimension::symbol("n", 1, 64), 300});
    b.output(x.dot(b.constant(weights({300, 300}, 6))).relu(), "y");
  };
  expect_same_again(make, {random_argument({dtype::f32, {7, 300}}, 5)});
}

}  // namespace
}  // namespace kiln::testing
