#pragma once
#include <gmock/gmock.h>

#include <fstream>

#include "kiln/core/object.hpp"
#include "kiln/runtime/kept_files.hpp"
#include "kiln/runtime/saved_program.hpp"
#include "runtime/compare.hpp"
#include "support/temporary_folder.hpp"

// What tests of saved programs and of their cache share.
namespace kiln::testing {

inline literal weights(dims lens, dtype t = dtype::f32, unsigned seed = 7) {
  return random_argument(shape{t, lens}, seed, -1, 1).to_literal();
}

/// A folder and a file in it, which the test's end removes.
class saved_program_files : public ::testing::Test {
 protected:
  void write(const std::string& bytes) { std::ofstream(file, std::ios::binary) << bytes; }
  std::string bytes() const { return read_file(file); }

  // Saved and loaded, with the same results and steps.
  void expect_same_again(const std::function<void(builder&)>& make, std::vector<argument> inputs,
                         compile_options options = plain_options()) {
    const executable exe = compile_eigen(make, options);
    save(exe, file);
    const executable again = load(file, eigen_target(), plain_options());
    ASSERT_EQ(again.report().steps.size(), exe.report().steps.size());
    for (std::size_t i = 0; i < exe.report().steps.size(); ++i) {
      EXPECT_EQ(again.report().steps[i].kernel, exe.report().steps[i].kernel);
      EXPECT_EQ(again.report().steps[i].packed_bytes, exe.report().steps[i].packed_bytes);
    }
    EXPECT_EQ(again.report().packed_bytes, exe.report().packed_bytes);
    EXPECT_EQ(again.report().remarks, exe.report().remarks);
    EXPECT_THAT(again.report().passes, ::testing::IsEmpty());
    const auto expected = exe.run(inputs), found = again.run(inputs);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t k = 0; k < found.size(); ++k) EXPECT_TRUE(equal_values(found[k], expected[k])) << "output " << k;
  }
  void expect_same_again(const std::function<void(builder&)>& make) { expect_same_again(make, random_inputs(make)); }

  test::temporary_folder folder;
  std::filesystem::path file = folder / "program.kiln";
};

/// Kernels of several kinds, most of them with packed constants.
inline void network(builder& b) {
  const value x = b.input("x", dtype::f32, {2, 3, 17, 19});
  const value first = x.conv(b.constant(weights({32, 3, 3, 3})), {.stride = {2, 2}, .pads = {1, 1, 1, 1}}).relu();
  const value second = first.conv(b.constant(weights({32, 32, 3, 3}, dtype::f32, 8)), {.pads = {1, 1, 1, 1}}) + first;
  const value depthwise =
      second.conv(b.constant(weights({32, 1, 3, 3}, dtype::f32, 9)), {.pads = {1, 1, 1, 1}, .group = 32});
  const value flat = depthwise.relu().reduce_mean({2, 3}).reshape({2, 32});
  b.output((flat.dot(b.constant(weights({32, 700}, dtype::f32, 10))) + b.constant(weights({700}))).softmax(1),
           "classes");
}

}  // namespace kiln::testing
